"""What the file of the active target says about its checks: toolchains/targets/NAME.toml.

In a container, ./foundry puts the file of the container's target at the same place next to e2e/ as in a checkout.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import triton

TARGETS = Path(__file__).resolve().parent.parent / "toolchains" / "targets"


@functools.cache
def load() -> Mapping[str, Any]:
    """Return the file of the target whose backend is active."""
    backend = triton.runtime.driver.active.get_current_target().backend
    return tomllib.loads((TARGETS / f"{backend}.toml").read_text())


def check_refusal(refused: Exception, dtype: str) -> str:
    """Check that an element type was refused which the target must refuse, and by the right error.

    Returns:
        What is said of it in the report.

    Raises:
        AssertionError: the target's file does not list the type, or the error does not match what it says.
    """
    expected = load().get("refused", {}).get(dtype)
    assert expected, f"{dtype} was refused: {refused}"
    assert re.search(expected, str(refused)), (
        f"{dtype} was refused, but the error does not match {expected!r}: {refused}"
    )
    return f"refused: {dtype}"
