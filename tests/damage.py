"""Values of JSON as other programs, or other people, may have written them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

# Half of a pair of surrogates, a control character, and rich's markup, which nothing opens.
TEXT = "[/]:bug:\0\x1b\ud800"


def altered(value: Any) -> Iterator[Any]:
    """Yield copies of a value in which one thing is missing, or is something else."""
    yield from (None, -5, TEXT, [], math.inf)
    if isinstance(value, dict):
        for key in value:
            yield {other: value[other] for other in value if other != key}
            yield from (value | {key: each} for each in altered(value[key]))
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from ([*value[:place], each, *value[place + 1 :]] for each in altered(item))
