"""Measure matmul in f32, 1024^3: Triton's tutorial kernel against CLBlast on the same device and NumPy's OpenBLAS."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from arrays import aligned
from clblast import sgemm
from matmul import allowed_error, launch
from measure import interleaved, ratios
from measurement import Measurement, Row

SIZE = 1024
# Rows, columns and depth of a program's block.
BLOCKS = ((32, 32, 32), (64, 64, 32), (64, 64, 64), (64, 128, 64), (128, 128, 64), (128, 256, 64), (256, 256, 64))
GROUP = 8
ROUNDS = 20


def measure() -> Measurement:
    """Time Triton's kernel at several block sizes, CLBlast and NumPy."""
    a, b, c = (aligned(SIZE, SIZE) for _ in range(3))
    candidates: dict[str, Callable[[], object]] = {}
    for block in BLOCKS:
        candidates[f"Triton, block {'x'.join(map(str, block))}"] = lambda block=block: launch(a, b, c, block, GROUP)
    candidates["CLBlast on the same device"] = sgemm(a, b, c)
    candidates["NumPy (OpenBLAS), all cores"] = lambda: np.matmul(a, b, out=c)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    allowed = allowed_error(a, b, exact, np.float32)
    for name, candidate in candidates.items():
        c.fill(np.nan)
        candidate()
        assert (np.abs(c - exact) <= allowed).all(), f"{name} is wrong"
    times = interleaved(candidates, rounds=ROUNDS)
    ours = [time for name, time in times.items() if name.startswith("Triton")]
    flops = 2 * SIZE**3 / 1e9
    return Measurement(
        title=f"matmul f32, {SIZE}^3",
        rows=[Row(name, time, flops / time.median) for name, time in times.items()],
        unit="GFLOP/s",
        ratios=ratios("Triton over CLBlast", ours, [times["CLBlast on the same device"]])
        | ratios("Triton over NumPy (OpenBLAS)", ours, [times["NumPy (OpenBLAS), all cores"]]),
        aim="at least 4 times CLBlast; the ratio to OpenBLAS is reported",
    )
