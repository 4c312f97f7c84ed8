"""Locates the programs that the lowering runs. Separate from tools.py, so that it imports nothing else."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

NAMES = ("mlir-opt", "mlir-translate", "llc", "spirv-val")


def locate(name: str) -> Path | None:
    """Return the program in the folder FOUNDRY_LLVM_BIN, else on PATH; None if it is not installed."""
    folder = os.environ.get("FOUNDRY_LLVM_BIN")
    path = Path(folder, name) if folder else Path(shutil.which(name) or "")
    return path if path.is_file() else None
