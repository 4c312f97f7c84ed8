"""Measure vec_add in int32: against the DMA bound, on 1 to 64 DPUs, and against one element at a time."""

from __future__ import annotations

import numpy as np
import triton
from foundry_core.tensor import Tensor
from measurement import Measurement
from vec_add import add_kernel

from . import bounds, peers
from .modelled import MEGA, Timed, best, launched, row

LENGTH = 2**20
# The largest length whose three arrays fit into one DPU's MRAM: 48 of 64 MiB.
LONG = 2**22
BLOCKS = (128, 256, 512, 1024)
DPUS = (1, 2, 4, 8, 16, 32, 64)


def add(length: int, dpus: int, block: int) -> Timed:
    """Launch e2e's kernel once and compare the result."""
    random = np.random.default_rng(length)
    x, y = (random.integers(-(2**31), 2**31, length, np.int32) for _ in range(2))
    total = np.full_like(x, -1)

    def call() -> None:
        grid = (triton.cdiv(length, block),)
        add_kernel[grid](Tensor(x), Tensor(y), Tensor(total), length, BLOCK_SIZE=block, num_dpus=dpus)
        assert np.array_equal(total, x + y), f"{length} elements in blocks of {block} on {dpus} DPUs are wrong"

    return launched(f"Triton, block {block}, {dpus} DPU{'s' * (dpus > 1)}", call)


def measure() -> list[Measurement]:
    """Measure one DPU against its bound, 1 to 64 DPUs for two lengths, and TritonPIM's way of copying."""
    candidates = [add(LENGTH, 1, block) for block in BLOCKS]
    ours = best(candidates)
    block = BLOCKS[candidates.index(ours)]
    by_hand = Timed("C, as PrIM's VA, 1 DPU", peers.cycles("va", str(LENGTH), 1))
    one_at_a_time = Timed("C, 1 tasklet, one element at a time", peers.cycles("element", str(LENGTH), 1, tasklets=1))
    bound = bounds.addition(LENGTH)
    return [
        Measurement(
            title=f"{_title(LENGTH)}, one DPU, modelled",
            rows=[row(timed, work=LENGTH / MEGA) for timed in (*candidates, by_hand)],
            unit="M elements/s",
            ratios={
                "modelled cycles over the DMA bound (smaller is better)": ours.cycles / bound,
                "C over the DMA bound": by_hand.cycles / bound,
                "Triton over C": by_hand.cycles / ours.cycles,
            },
            aim="within 1.25 of the DMA bound",
        ),
        _scaling(LENGTH, block, "at least 0.9 of linear; on 64 DPUs a tasklet's last block of 4 or 5 weighs more"),
        _scaling(LONG, block, "at least 0.9 of linear"),
        Measurement(
            title=f"{_title(LENGTH)}, one DPU, against TritonPIM's way, modelled",
            rows=[row(timed, work=LENGTH / MEGA) for timed in (ours, one_at_a_time)],
            unit="M elements/s",
            ratios={"Triton over one element at a time": one_at_a_time.cycles / ours.cycles},
            aim="above 20",
        ),
    ]


def _scaling(length: int, block: int, aim: str) -> Measurement:
    spread = [add(length, dpus, block) for dpus in DPUS]
    return Measurement(
        title=f"{_title(length)}, 1 to {DPUS[-1]} DPUs, modelled",
        rows=[row(timed, work=length / MEGA) for timed in spread],
        unit="M elements/s",
        ratios={
            f"share of linear, {dpus} DPUs": spread[0].cycles / dpus / timed.cycles
            for dpus, timed in zip(DPUS[1:], spread[1:], strict=True)
        },
        aim=aim,
    )


def _title(length: int) -> str:
    return f"vec_add i32, n = 2^{length.bit_length() - 1}"
