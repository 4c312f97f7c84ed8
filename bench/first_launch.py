"""How long the first launch of a kernel takes in a process of its own, with empty caches and with filled ones.

Run as a script it is that process: `python first_launch.py vec_add` prints two numbers, the seconds that imports took
and the seconds from the call of the kernel to its return.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

START = time.perf_counter()
KERNELS = {"vec_add": "under 1 s", "matmul": "under 2.5 s"}
ROUNDS = 5


def child(kernel: str) -> None:
    """Import what a user's script imports, launch once, print the times."""
    import matmul
    import numpy as np
    import triton
    import vec_add
    from foundry_core.tensor import Tensor

    x, y = (np.ones((256, 256), np.float32) for _ in range(2))
    out = np.zeros_like(x)
    imported = time.perf_counter()
    if kernel == "vec_add":
        grid = (triton.cdiv(x.size, 1024),)
        vec_add.add_kernel[grid](Tensor(x), Tensor(y), Tensor(out), x.size, BLOCK_SIZE=1024)
    else:
        matmul.launch(x, y, out, (64, 64, 32), 8)
    print(imported - START, time.perf_counter() - imported)


def measure() -> list[object]:
    """Time each kernel in fresh processes: caches empty, then filled by the run before."""
    from measure import Times
    from measurement import Measurement, Row

    measurements: list[object] = []
    for kernel, aim in KERNELS.items():
        cold, warm, imports = [], [], []
        for _ in range(ROUNDS):
            with tempfile.TemporaryDirectory() as caches:
                cold.append(_spawn(kernel, Path(caches))[1])
                imported, launched = _spawn(kernel, Path(caches))
                imports.append(imported)
                warm.append(launched)
        measurements.append(
            Measurement(
                title=f"first launch of {kernel} in a process",
                rows=[
                    Row("empty caches: from Python source to the result", Times.of(cold)),
                    Row("filled caches: from the call to the result", Times.of(warm)),
                    Row("imports (NumPy, Triton, the plugin), not in the above", Times.of(imports)),
                ],
                aim=f"{aim} with empty caches, under 0.3 s with filled ones",
            )
        )
    return measurements


def _spawn(kernel: str, caches: Path) -> tuple[float, float]:
    # Triton's cache, PoCL's, and PyOpenCL's, which honours the XDG folder.
    folders = {
        "TRITON_CACHE_DIR": str(caches / "triton"),
        "POCL_CACHE_DIR": str(caches / "pocl"),
        "XDG_CACHE_HOME": str(caches / "xdg"),
    }
    done = subprocess.run(
        [sys.executable, __file__, kernel], env=os.environ | folders, check=True, capture_output=True, text=True
    )
    imported, launched = map(float, done.stdout.split())
    return imported, launched


if __name__ == "__main__":
    child(sys.argv[1])
