"""Compare in the checked mode what the programs of several DPUs store (foundry_core.checked.instrument).

Each DPU has a copy of an array's shadow, in which its own programs find their conflicts. The copies are merged like
those of an array that is changed atomically (merging.py). Where two DPUs have stored to the same element, their words
are compared here as a kernel compares them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from foundry_core.checked.extents import extent
from foundry_core.log import FAILED, FAILURES, FIRST_FAILURE, INDEX_BITS, RECORD, Log, Words, hash_bits
from foundry_core.runtime.launches import Grid

from .merging import Merge

_Words: TypeAlias = npt.NDArray[np.uint32]
_WORD = 4


@dataclass(frozen=True)
class _Comparison(Merge):
    """The merging of a shadow.

    Attributes:
        differing: words that differ, of elements to which two DPUs have stored: the address of the word that was merged
            first, the places of these words from there, and the words of the two DPUs.
    """

    differing: list[tuple[int, npt.NDArray[np.intp], _Words, _Words]] = field(default_factory=list)

    def combine(self, into: npt.NDArray[np.uint8], part: npt.NDArray[np.uint8]) -> None:
        here, other = into.view(np.uint32), part.view(np.uint32)
        places = np.flatnonzero((here != 0) & (other != 0) & (here != other))
        if places.size:
            self.differing.append((into.ctypes.data, places, here[places], other[places]))
        np.copyto(here, other, where=other != 0)


class Comparisons:
    """The comparisons of a kernel's stores.

    Args:
        log: of the kernel; the places of conflicts between DPUs are added to its sites.
        shadows: the number of each shadow among the kernel's arguments, and that of the argument that it is for.

    Attributes:
        merges: how to merge each shadow, by its number.
    """

    def __init__(self, log: Log, shadows: Mapping[int, int]) -> None:
        self._shadows = dict(shadows)
        self._sites: dict[int, int] = {}
        self.merges = {shadow: _Comparison("comparison", "i32") for shadow in shadows}
        for shadow, argument in shadows.items():
            self._sites[shadow] = len(log.sites)
            # The place is all stores to the argument: a shadow does not say which.
            first, *others = (s for s in log.sites if s.kind == "conflict" and s.arguments == (argument,))
            text = " or at ".join(["store", *(site.location() for site in others)])
            log.sites.append(replace(first, text=text, shape=()))

    def begin(self) -> None:
        """Forget the last launch."""
        for merge in self.merges.values():
            merge.differing.clear()

    def log(self, grid: Grid, values: Sequence[Any], sizes: Mapping[int, int]) -> Words:
        """Return the conflicts between DPUs as a log of failures: one for each array and program.

        Args:
            values: the arguments of the launch.
            sizes: bytes of an element of each pointer, by its number.
        """
        rows: list[tuple[int, int, int, int]] = []
        bits = np.uint32(hash_bits(math.prod(grid)))
        for shadow, merge in self.merges.items():
            argument, by_program = self._shadows[shadow], dict[int, int]()
            first = extent(values[argument])[0] // sizes[argument]
            for address, places, before, now in merge.differing:
                different = before ^ now
                conflicts = (different >> bits != 0) & (different << (np.uint32(32) - bits) != 0)
                programs, at = np.unique(now[conflicts] >> bits, return_index=True)
                start = first + (address - values[shadow].data_ptr()) // _WORD
                others = zip(places[conflicts][at].tolist(), (before[conflicts][at] >> bits).tolist(), strict=True)
                for program, (place, other) in zip(programs.tolist(), others, strict=True):
                    index = (start + place) % (1 << INDEX_BITS)
                    by_program.setdefault(program, other << INDEX_BITS | index)
            for program, value in by_program.items():
                line, x = divmod(program - 1, grid[0])
                z, y = divmod(line, grid[1])
                rows.append((self._sites[shadow], x | y << 32, z, value))
        words = np.zeros(FIRST_FAILURE + FAILURES * RECORD, np.uint64)
        words[FAILED] = len(rows)
        shown = np.array(sorted(rows, key=lambda row: (row[2], row[1] >> 32, row[1]))[:FAILURES], np.uint64)
        words[FIRST_FAILURE:][: shown.size] = shown.ravel()
        return words
