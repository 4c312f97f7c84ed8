"""What a benchmark is: a problem of one size and type, with its work, its exact result, and who computes it.

A module of bench/suite/ makes the problems of one kernel. All candidates of a problem read the same arrays, are checked
against NumPy in float64 with an error that is derived from the arithmetic, and then take turns in one run.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
from measure import Times, interleaved, pace, ratios
from measurement import Measurement, Row

OURS = "Triton"
TYPES: Mapping[str, Any] = {
    "f64": np.float64,
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "i32": np.int32,
    "i8": np.int8,
}
# How many turns the candidates of a group have before the fastest of them is compared with other groups.
_TRIALS = 3
# What is in front of and behind each array, so that a store outside of it is seen.
_FENCE = 0xA5
# Seconds that the turns of a problem take.
_SECONDS = 1.0


@dataclass(frozen=True)
class Returning:
    """A candidate that returns its result instead of writing it to the problem's output.

    Attributes:
        call: does the work.
        values: makes an array of what it returned, without being timed.
    """

    call: Callable[[], Any]
    values: Callable[[Any], npt.NDArray[Any]] = np.asarray

    def __call__(self) -> object:
        return self.call()


Candidates = Mapping[str, Callable[[], object]]


@dataclass(frozen=True)
class Problem:
    """One size and type of a benchmark.

    Attributes:
        title: the kernel, the type, the sizes.
        unit: of the rate: "GB/s" or "GFLOP/s".
        bytes: what must be read and written at least, each byte once.
        operations: of arithmetic; a multiplication and an addition are two, exp or a comparison is one.
        output: where candidates write.
        exact, allowed: the result in float64, and how far each element may be from it.
        ours: Triton's candidates by the options that they were launched with; the fastest is compared.
        peers: by name, with the same threads, data and precision; of each, the fastest is compared.
        others: shown, but not compared, because they do other work or use fewer threads; the name says so.
        aim: the project's aim, in words.
    """

    title: str
    unit: str
    bytes: int
    operations: int
    output: npt.NDArray[Any]
    exact: npt.NDArray[Any]
    allowed: npt.NDArray[Any] | float
    ours: Candidates
    peers: Mapping[str, Candidates]
    others: Candidates = field(default_factory=dict)
    aim: str = ""

    @property
    def amount(self) -> float:
        """Return the work of one call in units of the rate times seconds."""
        return (self.bytes if self.unit == "GB/s" else self.operations) * 1e-9

    def check(self, name: str, candidate: Callable[[], object]) -> None:
        """Run a candidate on a poisoned output and compare.

        Raises:
            AssertionError: an element is further from the exact one than allowed, or was not written; or something was
                written before or behind the output.
        """
        poison(self.output)
        returned = candidate()
        assert _around(self.output) == {_FENCE}, f"{self.title}, {name}: it wrote outside of its output"
        found = candidate.values(returned) if isinstance(candidate, Returning) else self.output
        assert found.shape == self.exact.shape, f"{self.title}, {name}: the shape is {found.shape}"
        error = np.abs(found.astype(np.float64) - self.exact)
        # NaN is not within any bound.
        wrong = ~(error <= self.allowed)
        assert not wrong.any(), f"{self.title}, {name}: {np.count_nonzero(wrong)} of {wrong.size} elements are wrong"


@dataclass(frozen=True)
class Suite:
    """The problems of a module of bench/suite/."""

    module: str

    def cases(self, *, full: bool) -> Iterator[tuple[str, Callable[[], list[Measurement]]]]:
        """Yield each problem by name, and what measures it."""
        module = import_module(f"suite.{self.module}")
        for arguments in module.FULL if full else module.QUICK:
            yield (
                " ".join(map(str, arguments)),
                lambda arguments=arguments: [measure(module.problem(*arguments), _SECONDS)],  # type: ignore[misc]
            )


def measure(problem: Problem, seconds: float) -> Measurement:
    """Check all candidates of a problem, choose the fastest of each group, and let these take turns.

    Args:
        seconds: about how long the turns take.
    """
    groups = {OURS: problem.ours, **problem.peers, **{name: {"": call} for name, call in problem.others.items()}}
    chosen: dict[str, str] = {}
    for name, candidates in groups.items():
        for detail, candidate in candidates.items():
            problem.check(f"{name}, {detail}", candidate)
        chosen[name] = _fastest(candidates)
    calls = {name: groups[name][detail] for name, detail in chosen.items()}
    times = interleaved(calls, **pace(calls, seconds))
    compared: dict[str, float] = {}
    for peer in problem.peers:
        compared |= ratios(f"{OURS} over {peer}", [times[OURS]], [times[peer]])
    return Measurement(
        title=problem.title,
        rows=[
            Row(name, each, problem.amount / each.median, detail=_detail(chosen[name], groups[name]))
            for name, each in times.items()
        ],
        unit=problem.unit,
        ratios=compared,
        aim=problem.aim,
        bytes=problem.bytes,
        operations=problem.operations,
    )


def _fastest(candidates: Candidates) -> str:
    if len(candidates) == 1:
        return next(iter(candidates))
    times: Mapping[str, Times] = interleaved(candidates, rounds=_TRIALS)
    return min(times, key=lambda name: times[name].min)


def _detail(chosen: str, candidates: Candidates) -> str:
    return f"{chosen} (fastest of {len(candidates)})" if len(candidates) > 1 else chosen


def poison(array: npt.NDArray[Any]) -> None:
    """Fill an array with NaN, or with a pattern if its type has none."""
    array.fill(0x55 if array.dtype.kind in "iu" else np.nan)


def empty(shape: Sequence[int], kind: str) -> npt.NDArray[Any]:
    """Return a page-aligned array, so that no candidate depends on where malloc happened to put it."""
    dtype = np.dtype(TYPES[kind])
    size = int(np.prod(shape)) * dtype.itemsize
    raw = np.empty(size + 2 * mmap.PAGESIZE, np.uint8)
    raw[: mmap.PAGESIZE] = raw[size:] = _FENCE
    start = -raw.__array_interface__["data"][0] % mmap.PAGESIZE
    array = raw[start : start + size].view(dtype).reshape(shape)
    poison(array)
    return array


def _around(array: npt.NDArray[Any]) -> set[int]:
    """Return the bytes that are found in front of an array from `empty`, and behind it."""
    raw = array
    while raw.base is not None:
        raw = raw.base
    start = array.__array_interface__["data"][0] - raw.__array_interface__["data"][0]
    return {*np.unique(raw[:start]).tolist(), *np.unique(raw[start + array.nbytes :]).tolist()}


def normal(shape: Sequence[int], kind: str, seed: int = 0) -> npt.NDArray[Any]:
    """Return a page-aligned array of random numbers: of mean 0 and variance 1, or any integers of the type."""
    array, random = empty(shape, kind), np.random.default_rng(seed)
    if array.dtype.kind == "i":
        limits = np.iinfo(array.dtype)
        array[...] = random.integers(limits.min, limits.max, shape, array.dtype, endpoint=True)
    else:
        array[...] = random.standard_normal(shape, np.float32)
    return array


def unit(kind: str) -> float:
    """Return the unit roundoff of a type: half the distance from 1 to the next number."""
    return float(ml_dtypes.finfo(TYPES[kind]).eps) / 2


def torch_views(*arrays: npt.NDArray[Any]) -> list[Any]:
    """Return torch's tensors in the memory of arrays."""
    import torch

    return [
        torch.from_numpy(array.view(np.uint16)).view(torch.bfloat16)
        if array.dtype == TYPES["bf16"]
        else torch.from_numpy(array)
        for array in arrays
    ]
