"""Read the settings for checks from the active target's file, toolchains/targets/NAME.toml.

In a container, ./foundry puts the file of the container's target at the same place relative to e2e/ as in a checkout.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import triton
from report import Refusal

TARGETS = Path(__file__).resolve().parent.parent / "toolchains" / "targets"


@functools.cache
def load() -> Mapping[str, Any]:
    """Return the file of the target whose backend is active."""
    backend = triton.runtime.driver.active.get_current_target().backend
    return tomllib.loads((TARGETS / f"{backend}.toml").read_text())


def check_refusal(refused: Exception, dtype: str) -> Refusal:
    """Check that the target must refuse this element type, and that it raised the expected error.

    Returns:
        The text for the report.

    Raises:
        AssertionError: the target's file does not list the type, or the error does not match what it says.
    """
    expected = load().get("refused", {}).get(dtype)
    assert expected, f"{dtype} was refused: {refused}"
    assert re.search(expected, str(refused)), (
        f"{dtype} was refused, but the error does not match {expected!r}: {refused}"
    )
    return Refusal(dtype)
