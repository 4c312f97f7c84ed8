"""Measure what each stage of a compilation takes in a process that has compiled before.

As a program, this module is that process: `python -m bench.stages softmax` prints the seconds of each stage in each
round, as JSON. The stage `load` is the device's own compiler, with its cache off, and the first launch.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from .first_launch import output, small
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
    function, launch = small(kernel)
    for _ in range(1 + ROUNDS):
        function.device_caches.clear()
        launch()
        seconds.setdefault("load", []).append(time.perf_counter() - compiled[0])
    return {stage: taken[1:] for stage, taken in seconds.items()}


def measure() -> list[Measurement]:
    """Time the stages of each kernel, each kernel in a process."""
    found = []
    for kernel in KERNELS:
        printed = output("bench.stages", kernel, POCL_KERNEL_CACHE="0", PYOPENCL_NO_CACHE="1")
        stages = {stage: Times.of(seconds) for stage, seconds in json.loads(printed).items()}
        total = sum(times.median for stage, times in stages.items() if stage != "load")
        title = f"compilation of {kernel} in a process that has compiled before: {1e3 * total:.0f} ms"
        found.append(Measurement(title, [Row(stage, times) for stage, times in stages.items()]))
    return found


if __name__ == "__main__":
    print(json.dumps(child(sys.argv[1])))
