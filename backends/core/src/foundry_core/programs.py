"""Where the programs are that the lowering runs. Apart from tools.py, because knowing it must cost nothing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

NAMES = ("mlir-opt", "mlir-translate", "llc", "spirv-val")


def locate(name: str) -> Path | None:
    """The program in the folder that FOUNDRY_LLVM_BIN names, else on PATH; None if it is not there."""
    folder = os.environ.get("FOUNDRY_LLVM_BIN")
    path = Path(folder, name) if folder else Path(shutil.which(name) or "")
    return path if path.is_file() else None
