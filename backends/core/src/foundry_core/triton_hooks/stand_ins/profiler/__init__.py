"""Stands in for triton.profiler where Triton has none: scripts that use it run, and it says that it records nothing.

Proton, Triton's profiler, measures GPUs of NVIDIA and AMD only. Repacked wheels of Triton leave it out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

NOTICE = (
    "triton.profiler recorded nothing\n"
    "  why:  it measures GPUs of NVIDIA and AMD only\n"
    "  next: ./foundry run TARGET --profile-kernels SCRIPT, or python -m foundry_core.profile SCRIPT, "
    "measures kernels here"
)


class _Nothing:
    """Does nothing: as a function, as a decorator, and in a `with` statement."""

    def __call__(self, function: Callable[..., Any] | None = None, *_: Any, **__: Any) -> Any:
        return function if callable(function) else self

    def __enter__(self) -> _Nothing:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def start(*_: Any, **__: Any) -> None:
    """Say that nothing is recorded. Return None, as proton does if it makes no session."""
    print(NOTICE, file=sys.stderr)


def finalize(*_: Any, **__: Any) -> None:
    """Write no file."""


def __getattr__(name: str) -> _Nothing:
    if name.startswith("__"):
        raise AttributeError(name)
    return _Nothing()
