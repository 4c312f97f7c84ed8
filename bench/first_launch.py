"""Measure how long the first launch of a kernel takes in a new process, and each stage of a later compilation.

As a program, this module is that process: `python -m bench.first_launch vec_add`, or the path of a script whose first
launch is measured, with the script's arguments. It prints what Timing has. `python -m bench.first_launch --stages
softmax` prints the seconds of each stage in each of several compilations, as JSON. The stage `load` is the device's own
compiler, with its cache off, and the first launch.
"""

from __future__ import annotations

import json
import os
import resource
import runpy
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from .measurement import Measurement, Row
from .turns import Times

START = time.perf_counter()
KERNELS = {"vec_add": "under 1 s", "matmul": "under 2.5 s"}
ROOT = Path(__file__).resolve().parent.parent
_EXAMPLES = ROOT / "examples"
ROUNDS = 5
STAGED = ("vec_add", "matmul", "softmax")
STAGED_ROUNDS = 15


class Timing(NamedTuple):
    """The times of one process, in seconds.

    Attributes:
        imported: what the imports took.
        launched: from the kernel's call to its return. Of an autotuned kernel, all candidates are compiled and timed.
        front: the part of it until TTIR existed. If there are several kernels, of the last one.
        compiling: the part of it from TTIR to the binary that the device takes.
        processor: of all processors in `launched`, in this process and those that it started.
    """

    imported: float
    launched: float
    front: float
    compiling: float
    processor: float


def _processor() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def small(kernel: str) -> tuple[Any, Callable[[], object]]:
    """Import what a user's script imports, and return a kernel, and what launches it on small arrays."""
    import matmul
    import numpy as np
    import triton
    import vec_add
    from foundry_core.tensor import Tensor

    from .problems import kernels

    x, y, out = (np.ones((256, 256), np.float32) for _ in range(3))
    tensors = Tensor(x), Tensor(y), Tensor(out)
    match kernel:
        case "vec_add":
            grid = (triton.cdiv(x.size, 1024),)
            return vec_add.add_kernel, lambda: vec_add.add_kernel[grid](*tensors, x.size, BLOCK_SIZE=1024)
        case "matmul":
            return matmul.matmul_kernel, lambda: matmul.launch(x, y, out, (64, 64, 32), 8)
        case _:
            return kernels.softmax, lambda: kernels.softmax[(256,)](tensors[0], tensors[2], 250, BLOCK=256)


def child(kernel: str) -> None:
    """Launch once, print the times, and end this process."""
    import triton
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    front, compiling = [0.0], [0.0]

    def listen(*, times: Any, **_: Any) -> None:
        stages = dict(times.lowering_stages)
        front[0] = (times.ir_initialization + stages.pop("ttir", 0)) * 1e-6
        compiling[0] = sum(stages.values()) * 1e-6

    def timed(launch: Any) -> Any:
        def run(*arguments: Any, **named: Any) -> None:
            JITFunction.run, Autotuner.run = launches
            start, used = time.perf_counter(), _processor()
            launch(*arguments, **named)
            launched = time.perf_counter() - start
            print(imported - START, launched, front[0], compiling[0], _processor() - used, file=out, flush=True)
            os._exit(0)

        return run

    # What a script prints is not for the process that started this one.
    out, sys.stdout = sys.stdout, sys.stderr
    triton.knobs.compilation.listener = listen
    launches = JITFunction.run, Autotuner.run
    JITFunction.run, Autotuner.run = map(timed, launches)
    _, launch = small(kernel)
    imported = time.perf_counter()
    if kernel in KERNELS:
        launch()
    sys.argv = sys.argv[1:]
    runpy.run_path(kernel, run_name="__main__")


def tutorials() -> list[Path]:
    """Return the scripts whose first launches are measured."""
    return [_EXAMPLES / "get_started.py", *sorted((_EXAMPLES / "tutorials").glob("*.py"))]


def measure() -> list[Measurement]:
    """Time each kernel in fresh processes: caches empty, then filled by the run before."""
    wanted = [
        *((kernel, kernel, f"{aim} from TTIR with empty caches") for kernel, aim in KERNELS.items()),
        *((path.stem, str(path), "under 0.5 s with empty caches") for path in tutorials()),
    ]
    measurements = []
    for name, kernel, aim in wanted:
        cold, warm = timings(kernel, "")[""]
        taken = {
            "empty caches: from TTIR to the result": [each.launched - each.front for each in cold],
            "empty caches: from the call to the result": [each.launched for each in cold],
            "empty caches: processor time of that": [each.processor for each in cold],
            "filled caches: from the call to the result": [each.launched for each in warm],
            "imports (NumPy, Triton, the plugin), not in the above": [each.imported for each in warm],
        }
        if kernel not in KERNELS:
            # A tutorial may have several kernels, of which only the last one's TTIR is known.
            del taken["empty caches: from TTIR to the result"]
        rows = [Row(what, Times.of(seconds)) for what, seconds in taken.items()]
        title = f"first launch of {name} in a process"
        measurements.append(Measurement(title, rows, aim=f"{aim}, under 0.3 s with filled ones"))
    return measurements


def timings(kernel: str, *backends: str) -> dict[str, tuple[list[Timing], list[Timing]]]:
    """Return the times with empty and with filled caches for each backend, "" for the active one; they take turns."""
    found: dict[str, tuple[list[Timing], list[Timing]]] = {backend: ([], []) for backend in backends}
    for _ in range(ROUNDS):
        for backend, both in found.items():
            with tempfile.TemporaryDirectory() as caches:
                for each in both:
                    variables = {"TRITON_DEFAULT_BACKEND": backend} if backend else {}
                    each.append(spawn(kernel, Path(caches), **variables))
    return found


def spawn(kernel: str, caches: Path, **variables: str) -> Timing:
    """Launch a kernel in a new process.

    Args:
        kernel: one of KERNELS, or the path of a script.
        caches: the folder for all compilers' caches.
        variables: environment variables to set in addition to this process's.
    """
    # The caches of Triton, of PoCL, and of PyOpenCL, which honours the XDG folder.
    folders = {
        "TRITON_CACHE_DIR": str(caches / "triton"),
        "POCL_CACHE_DIR": str(caches / "pocl"),
        "XDG_CACHE_HOME": str(caches / "xdg"),
    }
    return Timing(*map(float, output("bench.first_launch", kernel, **folders, **variables).split()))


def output(*words: str, **variables: str) -> str:
    """Run a module with arguments in a new process, and return what it prints."""
    env = os.environ | variables
    done = subprocess.run([sys.executable, "-m", *words], cwd=ROOT, env=env, check=True, capture_output=True, text=True)
    return done.stdout


def compile_again(kernel: str) -> dict[str, list[float]]:
    """Compile and launch a kernel STAGED_ROUNDS times, after once that is not counted, with all caches off."""
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
    for _ in range(1 + STAGED_ROUNDS):
        function.device_caches.clear()
        launch()
        seconds.setdefault("load", []).append(time.perf_counter() - compiled[0])
    return {stage: taken[1:] for stage, taken in seconds.items()}


def measure_stages() -> list[Measurement]:
    """Time the stages of each kernel in a process that has compiled before."""
    found = []
    for kernel in STAGED:
        printed = output("bench.first_launch", "--stages", kernel, POCL_KERNEL_CACHE="0", PYOPENCL_NO_CACHE="1")
        stages = {stage: Times.of(seconds) for stage, seconds in json.loads(printed).items()}
        total = sum(times.median for stage, times in stages.items() if stage != "load")
        title = f"compilation of {kernel} in a process that has compiled before: {1e3 * total:.0f} ms"
        found.append(Measurement(title, [Row(stage, times) for stage, times in stages.items()]))
    return found


if __name__ == "__main__":
    if sys.argv[1] == "--stages":
        print(json.dumps(compile_again(sys.argv[2])))
    else:
        child(sys.argv[1])
