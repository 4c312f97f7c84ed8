"""Measure how long the first launch of a kernel takes in a new process, with empty caches and with filled ones.

As a script, this file is that process: `python first_launch.py vec_add` prints four numbers. They are the seconds that
the imports took, the seconds from the kernel's call to its return, and the parts of the latter until TTIR existed and
from TTIR to the binary that the device takes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from measure import Times
from measurement import Measurement, Row

START = time.perf_counter()
KERNELS = {"vec_add": "under 1 s", "matmul": "under 2.5 s"}
ROUNDS = 5


class Timing(NamedTuple):
    """The times of one process in seconds; the module's docstring defines them."""

    imported: float
    launched: float
    front: float
    compiling: float


def child(kernel: str) -> None:
    """Import what a user's script imports, launch once, print the times."""
    import matmul
    import numpy as np
    import triton
    import vec_add
    from foundry_core.tensor import Tensor

    front, compiling = [0.0], [0.0]

    def listen(*, times: Any, **_: Any) -> None:
        stages = dict(times.lowering_stages)
        front[0] = (times.ir_initialization + stages.pop("ttir", 0)) * 1e-6
        compiling[0] = sum(stages.values()) * 1e-6

    triton.knobs.compilation.listener = listen
    x, y = (np.ones((256, 256), np.float32) for _ in range(2))
    out = np.zeros_like(x)
    imported = time.perf_counter()
    if kernel == "vec_add":
        grid = (triton.cdiv(x.size, 1024),)
        vec_add.add_kernel[grid](Tensor(x), Tensor(y), Tensor(out), x.size, BLOCK_SIZE=1024)
    else:
        matmul.launch(x, y, out, (64, 64, 32), 8)
    print(imported - START, time.perf_counter() - imported, front[0], compiling[0])


def measure() -> list[Measurement]:
    """Time each kernel in fresh processes: caches empty, then filled by the run before."""
    measurements = []
    for kernel, aim in KERNELS.items():
        cold, back, warm, imports = [], [], [], []
        for _ in range(ROUNDS):
            with tempfile.TemporaryDirectory() as caches:
                empty, filled = (spawn(kernel, Path(caches)) for _ in range(2))
                cold.append(empty.launched)
                back.append(empty.launched - empty.front)
                imports.append(filled.imported)
                warm.append(filled.launched)
        measurements.append(
            Measurement(
                title=f"first launch of {kernel} in a process",
                rows=[
                    Row("empty caches: from TTIR to the result", Times.of(back)),
                    Row("empty caches: from the call to the result", Times.of(cold)),
                    Row("filled caches: from the call to the result", Times.of(warm)),
                    Row("imports (NumPy, Triton, the plugin), not in the above", Times.of(imports)),
                ],
                aim=f"{aim} from TTIR with empty caches, under 0.3 s with filled ones",
            )
        )
    return measurements


def spawn(kernel: str, caches: Path, **variables: str) -> Timing:
    """Launch a kernel in a new process.

    Args:
        caches: the folder for all compilers' caches.
        variables: environment variables to set in addition to this process's.
    """
    # The caches of Triton, of PoCL, and of PyOpenCL, which honours the XDG folder.
    folders = {
        "TRITON_CACHE_DIR": str(caches / "triton"),
        "POCL_CACHE_DIR": str(caches / "pocl"),
        "XDG_CACHE_HOME": str(caches / "xdg"),
    }
    done = subprocess.run(
        [sys.executable, __file__, kernel],
        env=os.environ | folders | variables,
        check=True,
        capture_output=True,
        text=True,
    )
    return Timing(*map(float, done.stdout.split()))


if __name__ == "__main__":
    child(sys.argv[1])
