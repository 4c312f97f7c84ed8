"""What a launch in the checked mode does with its arrays, seen from the host: strides that the kernel does not get, and
elements that it leaves unwritten.

Both may be meant: a kernel may know a stride, or another launch may write the rest. So they are warnings, and not
findings: Python prints each once, with the line of the launch.

- An array is not contiguous, and neither an integer argument nor a constant of the kernel is one of its strides. An
  array that fills its memory in another order, such as a transposed one, counts only if the kernel cannot work on all
  elements alike: if an array of the same shape has other strides, or a number is one of its extents.
- Elements of an array that the kernel stores to were poison (memory.py) before the launch, and some still are, while
  others were written.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import source_lines
from ..failure import Failure
from ..log import Site
from .memory import memory_of, poison_mask

# What warnings Python has shown, by their text.
_shown: dict[Any, Any] = {}


class CheckWarning(Failure, UserWarning):
    """A launch in the checked mode did what is often a mistake."""


@dataclass(frozen=True)
class Launch:
    """A launch that is about to run.

    Attributes:
        kernel: its name.
        grid: programs along x, y and z.
        arrays: the arguments that are pointers, by number; of a descriptor its array.
        stored: the numbers of those that the kernel may store through.
        named: what was passed for each parameter, and what is compiled in.
        names: of the parameters, by the number of the argument.
        sites: the kernel's accesses, with the numbers of their arguments.
    """

    kernel: str
    grid: tuple[int, int, int]
    arrays: Mapping[int, Any]
    stored: Sequence[int]
    named: Mapping[str, Any]
    names: Sequence[str]
    sites: Sequence[Site]

    def accesses(self, number: int, operation: str = "") -> str:
        """Return the places that access an argument, as text: FILE:LINE and FILE:LINE; "" if none is known."""
        found = [site for site in self.sites if number in site.arguments and site.text.endswith(operation)]
        return " and ".join(dict.fromkeys(site.location() for site in found))


class Watch:
    """The arrays of a launch, before and after it. Warns of strides when it is made.

    Args:
        launch: about to run.
    """

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        _check_strides(launch)
        views = {number: memory_of(launch.arrays[number]) for number in launch.stored}
        self._poison = {number: poison_mask(view) for number, view in views.items() if view is not None}

    def finish(self) -> None:
        """Warn of what the launch left unwritten."""
        for number, before in self._poison.items():
            view = memory_of(self._launch.arrays[number]) if before.any() else None
            if view is not None:
                left = before & poison_mask(view)
                written = int(before.sum() - left.sum())
                if left.any() and written:
                    _warn_of_rest(self._launch, number, left, written)


def _warn(launch: Launch, what: str, why: str, next: str) -> None:
    file, _, line = source_lines.caller().rpartition(":")
    warning = CheckWarning(f"kernel {launch.kernel} {what}", why=why, next=next)
    warnings.warn_explicit(warning, CheckWarning, file or "unknown", int(line or 0), registry=_shown)


# Strides.


def _check_strides(launch: Launch) -> None:
    integers = set(_integers(launch.named.values()))
    layouts = {number: layout for number, array in launch.arrays.items() if (layout := _layout(array))}
    for number, (shape, strides) in layouts.items():
        extents = [extent for extent in shape if extent != 1]
        steps = [stride for extent, stride in zip(shape, strides, strict=True) if extent != 1]
        if _is_contiguous(extents, steps) or integers.intersection(steps) - {1}:
            continue
        if math.prod(shape) > 1 + sum(
            (extent - 1) * step for extent, step in zip(extents, steps, strict=True) if step > 0
        ):
            # A kernel that does not know the stride leaves the array, which is a finding.
            continue
        if _is_dense(extents, steps):
            others = [each for each in layouts.values() if each[0] == shape and each[1] != strides]
            if not others and not integers.intersection(extents):
                continue
        name = launch.names[number]
        given = ", ".join(f"{key}={value}" for key, value in launch.named.items() if type(value) is int)
        dimension = next(i for i, stride in enumerate(strides) if shape[i] != 1 and stride != 1)
        _warn(
            launch,
            f"gets {name}, which is not contiguous, and none of its strides",
            f"{name} has shape {shape} and strides {strides}, in elements; the kernel gets "
            f"{given or 'no integer'}, and accesses {name} at {launch.accesses(number) or 'an unknown line'}",
            f"pass its stride and multiply the index with it: {name}.strides[{dimension}] // {name}.itemsize, or of a "
            f"tensor {name}.stride({dimension}); or pass numpy.ascontiguousarray({name})",
        )


def _layout(tensor: Any) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return shape and strides in elements; None if they are not known."""
    base = getattr(tensor, "base", tensor)
    try:
        return tuple(base.shape), tuple(base.stride())
    except (AttributeError, TypeError, ValueError):
        return None


def _is_contiguous(shape: Sequence[int], strides: Sequence[int]) -> bool:
    return 0 in shape or list(strides) == [math.prod(shape[i + 1 :]) for i in range(len(shape))]


def _is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Return whether an array is contiguous in some order of its dimensions."""
    order = sorted(range(len(shape)), key=lambda i: -strides[i])
    return _is_contiguous([shape[i] for i in order], [strides[i] for i in order])


def _integers(values: Iterable[Any]) -> Iterator[int]:
    for value in values:
        if isinstance(value, tuple | list):
            yield from _integers(value)
        elif type(value) is int:
            yield value
        elif hasattr(value, "block_shape") and hasattr(value, "strides"):  # a descriptor
            yield from _integers(value.strides)


# Unwritten elements.


def _warn_of_rest(launch: Launch, number: int, rest: npt.NDArray[np.bool_], count: int) -> None:
    """Warn of an array that a launch left partly unwritten.

    Args:
        rest: the elements that were never written.
        count: how many this launch wrote.
    """
    places = np.flatnonzero(rest)
    first, last = (
        int(i) if rest.ndim < 2 else [int(n) for n in np.unravel_index(i, rest.shape)] for i in places[[0, -1]]
    )
    some = "" if len(places) == places[-1] - places[0] + 1 else f", {len(places)} of them,"
    programs = math.prod(launch.grid)
    each = -(-count // programs)
    block = next((key for key, value in launch.named.items() if type(value) is int and value == each), str(each))
    grid = ", ".join(map(str, launch.grid)) if launch.grid[1:] != (1, 1) else f"{launch.grid[0]},"
    name = launch.names[number]
    _warn(
        launch,
        f"leaves elements {first} to {last}{some} of {rest.size} of {name} unwritten",
        f"nothing was written to them since {name} was made. The grid is ({grid}), {programs} program(s), and the "
        f"store at {launch.accesses(number, 'store') or 'an unknown line'} wrote {count} elements",
        f"if the grid is too small: grid=(triton.cdiv({count + len(places)}, {block}),). If another launch writes "
        f"the rest, go on",
    )
