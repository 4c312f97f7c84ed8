"""The roads that a kernel takes to a device, each run on this machine: as SPIR-V in NumPy, or natively."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from foundry_core.codegen.pipeline import (
    TaskletTarget,
    WorkGroupTarget,
    WorkItemTarget,
    read_kernel,
    to_mlir,
    to_tasklet_mlir,
    to_work_group_mlir,
)
from foundry_core.footprint import Footprints
from foundry_core.front.writes import WriteSet
from foundry_core.log import (
    AFTER_LOAD,
    AFTER_STORE,
    CAPACITY,
    FAILED,
    FAILURE_CAPACITY,
    FAILURES,
    FIRST_FAILURE,
    FIRST_PRINTED,
    MAPPED,
    PRINTED,
    RECORD,
    Record,
    Site,
)
from foundry_core.mapping.base.target import DMA_ALIGNMENT
from foundry_core.mapping.simt.lower import lower_simt
from foundry_core.mapping.simt.target import SimtTarget

from . import native
from .devices import DEVICES, launch_on
from .memory import Array, Result

_WORK_ITEMS = 8
# PoCL on a processor with AVX2, as images have it.
_POCL = WorkItemTarget(32, llvm_intrinsics=True, call_bytes=32, converts_f16=True)
# How many printed values a log has room for.
_LINES = 256


@dataclass(frozen=True)
class Kernel:
    """A kernel before the lowering: as Triton's TTIR and TTGIR, and what it says of itself after a launch.

    Attributes:
        ttir, ttgir: the texts; the layouts of the second are those of the road's device.
    """

    ttir: str
    ttgir: str


@dataclass(frozen=True)
class Launched:
    """A run of a kernel.

    Attributes:
        result: what it left; without the log.
        writes: the arguments that the lowering says that it may write through.
        records: what it wrote to its log: failures first.
    """

    result: Result
    writes: WriteSet
    records: list[Record]

    @property
    def arrays(self) -> list[Array]:
        return self.result.arrays


def _checked(sites: Sequence[Site], arguments: Sequence[Any]) -> list[Any]:
    """Return what a checked kernel takes after its arguments, as runtime.arguments does: extents, shadows and maps."""
    arrays = [x for x in arguments if isinstance(x, np.ndarray)]
    made: list[Any] = [x for array in arrays for x in (np.int64(0), np.int64(array.nbytes))]
    for kind, number in dict.fromkeys((site.kind, site.arguments[0] if site.arguments else 0) for site in sites):
        if kind == MAPPED:
            made += [np.zeros(1, np.int8), np.int64(0)]
        elif kind in ("conflict", AFTER_LOAD, AFTER_STORE):
            made += [np.zeros(arguments[number].size, np.int32), np.int64(arguments[number].size)]
    return made


def _log(sites: Sequence[Site]) -> Array | None:
    if not sites:
        return None
    log = np.zeros(FIRST_PRINTED + _LINES * RECORD, np.uint64)
    log[CAPACITY], log[FAILURE_CAPACITY] = _LINES, FAILURES
    return log


def _launched(result: Result, count: int, writes: WriteSet, sites: Sequence[Site]) -> Launched:
    """Return what is known after a launch with `count` arrays of the user's, and the log as the last one of ours."""
    records, low = [], (1 << 32) - 1
    log = result.arrays[-1] if sites else np.zeros(FIRST_PRINTED, np.uint64)
    for number, first in ((log[FAILED], FIRST_FAILURE), (log[PRINTED], FIRST_PRINTED)):
        for at in range(first, first + int(number) * RECORD, RECORD):
            site, place, z, value = map(int, log[at : at + RECORD])
            records.append(Record(sites[site & low], (place & low, place >> 32, z & low), site >> 32, value))
    return Launched(Result(*(part[:count] for part in result)), writes, records)  # type: ignore[arg-type]


def _native(
    lower: Callable[[str], tuple[str, int, int]],
    kernel: Kernel,
    arguments: Sequence[Any],
    grid: Sequence[int],
    check: bool,
) -> Launched:
    """Run a kernel's structured form; `lower` returns MLIR, the slices of a program, and its work-items."""
    read = read_kernel(kernel.ttir, check=check)
    mlir, slices, items = lower(read.text)
    given = [*arguments, *(_checked(read.sites, arguments) if check else ())]
    found = native.run(mlir, given, grid, slices=slices, work_items=items, log=_log(read.sites))
    return _launched(found, _count(arguments), read.writes, read.sites)


def _simt(target: SimtTarget, kernel: Kernel, arguments: Sequence[Any], grid: Sequence[int], check: bool) -> Launched:
    made = lower_simt(kernel.ttgir, target, check=check)
    given = [*arguments, *(_checked(made.sites, arguments) if check else ())]
    found = launch_on(made, target, given, grid, _log(made.sites))
    return _launched(found, _count(arguments), made.writes, made.sites)


def _count(arguments: Sequence[Any]) -> int:
    return sum(isinstance(x, np.ndarray) for x in arguments)


def _tasklet(structured: str) -> tuple[str, int, int]:
    made = to_tasklet_mlir(structured, TaskletTarget())
    return made.text, made.parts, 1


_NATIVE: dict[str, Callable[[str], tuple[str, int, int]]] = {
    "tasklet": _tasklet,
    "work-item": lambda text: (to_mlir(text, WorkItemTarget(vector_bytes=16)), 1, 1),
    "pocl": lambda text: (to_mlir(text, _POCL), 1, 1),
    "work-group": lambda text: (
        to_work_group_mlir(text, WorkGroupTarget(vector_bytes=16, work_items=_WORK_ITEMS)),
        1,
        _WORK_ITEMS,
    ),
}
ROADS = (*_NATIVE, *DEVICES)


def run(
    road: str, kernel: Kernel, arguments: Sequence[Any], grid: Sequence[int] = (1, 1, 1), *, check: bool = False
) -> Launched:
    """Lower a kernel on a road, and run it.

    Args:
        road: one of ROADS.
        arguments: arrays, and NumPy's numbers.
        check: whether it checks its accesses (foundry_core.checked).

    Raises:
        Fault: it does what no device promises.
        LoweringError: it cannot be lowered.
    """
    with np.errstate(all="ignore"):
        if road in _NATIVE:
            return _native(_NATIVE[road], kernel, arguments, grid, check)
        return _simt(DEVICES[road], kernel, arguments, grid, check)


def false_claims(
    road: str, kernel: Kernel, launched: Launched, arguments: Sequence[Any], grid: Sequence[int]
) -> list[str]:
    """Say which arrays a run wrote that are not in the set of written ones, or reached outside of the footprint."""
    # A DMA moves whole words of MRAM.
    word = DMA_ALIGNMENT if road == "tasklet" else 1
    said = []
    numbers = [0 if isinstance(x, np.ndarray) else int(x) for x in arguments]
    (footprint,) = Footprints(read_kernel(kernel.ttir).text).compute(numbers, grid, [0, math.prod(grid)])
    pointers = [number for number, x in enumerate(arguments) if isinstance(x, np.ndarray)]
    for number, read, written in zip(pointers, launched.result.read, launched.result.written, strict=True):
        if written and number not in launched.writes.by_any:
            said.append(f"argument {number} is written, and not in the set of written arguments")
        claimed = footprint[number]
        for what, reached, span in (("read", read, claimed.reads), ("written", written, claimed.writes)):
            if reached and (
                span is None or reached[0] < span.low // word * word or reached[1] > -(-span.high // word) * word
            ):
                said.append(f"argument {number}: bytes {reached} are {what}, and the footprint is {span}")
    return said
