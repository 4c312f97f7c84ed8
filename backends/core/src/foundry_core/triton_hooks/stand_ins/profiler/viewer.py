"""Stands in for triton.profiler.viewer: there is no recorded file to read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import NOTICE


def parse(metrics: Sequence[str], filename: str, *_: Any, **__: Any) -> tuple[None, Sequence[str]]:
    """Return no tree, and the names of the metrics; read no file."""
    return None, metrics


def print_tree(tree: object, metrics: object, *_: Any, **__: Any) -> None:
    """Print that nothing was recorded."""
    print(NOTICE)
