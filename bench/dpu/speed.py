"""Measure the emulator's speed: wall time on this machine, and modelled DPU cycles per second of wall time."""

from __future__ import annotations

import numpy as np
import triton
from foundry_core.tensor import Tensor
from measure import Times
from measurement import Measurement, Row
from triton_dpu_backend.launches import profile
from vec_add import add_kernel

LENGTH = 2**24
DPUS = 64
BLOCK = 256
ROUNDS = 5


def measure() -> list[Measurement]:
    """Time vec_add of 2^24 int32 on 64 DPUs: the first launch, which allocates and loads, and later launches."""
    random = np.random.default_rng(LENGTH)
    x, y = (random.integers(-(2**31), 2**31, LENGTH, np.int32) for _ in range(2))
    expected = x + y
    with profile() as launches:
        for _ in range(1 + ROUNDS):
            total = np.full_like(x, -1)
            grid = (triton.cdiv(LENGTH, BLOCK),)
            add_kernel[grid](Tensor(x), Tensor(y), Tensor(total), LENGTH, BLOCK_SIZE=BLOCK, num_dpus=DPUS)
            assert np.array_equal(total, expected), "vec_add is wrong"
    first, *later = launches
    cycles = (first.cycles or 0) * DPUS / 1e6
    times = Times.of([launch.seconds for launch in later])
    return [
        Measurement(
            title=f"speed of the emulator: vec_add i32, n = 2^{LENGTH.bit_length() - 1}, {DPUS} DPUs",
            rows=[
                Row("first launch: allocation, load, transfers", Times.of([first.seconds]), cycles / first.seconds),
                Row("launch with its transfers", times, cycles / times.median),
            ],
            unit="M modelled DPU-cycles/s of wall time",
            aim="wall time and modelled cycles a second are reported",
        )
    ]
