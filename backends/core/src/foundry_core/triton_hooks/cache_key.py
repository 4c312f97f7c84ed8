"""Triton's part of the keys of its cache.

Triton reads all of libtriton for it in each process; codegen/programs.py says what that takes.
"""

from __future__ import annotations

import functools
import sys

from triton import __version__

from ..codegen.programs import triton_fingerprint


def install(_: type) -> None:
    """Replace the function that identifies Triton, in each module that has it."""
    for name in ("triton.runtime.cache", "triton.runtime.autotuner", "triton.compiler.compiler"):
        module = sys.modules.get(name)
        if hasattr(module, "triton_key"):
            module.triton_key = _triton_key  # type: ignore[union-attr]


@functools.cache
def _triton_key() -> str:
    return f"{__version__}-{triton_fingerprint()}"
