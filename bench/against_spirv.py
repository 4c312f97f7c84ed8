"""Compare vsi with the spirv target: the same kernels on the same device, compiled by zen-compiler and in the process.

The spirv plugin must be installed next to vsi's plugin. Kernels in vsi's modes are timed too, but the ratios leave them
out: the device is a CPU, which does the work of a tensor core and of many threads without having either.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import first_launch
import latency
import matmul
import numpy as np
import stages
import triton
from arrays import aligned
from foundry_core.tensor import Tensor
from matmul import allowed_error, matmul_kernel
from measure import Times, interleaved, ratios
from measurement import Measurement, Row
from tutorials import Tutorials
from vec_add import add_kernel

OURS, PEER = "vsi", "spirv"
MODES: dict[str, dict[str, bool]] = {"TC": {"enable_tc": True}, "threads": {"enable_multi_threads": True}}
# A block size that is good for both targets.
MODES_BLOCK = (64, 64, 32)
LENGTH = 2**25
BLOCKS = (1024, 4096, 16384)
SIZE, GROUP = 1024, 8
# Rows, columns and depth of a program's block.
TILES = ((32, 32, 32), (64, 64, 32), (64, 64, 64), (64, 128, 64), (128, 128, 64), (128, 256, 64), (256, 256, 64))
ROUNDS = 20


@functools.cache
def _driver(target: str) -> Any:
    return triton.backends.backends[target].driver()


@contextmanager
def _active(target: str) -> Iterator[None]:
    """Make Triton compile for this target those kernels that are launched for the first time in the context."""
    before = triton.runtime.driver.active
    triton.runtime.driver.set_active(_driver(target))
    try:
        yield
    finally:
        triton.runtime.driver.set_active(before)


class Candidates:
    """Launches by name, each compiled for its target, run and checked once when it is added."""

    def __init__(self) -> None:
        self.launches: dict[str, Callable[[], object]] = {}

    def add(
        self, target: str, what: str, kernel: Any, launch: Callable[[Any], object], check: Callable[[], bool]
    ) -> None:
        """Check and add the launch of a copy of the kernel: a copy, because a kernel is compiled for one target."""
        name = f"{target}, {what}"
        copy = triton.jit(kernel.fn)
        self.launches[name] = functools.partial(launch, copy)
        with _active(target):
            self.launches[name]()
        assert check(), f"{name} is wrong"
        assert _ran_on(OURS) == _ran_on(PEER), f"{_ran_on(OURS)} and {_ran_on(PEER)} cannot be compared"

    def times(self, rounds: int, batch: int = 1) -> dict[str, Times]:
        return interleaved(self.launches, rounds=rounds, batch=batch)


def _ran_on(target: str) -> str:
    return str(_driver(target).device_report().device)


def _against(times: Mapping[str, Times]) -> dict[str, float]:
    def of(target: str) -> list[Times]:
        return [time for name, time in times.items() if name.startswith(f"{target}, block")]

    return ratios(f"{OURS} over {PEER}", of(OURS), of(PEER))


def launch() -> Measurement:
    """Time the host's part of a launch: one small program, no program, and with a command to create and pass."""
    block = latency.BLOCK
    x, y, total = (aligned(block) for _ in range(3))
    tensors = Tensor(x), Tensor(y), Tensor(total)
    candidates = Candidates()

    def right() -> bool:
        found = np.array_equal(total, x + y)
        total.fill(np.nan)
        return found

    total.fill(np.nan)
    for target in (OURS, PEER):
        add = lambda grid: lambda kernel: kernel[grid](*tensors, block, BLOCK_SIZE=block)  # noqa: E731
        candidates.add(target, "one program, to its end", add_kernel, add((1,)), right)
        candidates.add(target, "no program: Triton's and the driver's Python", add_kernel, add((0,)), lambda: True)
    a, b, c = (aligned(16, 16) for _ in range(3))

    def multiplied() -> bool:
        return bool((np.abs(c - a.astype(np.float64) @ b) <= allowed_error(a, b, c, np.float32)).all())

    for what, options in (("16x16x16 matmul", {}), ("16x16x16 matmul, TC: with its command", MODES["TC"])):
        c.fill(np.nan)
        multiply = lambda kernel, options=options: matmul.launch(a, b, c, (16, 16, 16), 1, kernel, **options)  # noqa: E731
        candidates.add(OURS, what, matmul_kernel, multiply, multiplied)
    times = candidates.times(latency.ROUNDS, latency.BATCH)
    rows = [Row(name, time) for name, time in times.items()]
    return Measurement(title="launch", rows=rows, aim="under 100 us of host time a launch")


def vec_add() -> Measurement:
    """Measure the addition of `bench spirv` on both targets."""
    x, y, total = (aligned(LENGTH) for _ in range(3))
    tensors, expected = (Tensor(x), Tensor(y), Tensor(total)), x + y
    candidates = Candidates()

    def right() -> bool:
        found = np.array_equal(total, expected)
        total.fill(np.nan)
        return found

    def add(target: str, block: int, what: str, **options: bool) -> None:
        grid = (triton.cdiv(x.size, block),)
        run = lambda kernel: kernel[grid](*tensors, x.size, BLOCK_SIZE=block, **options)  # noqa: E731
        candidates.add(target, what, add_kernel, run, right)

    total.fill(np.nan)
    for block in BLOCKS:
        for target in (OURS, PEER):
            add(target, block, f"block {block}")
    add(OURS, BLOCKS[-1], f"128 work-items a program, block {BLOCKS[-1]}", **MODES["threads"])
    times = candidates.times(ROUNDS)
    traffic = 3 * x.nbytes / 1e9
    return Measurement(
        title=f"vec_add f32, {LENGTH}",
        rows=[Row(name, time, traffic / time.median) for name, time in times.items()],
        unit="GB/s",
        ratios=_against(times),
        aim=f"at least 0.95 of {PEER}",
    )


def multiply() -> Measurement:
    """Measure the multiplication of `bench spirv` on both targets."""
    a, b, c = (aligned(SIZE, SIZE) for _ in range(3))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    allowed = allowed_error(a, b, exact, np.float32)
    candidates = Candidates()

    def right() -> bool:
        found = bool((np.abs(c - exact) <= allowed).all())
        c.fill(np.nan)
        return found

    def add(target: str, block: tuple[int, int, int], what: str, **options: bool) -> None:
        run = lambda kernel: matmul.launch(a, b, c, block, GROUP, kernel, **options)  # noqa: E731
        candidates.add(target, what, matmul_kernel, run, right)

    c.fill(np.nan)
    for block in TILES:
        for target in (OURS, PEER):
            add(target, block, f"block {_by(block)}")
    add(OURS, MODES_BLOCK, f"TC, block {_by(MODES_BLOCK)}", **MODES["TC"])
    add(OURS, MODES_BLOCK, f"128 work-items a program, block {_by(MODES_BLOCK)}", **MODES["threads"])
    times = candidates.times(ROUNDS)
    flops = 2 * SIZE**3 / 1e9
    return Measurement(
        title=f"matmul f32, {SIZE}^3",
        rows=[Row(name, time, flops / time.median) for name, time in times.items()],
        unit="GFLOP/s",
        ratios=_against(times),
        aim=f"at least 0.95 of {PEER}",
    )


def _by(block: Sequence[int]) -> str:
    return "x".join(map(str, block))


def first() -> list[Measurement]:
    """Measure each kernel's first launch in a process; the two targets take turns."""
    measurements = []
    for kernel in first_launch.KERNELS:
        cold: dict[str, list[first_launch.Timing]] = {OURS: [], PEER: []}
        warm: dict[str, list[first_launch.Timing]] = {OURS: [], PEER: []}
        for _ in range(first_launch.ROUNDS):
            for target in (OURS, PEER):
                with tempfile.TemporaryDirectory() as caches:
                    for timings in (cold, warm):
                        timing = first_launch.spawn(kernel, Path(caches), TRITON_DEFAULT_BACKEND=target)
                        timings[target].append(timing)
        compiling = {target: Times.of([timing.compiling for timing in cold[target]]) for target in cold}
        rows = []
        for target in (OURS, PEER):
            launched, again = (Times.of([timing.launched for timing in timings[target]]) for timings in (cold, warm))
            rows += [
                Row(f"{target}: from TTIR to SPIR-V", compiling[target]),
                Row(f"{target}: empty caches, from the call to the result", launched),
                Row(f"{target}: filled caches, from the call to the result", again),
            ]
        measurements.append(
            Measurement(
                title=f"first launch of {kernel} in a process",
                rows=rows,
                beyond={
                    f"zen-compiler beyond {PEER}'s compiler, {name}": getattr(compiling[OURS], name)
                    - getattr(compiling[PEER], name)
                    for name in ("median", "min")
                },
                aim=f"at most 0.5 s from TTIR to SPIR-V beyond {PEER}",
            )
        )
    return measurements


MEASUREMENTS: dict[str, Callable[[], list[Measurement]] | Tutorials] = {
    "launch": lambda: [launch()],
    "vec_add": lambda: [vec_add()],
    "matmul": lambda: [multiply()],
    "tutorials": Tutorials(),
    "first": first,
    "compile": stages.measure,
}
