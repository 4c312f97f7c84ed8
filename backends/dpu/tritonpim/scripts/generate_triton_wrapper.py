#!/usr/bin/env python3
"""Flow B: write the entry point and the structs of arguments for a kernel's LLVM IR. Needs nothing but Python 3.11."""

import sys
from pathlib import Path

# In a checkout of the project; elsewhere the dpu backend and foundry_core are installed.
sys.path.extend(str(Path(__file__).resolve().parents[3] / name / "src") for name in ("dpu", "core"))

from triton_dpu_backend.artifact.__main__ import main

sys.exit(main(["wrapper", *sys.argv[1:]]))
