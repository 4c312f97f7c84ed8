"""Check numbers of DPUs and of tasklets that a user asks for."""

from __future__ import annotations

import operator
from typing import Any

# UPMEM's largest server: 20 modules of two ranks of 64 DPUs. A smaller machine refuses what it does not have.
MOST_DPUS = 2560


def count(value: Any, most: int, what: str) -> int:
    """Return a number that a user asked for. NumPy's integers are accepted, too.

    Args:
        value: the number as given.
        most: the largest allowed value; the smallest is 1.
        what: the name of the number in the error, such as "num_dpus of the launch".

    Raises:
        ValueError: `value` is not an integer (True and False are refused), or is out of range.
    """
    try:
        number = None if isinstance(value, bool) or type(value).__name__ == "bool_" else operator.index(value)
    except TypeError:
        number = None
    if number is None or not 1 <= number <= most:
        raise ValueError(f"{what}={value!r} is not allowed: give an integer from 1 to {most}")
    return number
