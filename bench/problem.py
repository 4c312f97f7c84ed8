"""A problem: a kernel with one size and type, its arrays, its work, its exact result, and who computes it.

All candidates of a problem read the same values, are checked against NumPy in float64 with an error that is derived
from the arithmetic, and then take turns in one run.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from .measurement import Measurement, Row
from .turns import HOST, Candidate, Candidates, Plan, ratios, take_turns

Array = npt.NDArray[Any]
TYPES: Mapping[str, Any] = {
    "f64": np.float64,
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "i64": np.int64,
    "i32": np.int32,
    "i8": np.int8,
}
# How many turns the candidates of a group have before the fastest of them is compared with other groups.
_TRIALS = 3
# What is in front of and behind each array, so that a store outside of it is seen.
_FENCE = 0xA5
_SCALE = {"GB/s": 1e-9, "GFLOP/s": 1e-9, "TFLOP/s": 1e-12}


@dataclass(frozen=True)
class Problem:
    """One size and type of a benchmark.

    Attributes:
        title: the kernel, the type, the sizes.
        unit: of the rate, of bytes or operations.
        bytes: what must be read and written at least, each byte once.
        operations: of arithmetic; a multiplication and an addition are two, exp or a comparison is one.
        inputs: of the kernel.
        output: where candidates in this machine's memory write.
        exact, allowed: the result in float64 or, where it has no rounding but the type's, in the type; and how far each
            element may be from it.
        launch: launches Triton's kernels once, given devices.Triton.jit, the device's arrays, and launch options.
        torch: does the same with torch's tensors, and returns the result; None if torch cannot be compared.
        peers: makes, on a CPU, the candidates of each peer with the same threads, data and precision.
        others: shown, but not compared, because they do other work or use fewer threads; the name says so.
        checked: the index of the part of the output that `exact` has.
        aim: the project's aim, in words.
    """

    title: str
    unit: str
    bytes: int
    operations: int
    inputs: Sequence[Array]
    output: Array
    exact: Array
    allowed: Array | float
    launch: Callable[..., Any]
    torch: Callable[..., Any] | None = None
    peers: Callable[[], Mapping[str, Candidates]] = dict
    others: Candidates = field(default_factory=dict)
    checked: Any = ...
    aim: str = ""

    @property
    def amount(self) -> float:
        """Return the work of one call in units of the rate times seconds."""
        return (self.bytes if self.unit == "GB/s" else self.operations) * _SCALE[self.unit]

    def check(self, name: str, candidate: Candidate) -> tuple[float, str]:
        """Run a candidate on a poisoned output and compare.

        Returns:
            The largest error as a share of the allowed one, and what the device's compiler says of the kernel.

        Raises:
            AssertionError: an element is further from the exact one than allowed, or was not written; or something was
                written before or behind the output.
        """
        device = candidate.device
        output = self.output if candidate.output is None else candidate.output
        device.use()
        device.poison(output)
        for fence in _fences(self.output):
            fence.fill(_FENCE)
        returned = candidate.call()
        found = device.numpy(returned if candidate.returns else output)
        for fence in _fences(self.output):
            assert (fence == _FENCE).all(), f"{self.title}, {name}: it wrote outside of its output"
        found = found.reshape(self.output.shape)[self.checked]
        said = device.compiled(returned)
        if np.array_equal(found, self.exact):
            return 0.0, said
        allowed = np.broadcast_to(self.allowed, found.shape)
        if found.dtype.kind == "f" and found.dtype.itemsize < self.output.itemsize:
            # A peer that returns a smaller type rounds to it.
            allowed = allowed + np.finfo(found.dtype).eps / 2 * np.abs(self.exact)
        error = np.abs(found.astype(np.float64) - self.exact.astype(np.float64))
        # NaN is not within any bound.
        wrong = ~(error <= allowed)
        assert not wrong.any(), f"{self.title}, {name}: {np.count_nonzero(wrong)} of {wrong.size} elements are wrong"
        return float(np.divide(error, allowed, out=np.zeros_like(error), where=error > 0).max()), said


def measure(problem: Problem, groups: Mapping[str, Candidates], plan: Plan, **more: Any) -> Measurement:
    """Check all candidates of a problem, choose the fastest of each group, and let these take turns.

    Args:
        groups: ours first, then the peers that it is compared with.
        more: for the Measurement. One whose group failed says so in `failed`.
    """
    failed: dict[str, str] = {}
    chosen: dict[str, tuple[Candidate, str, float]] = {}
    for name, candidates in {**groups, **{who: {"": call} for who, call in problem.others.items()}}.items():
        try:
            chosen[name] = _fastest(problem, name, candidates, plan)
        except AssertionError as wrong:
            failed[name] = str(wrong)
        except Exception as failure:
            failed[name] = f"{type(failure).__name__}: {failure}"[:2000]
    times = take_turns({name: each[0] for name, each in chosen.items()}, plan)
    ours, *peers = groups
    compared: dict[str, float] = {}
    for peer in [peer for peer in peers if peer in times and ours in times]:
        compared |= ratios(f"{ours} over {peer}", times[ours], times[peer])
    rows = [
        Row(name, each, problem.amount / each.median, detail=chosen[name][1], error=chosen[name][2])
        for name, each in times.items()
    ]
    kernels = []
    for name, took in times.items():
        candidate, _, _ = chosen[name]
        kernels += candidate.device.kernels(candidate.call, took.median)
    work: dict[str, Any] = {"kernels": kernels, "bytes": problem.bytes, "operations": problem.operations}
    return Measurement(problem.title, rows, problem.unit, compared, aim=problem.aim, failed=failed, **work, **more)


def _fastest(problem: Problem, name: str, candidates: Candidates, plan: Plan) -> tuple[Candidate, str, float]:
    """Return the fastest candidate of a group, how it was launched, and its error.

    Raises:
        AssertionError: one of them is wrong.
        RuntimeError: the device refused all.
    """
    checked: dict[str, tuple[float, str]] = {}
    refused = []
    for detail, candidate in candidates.items():
        try:
            checked[detail] = problem.check(f"{name}, {detail}", candidate)
        except Exception as failure:
            if isinstance(failure, AssertionError) or not candidate.device.refuses:
                raise
            refused.append(f"{detail}: {type(failure).__name__}: {failure}"[:500])
    if not checked:
        raise RuntimeError(f"no configuration ran: {'; '.join(refused)}")
    best = next(iter(checked))
    if len(checked) > 1:
        trial = replace(plan, seconds=0.0, least=_TRIALS, most=_TRIALS, warm=plan.warm / 3)
        times = take_turns({detail: candidates[detail] for detail in checked}, trial)
        best = min(times, key=lambda detail: times[detail].min)
    error, said = checked[best]
    of = f" (fastest of {len(checked)}{f', {len(refused)} refused' if refused else ''})" if len(candidates) > 1 else ""
    return candidates[best], f"{best}{of}{f', {said}' if said else ''}", error


def empty(shape: Sequence[int], kind: str) -> Array:
    """Return a page-aligned array, so that no candidate depends on where malloc happened to put it."""
    dtype = np.dtype(TYPES[kind])
    size = int(np.prod(shape)) * dtype.itemsize
    raw = np.empty(size + 2 * mmap.PAGESIZE, np.uint8)
    start = -raw.__array_interface__["data"][0] % mmap.PAGESIZE
    array: Array = raw[start : start + size].view(dtype).reshape(shape)
    HOST.poison(array)
    return array


def _fences(array: Array) -> tuple[Array, Array]:
    """Return the bytes in front of an array from `empty`, and behind it."""
    raw: Any = array
    while raw.base is not None:
        raw = raw.base
    start = array.__array_interface__["data"][0] - raw.__array_interface__["data"][0]
    return raw[:start], raw[start + array.nbytes :]


def normal(shape: Sequence[int], kind: str, seed: int = 0) -> Array:
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
    return float(ml_dtypes.finfo(TYPES[kind]).eps) / 2  # type: ignore[no-untyped-call]
