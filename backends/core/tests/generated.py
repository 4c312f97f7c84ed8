"""Make kernels from generated source text."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any


def imported(path: Path, text: str) -> Any:
    """Import a module of this text from a file, because Triton reads a kernel's source from its file."""
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
