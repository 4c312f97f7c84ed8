"""The checked mode: kernels that report accesses outside of their arrays instead of making them.

Input: a kernel. Output: the same with checks of each access, and what a failed check means.

FOUNDRY_CHECK, or `check=` of a launch, says what a finding does. The instrumentation is a pass over the IR that all
mappings start from (`instrument.py`); what it finds is in the launch's log (`log.py`) and is reported by the launcher
(`findings.py`).
"""

from __future__ import annotations

import os
from typing import Any

from ..failure import Failure

VARIABLE = "FOUNDRY_CHECK"
# What is done with findings: an exception after the launch, or lines on standard error.
RAISE, REPORT = "raise", "report"
_MODES = {"": "", "0": "", "1": RAISE, RAISE: RAISE, REPORT: REPORT, False: "", True: RAISE}

# Repeated in each aligned 32-bit word of poisoned memory. Its halves differ, so that an array of 16-bit numbers that
# are all alike is not taken for poison. Each half is a quiet NaN as f16 and bf16, and so is the word as f32 and two of
# them as f64. As an int32 it is 2147155949, which is far outside of an array if it is an index.
POISON = 0x7FFAFFED


class CheckModeError(Failure, ValueError):
    """The checked mode is asked for in a way that is not understood."""


def mode(asked: Any = None) -> str:
    """Return what findings of a launch do: "raise" or "report", or "" for kernels without checks.

    Args:
        asked: the launch's option `check`: a mode, True for "raise", False for none; None for what the environment has.

    Raises:
        CheckModeError: it is none of these.
    """
    value, source = (os.environ.get(VARIABLE, ""), VARIABLE) if asked is None else (asked, "check")
    if not isinstance(value, str | bool) or value not in _MODES:
        raise CheckModeError(
            f"{source}={value!r} is not possible",
            why=f"it is 1 or {RAISE} (an exception after the first launch with a finding), {REPORT} (a message), or 0",
        )
    return _MODES[value]
