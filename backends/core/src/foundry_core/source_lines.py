"""Finds lines of the user's files: where a function is, and which line is being executed."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

import triton

# The user does not write these files.
_LIBRARIES = tuple(f"{Path(file).parent}/" for file in (triton.__file__, __file__))


def line_of(function: Any, line: int) -> str:
    """Return the place of a line of a function with @triton.jit, as `FILE:LINE`.

    Args:
        line: as in Triton's syntax trees: 1 is the line of `def`, below the decorators.
    """
    source, first = inspect.getsourcelines(function.fn)
    decorators = next(i for i, text in enumerate(source) if text.lstrip().startswith("def "))
    return f"{function.fn.__code__.co_filename}:{first + decorators + line - 1}"


def is_users(function: Any) -> bool:
    """Return whether a function with @triton.jit is in a file of the user's."""
    return not function.fn.__code__.co_filename.startswith(_LIBRARIES)


def caller() -> str:
    """Return the line of the user's program that is being executed, as `FILE:LINE`; "" if there is none."""
    # A plugin's launcher may stand between the user's line and ours.
    plugins = {backend.driver.__module__.split(".")[0] for backend in triton.backends.backends.values()}
    frame = sys._getframe()
    while frame is not None and (
        frame.f_code.co_filename.startswith((*_LIBRARIES, "<"))
        or frame.f_globals.get("__name__", "").split(".")[0] in plugins
    ):
        frame = frame.f_back  # type: ignore[assignment]
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else ""
