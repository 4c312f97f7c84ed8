"""Measure what each stage of a compilation takes in a process that has compiled before.

As a program, this module is that process: `python -m bench.stages softmax` prints the seconds of each stage in each
round, as JSON. The stage `load` is the device's own compiler, with its cache off, and the first launch.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from .first_launch import ROOT
from .measurement import Measurement, Row
from .turns import Times

KERNELS = ("vec_add", "matmul", "softmax")
ROUNDS = 15


def child(kernel: str) -> dict[str, list[float]]:
    """Compile and launch a kernel ROUNDS times, after once that is not counted, with all caches off."""
    import triton

    triton.knobs.compilation.always_compile = True
    seconds: dict[str, list[float]] = {}
    compiled = [0.0]

    def listen(*, times: Any, **_: Any) -> None:
        for stage, taken in times.lowering_stages:
            seconds.setdefault(stage, []).append(taken * 1e-6)
        compiled[0] = time.perf_counter()

    triton.knobs.compilation.listener = listen
    function, launch = _kernel(kernel)
    for _ in range(1 + ROUNDS):
        function.device_caches.clear()
        launch()
        seconds.setdefault("load", []).append(time.perf_counter() - compiled[0])
    return {stage: taken[1:] for stage, taken in seconds.items()}


def _kernel(name: str) -> tuple[Any, Callable[[], object]]:
    """Return a kernel, and what launches it on small arrays."""
    import matmul
    import numpy as np
    import triton
    import vec_add
    from foundry_core.tensor import Tensor

    from . import kernels

    x, y = (np.ones((256, 256), np.float32) for _ in range(2))
    out = np.zeros_like(x)
    tensors = Tensor(x), Tensor(y), Tensor(out)
    match name:
        case "vec_add":
            grid = (triton.cdiv(x.size, 1024),)
            return vec_add.add_kernel, lambda: vec_add.add_kernel[grid](*tensors, x.size, BLOCK_SIZE=1024)
        case "matmul":
            return matmul.matmul_kernel, lambda: matmul.launch(x, y, out, (64, 64, 32), 8)
        case _:
            return kernels.softmax, lambda: kernels.softmax[(256,)](tensors[0], tensors[2], 250, BLOCK=256)


def measure() -> list[Measurement]:
    """Time the stages of each kernel, each kernel in a process."""
    found = []
    for kernel in KERNELS:
        done = subprocess.run(
            [sys.executable, "-m", "bench.stages", kernel],
            cwd=ROOT,
            env=os.environ | {"POCL_KERNEL_CACHE": "0", "PYOPENCL_NO_CACHE": "1"},
            check=True,
            capture_output=True,
            text=True,
        )
        stages = {stage: Times.of(seconds) for stage, seconds in json.loads(done.stdout).items()}
        total = sum(times.median for stage, times in stages.items() if stage != "load")
        found.append(
            Measurement(
                title=f"compilation of {kernel} in a process that has compiled before: {1e3 * total:.0f} ms",
                rows=[Row(stage, times) for stage, times in stages.items()],
            )
        )
    return found


if __name__ == "__main__":
    print(json.dumps(child(sys.argv[1])))
