"""Writes a tensor as torch prints its tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

_LINE = 80
# From this many elements on, only the first and the last ones of each dimension are written.
_SUMMARIZED, _EDGE = 1001, 3
_START = "tensor("
# The types whose names torch leaves out; without elements, only the first one's.
_USUAL = ("float32", "int64", "bool")


def tensor_text(array: npt.NDArray[Any], dtype: str) -> str:
    """Return an array's elements, and the name of their type unless it is the usual one.

    Args:
        dtype: the name of the elements' type.
    """
    suffixes = [f"size={array.shape}"] if not array.size and array.ndim != 1 else []
    suffixes += [f"dtype={dtype}"] if dtype not in (_USUAL if array.size else _USUAL[:1]) else []
    summarized = array.size >= _SUMMARIZED
    numbers = array if array.dtype.kind in "biu" else array.astype(np.float64)
    written = _START + (
        "[]" if not array.size else _block(numbers, len(_START), summarized, *_form(numbers, summarized))
    )
    for suffix in suffixes:
        last = len(written) - written.rfind("\n") - 1
        written += (",\n" + " " * len(_START) if last + len(suffix) + 3 > _LINE else ", ") + suffix
    return f"{written})"


def _form(numbers: npt.NDArray[Any], summarized: bool) -> tuple[Callable[[Any], str], int]:
    """Return what writes a number, and the width of all numbers."""
    if summarized:
        for axis, extent in enumerate(numbers.shape):
            if extent > 2 * _EDGE:
                numbers = np.take(numbers, [*range(_EDGE), *range(-_EDGE, 0)], axis)
    if numbers.dtype.kind in "biu":
        return str, max(len(str(each)) for each in numbers.ravel().tolist())
    finite = numbers[np.isfinite(numbers) & (numbers != 0)]
    low, high = (np.abs(finite).min(), np.abs(finite).max()) if finite.size else (1.0, 1.0)
    whole = bool((finite == np.ceil(finite)).all())

    def fixed(number: float) -> str:
        return f"{number:.4f}" if not whole else f"{number:.0f}" + "." * math.isfinite(number)

    wide = high / low > 1000 or high > 1e8 or (not whole and low < 1e-4)
    form = "{:.4e}".format if wide else fixed
    return form, max((len(form(each)) for each in finite.tolist()), default=1)


def _block(numbers: npt.NDArray[Any], indent: int, summarized: bool, form: Callable[[Any], str], width: int) -> str:
    """Return the numbers in brackets, which begin behind `indent` characters; of rank 0, the number alone."""
    if numbers.ndim == 0:
        return form(numbers.item()).rjust(width)
    cut = summarized and len(numbers) > 2 * _EDGE
    shown = [*numbers[:_EDGE], *numbers[-_EDGE:]] if cut else list(numbers)
    if numbers.ndim == 1:
        parts = [form(each.item()).rjust(width) for each in shown]
        parts[_EDGE:_EDGE] = [" ..."] * cut
        fitting = max(1, (_LINE - indent) // (width + 2))
        parts = [", ".join(parts[at : at + fitting]) for at in range(0, len(parts), fitting)]
    else:
        parts = [_block(np.asarray(each), indent + 1, summarized, form, width) for each in shown]
        parts[_EDGE:_EDGE] = ["..."] * cut
    between = "," + "\n" * max(1, numbers.ndim - 1) + " " * (indent + 1)
    return f"[{between.join(parts)}]"
