"""Plan which DPU runs which programs of a grid, and which bytes of each array it needs for them.

A launch is divided into parts of neighbouring programs, one part per DPU. If the arrays of a part do not fit into MRAM,
the launch has several rounds. In a part, an array is sharded: it is present from the first to the last byte that the
part's programs may reach (foundry_core.footprint). If those bytes are unknown, or if the caller asks for it, the whole
array is present: it is replicated.

Arrays have the same addresses in every DPU's MRAM, so that one transfer serves all DPUs. Arguments whose bytes overlap
on any DPU share one copy there, which keeps aliased and in-place arguments right.

Atomic operations have no effect on another DPU. If their order does not matter, what the DPUs did is merged after the
round (merging.py). Otherwise no two DPUs of a round may reach the same elements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from types import MappingProxyType

from foundry_core.footprint import Footprint, Span

from .merging import Merge

# Bytes. An address in MRAM equals the host's address modulo this, so that the alignment of a pointer that the compiler
# was told (Triton tells it of multiples of 16) is true in MRAM. It is a multiple of the 8 that transfers and DMAs need.
ALIGNMENT = 16


class MemoryExceeded(Exception):
    """The arrays that the programs of one DPU need at the same time are larger than its MRAM."""


class Inseparable(Exception):
    """The programs cannot be spread over several DPUs: atomic operations of one DPU have no effect on another one."""


class Placement(StrEnum):
    """How an array is spread over DPUs."""

    SHARDED = "sharded"
    REPLICATED = "replicated"


@dataclass(frozen=True)
class ArrayPlacement:
    """How one array is spread, the reason in words, and whether each DPU gets the whole allocation."""

    placement: Placement
    why: str
    copies_allocation: bool


@dataclass(frozen=True)
class Array:
    """The memory of a pointer argument, as host addresses.

    Attributes:
        name: the parameter's name.
        address: the address that the argument points to.
        low, high: bounds of the allocation that it points into. A kernel may reach nothing else.
        item_bytes: size of an element.
    """

    name: str
    address: int
    low: int
    high: int
    item_bytes: int


@dataclass(frozen=True)
class ByteInterval:
    """Host addresses low <= a < high."""

    low: int
    high: int

    def overlaps(self, other: ByteInterval) -> bool:
        return self.low < other.high and other.low < self.high


@dataclass(frozen=True)
class Region:
    """Arguments that share memory in MRAM; usually only one.

    Attributes:
        arguments: the parameters' indices.
        offset: where it starts in MRAM, in bytes from the heap's start.
        size: bytes, a multiple of ALIGNMENT, the same on every DPU.
        held: for each DPU, the host's bytes that are in this region. `low` is a multiple of ALIGNMENT and is stored at
            `offset`. None if the DPU's programs reach nothing.
        memory: the allocation that contains all of the region.
        sent: whether the DPUs need its contents.
        writes: for each DPU, what its programs may have written; intervals that do not overlap.
        item_bytes: size of an element, 1 if arguments of several types share memory.
        merge: how the copies of several DPUs are combined; None if a DPU's copy starts as the array's contents.
    """

    arguments: tuple[int, ...]
    offset: int
    size: int
    held: tuple[ByteInterval | None, ...]
    memory: ByteInterval
    sent: bool
    writes: tuple[tuple[ByteInterval, ...], ...]
    item_bytes: int
    merge: Merge | None = None


@dataclass(frozen=True)
class Round:
    """What the DPUs do between one start and their end.

    Attributes:
        programs: for each DPU, the first program and the number of programs.
        regions: the arrays in MRAM.
    """

    programs: tuple[tuple[int, int], ...]
    regions: tuple[Region, ...]


@dataclass(frozen=True)
class LaunchPlan:
    """A whole launch: its rounds, and for each array how it is spread and the most bytes that one DPU has of it."""

    rounds: tuple[Round, ...]
    placements: Mapping[int, tuple[ArrayPlacement, int]]


def plan_launch(
    arrays: Mapping[int, Array],
    footprints: Callable[[Sequence[int]], Sequence[Mapping[int, Footprint]]],
    *,
    programs: int,
    dpus: int,
    heap: int,
    capacity: int,
    wanted: Mapping[str, Placement],
    atomics: Mapping[int, Merge | str] = MappingProxyType({}),
) -> LaunchPlan:
    """Divide a launch into rounds and parts.

    Args:
        arrays: the pointer arguments, by their parameter's index.
        footprints: returns the footprints of the parts between bounds, see foundry_core.footprint.Footprints.compute.
        programs: number of programs in the grid, at least one.
        dpus: number of DPUs, at most one per program.
        heap: the first MRAM address that is free.
        capacity: number of free bytes from there.
        wanted: placements by parameter name. All other arrays are sharded if they can be.
        atomics: for arrays that are changed atomically, how to merge copies, or why that cannot be done.

    Raises:
        Inseparable: several DPUs would reach the same elements of an array that cannot be merged.
        MemoryExceeded: one program alone reaches more than `capacity`, or `wanted` says sharded for an argument that
            cannot be.
    """
    rounds = 1
    while True:
        parts = min(rounds * dpus, programs)
        bounds = [programs * part // parts for part in range(parts + 1)]
        reached = footprints(bounds)
        placements = {i: _placed(array, [part[i] for part in reached], wanted) for i, array in arrays.items()}
        planned = [
            _round(
                arrays, reached[first : first + dpus], placements, bounds[first : first + dpus + 1], dpus, heap, atomics
            )
            for first in range(0, parts, dpus)
        ]
        need = max(map(_room, planned))
        if need <= capacity:
            return LaunchPlan(tuple(planned), {i: (placements[i], _largest(planned, i)) for i in arrays})
        if parts == programs:
            raise MemoryExceeded(_too_large(arrays, planned, placements, capacity))
        # Shards shrink with more rounds, replicated arrays do not. Therefore this is a lower bound for the rounds.
        rounds = max(rounds + 1, rounds * need // capacity)


def _placed(array: Array, parts: Sequence[Footprint], wanted: Mapping[str, Placement]) -> ArrayPlacement:
    spans = [span for part in parts for span in (part.reads, part.writes) if span is not None]
    asked = wanted.get(array.name)
    if asked is Placement.REPLICATED:
        return ArrayPlacement(asked, "as asked", copies_allocation=True)
    # A span beyond both ends of the allocation is only a guess: no kernel goes there.
    if any(
        span.is_all or (array.address + span.low < array.low and array.address + span.high > array.high)
        for span in spans
    ):
        why = "its addresses depend on more than program ids and integer arguments"
        if asked is Placement.SHARDED:
            raise MemoryExceeded(f"{array.name} cannot be sharded: {why}")
        return ArrayPlacement(Placement.REPLICATED, why, copies_allocation=True)
    if not spans:
        return ArrayPlacement(Placement.SHARDED, "no program reaches it", copies_allocation=False)
    if len(parts) > 1 and len({_hull(part) for part in parts}) == 1:
        return ArrayPlacement(Placement.REPLICATED, "all programs reach the same bytes", copies_allocation=False)
    return ArrayPlacement(Placement.SHARDED, "its addresses follow the program ids", copies_allocation=False)


def _hull(part: Footprint) -> tuple[int, int] | None:
    spans = [span for span in (part.reads, part.writes) if span is not None]
    return (min(span.low for span in spans), max(span.high for span in spans)) if spans else None


def _interval(array: Array, span: Span | None, is_whole: bool) -> ByteInterval | None:
    """Return the host addresses of a span within the array's allocation; None if there are none."""
    if span is None:
        return None
    if is_whole:
        low, high = array.low, array.high
    else:
        low, high = max(array.address + span.low, array.low), min(array.address + span.high, array.high)
    return ByteInterval(low, high) if low < high else None


def _round(
    arrays: Mapping[int, Array],
    parts: Sequence[Mapping[int, Footprint]],
    placements: Mapping[int, ArrayPlacement],
    bounds: Sequence[int],
    dpus: int,
    heap: int,
    atomics: Mapping[int, Merge | str],
) -> Round:
    """Return one round and its arrays. If there are fewer parts than DPUs, the last DPUs have no work."""
    replicated = {i for i in arrays if placements[i].copies_allocation}

    def intervals(spans: Mapping[int, Span | None]) -> dict[int, ByteInterval]:
        return {i: at for i, array in arrays.items() if (at := _interval(array, spans[i], i in replicated))}

    reads = [intervals({i: footprint.reads for i, footprint in part.items()}) for part in parts]
    writes = [intervals({i: footprint.writes for i, footprint in part.items()}) for part in parts]
    solid = [{i for i, footprint in part.items() if footprint.solid} - replicated for part in parts]
    held = [_together(one, other) for one, other in zip(reads, writes, strict=True)]
    if len(parts) > 1:
        _check_atomics(arrays, held, writes, atomics)
    regions, offset = [], -heap % ALIGNMENT
    for members in _groups(list(arrays), held):
        region = _region(arrays, members, reads, writes, held, solid, dpus, offset)
        # No other argument shares the memory of an array that is merged (_check_atomics).
        how = atomics.get(members[0]) if len(parts) > 1 else None
        if isinstance(how, Merge):
            region = replace(region, merge=how)
        regions.append(region)
        offset += region.size
    idle = [(bounds[-1], 0)] * (dpus - len(parts))
    return Round((*((low, high - low) for low, high in pairwise(bounds)), *idle), tuple(regions))


def _check_atomics(
    arrays: Mapping[int, Array],
    held: Sequence[Mapping[int, ByteInterval]],
    writes: Sequence[Mapping[int, ByteInterval]],
    atomics: Mapping[int, Merge | str],
) -> None:
    """Refuse a round in which a DPU would have to see what another one does.

    Raises:
        Inseparable: names the array, and says why.
    """
    hulls = {i: hull for i in arrays if (hull := _hull_of([part[i] for part in held if i in part]))}
    written = {i for part in writes for i in part}
    for i, how in atomics.items():
        for j, theirs in hulls.items():
            if j != i and i in hulls and hulls[i].overlaps(theirs) and (i in written or j in written):
                raise Inseparable(f"{arrays[i].name}, which is changed atomically, shares memory with {arrays[j].name}")
        if isinstance(how, str) and i in written:
            intervals = sorted((part[i] for part in held if i in part), key=lambda interval: interval.low)
            if any(one.high > other.low for one, other in pairwise(intervals)):
                raise Inseparable(f"several DPUs would reach the same elements of {arrays[i].name}, and {how}")


def _hull_of(intervals: Sequence[ByteInterval]) -> ByteInterval | None:
    return ByteInterval(min(i.low for i in intervals), max(i.high for i in intervals)) if intervals else None


def _together(one: Mapping[int, ByteInterval], other: Mapping[int, ByteInterval]) -> dict[int, ByteInterval]:
    both = dict(one)
    for i, interval in other.items():
        known = both.get(i, interval)
        both[i] = ByteInterval(min(known.low, interval.low), max(known.high, interval.high))
    return both


def _groups(arguments: Sequence[int], held: Sequence[Mapping[int, ByteInterval]]) -> list[list[int]]:
    """Group arguments whose bytes overlap on a DPU. Groups whose hulls overlap after that are joined, too."""
    groups = [[i] for i in arguments]
    changed = True
    while changed:
        changed = False
        for a in range(len(groups)):
            for b in range(len(groups) - 1, a, -1):
                hulls = ((_held_by(part, groups[a]), _held_by(part, groups[b])) for part in held)
                if any(one and other and one.overlaps(other) for one, other in hulls):
                    groups[a] += groups.pop(b)
                    changed = True
    return groups


def _held_by(part: Mapping[int, ByteInterval], group: Sequence[int]) -> ByteInterval | None:
    """Return what one DPU has of a group: all bytes from the first to the last."""
    return _hull_of([part[i] for i in group if i in part])


def _region(
    arrays: Mapping[int, Array],
    members: Sequence[int],
    reads: Sequence[Mapping[int, ByteInterval]],
    writes: Sequence[Mapping[int, ByteInterval]],
    held: Sequence[Mapping[int, ByteInterval]],
    solid: Sequence[set[int]],
    dpus: int,
    offset: int,
) -> Region:
    idle = dpus - len(held)
    here: list[ByteInterval | None] = []
    for part in held:
        exact = _held_by(part, members)
        here.append(ByteInterval(exact.low // ALIGNMENT * ALIGNMENT, exact.high) if exact else None)
    size = max((-(-(h.high - h.low) // ALIGNMENT) * ALIGNMENT for h in here if h), default=0)
    merged = [_merged([part[i] for i in members if i in part]) for part in writes]
    # The DPUs need the contents if a program reads, or if it may leave bytes unwritten, which come back unchanged.
    keep = any(i in part for part in reads for i in members)
    keep = keep or any(i in part and i not in solid[k] for k, part in enumerate(writes) for i in members)
    sizes = {arrays[i].item_bytes for i in members}
    return Region(
        arguments=tuple(members),
        offset=offset,
        size=size,
        held=(*here, *[None] * idle),
        memory=ByteInterval(min(arrays[i].low for i in members), max(arrays[i].high for i in members)),
        sent=keep,
        writes=(*merged, *[()] * idle),
        item_bytes=sizes.pop() if len(sizes) == 1 else 1,
    )


def _merged(intervals: Sequence[ByteInterval]) -> tuple[ByteInterval, ...]:
    merged: list[ByteInterval] = []
    for interval in sorted(intervals, key=lambda interval: interval.low):
        if merged and interval.low <= merged[-1].high:
            merged[-1] = ByteInterval(merged[-1].low, max(merged[-1].high, interval.high))
        else:
            merged.append(interval)
    return tuple(merged)


def _room(one: Round) -> int:
    """Return the bytes of MRAM that are needed, from the heap's start."""
    return max((region.offset + region.size for region in one.regions), default=0)


def _largest(rounds: Sequence[Round], argument: int) -> int:
    """Return the most bytes that a DPU holds of an argument's region."""
    regions = [region for one in rounds for region in one.regions if argument in region.arguments]
    return max((held.high - held.low for region in regions for held in region.held if held), default=0)


def _too_large(
    arrays: Mapping[int, Array],
    rounds: Sequence[Round],
    placements: Mapping[int, ArrayPlacement],
    capacity: int,
) -> str:
    need = max(map(_room, rounds))
    sizes = ", ".join(
        f"{array.name} {_largest(rounds, i)} of {array.high - array.low} bytes ({placed.placement}: {placed.why})"
        for (i, array), placed in zip(arrays.items(), placements.values(), strict=True)
    )
    return f"one program alone needs {need} bytes of MRAM, a DPU has room for {capacity}: {sizes}"
