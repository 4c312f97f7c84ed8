"""What the candidates run on: what each library says that it uses of the processor, and with how many threads."""

from __future__ import annotations

import ctypes
import os
from importlib.util import find_spec
from pathlib import Path

# The value of `./foundry bench --cpu`; see processors.toml.
LIMIT = os.environ.get("FOUNDRY_BENCH_CPU", "")


def threads() -> int:
    """Return how many threads each library gets: as many as there are processors for this process."""
    return len(os.sched_getaffinity(0))


def limit_threads() -> None:
    """Give each library the same number of threads; before it is loaded."""
    for variable in ("POCL_CPU_MAX_CU_COUNT", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ[variable] = str(threads())
    # Each of PoCL's threads keeps its processor. Between two launches they sleep, and Linux often wakes two of them on
    # one processor; OpenBLAS's and torch's threads spin, and stay where they are.
    if os.sched_getaffinity(0) == set(range(os.cpu_count() or 0)):
        os.environ["POCL_AFFINITY"] = "1"


def described() -> dict[str, str]:
    """Return on what candidates run, by library.

    Raises:
        RuntimeError: a library has another number of threads, or uses more of the processor than --cpu allows.
    """
    found = {"threads": str(threads())}
    if core := _openblas():
        found["OpenBLAS"] = core
    if find_spec("torch"):
        import torch

        found["torch"] = torch.backends.cpu.get_cpu_capability()
        if torch.get_num_threads() != threads():
            raise RuntimeError(f"torch has {torch.get_num_threads()} threads, not {threads()}")
    if LIMIT:
        found["limited to"] = LIMIT
        beyond = {
            name: value for name, value in found.items() if "AVX512" in value.upper() or "SKYLAKEX" in value.upper()
        }
        if beyond:
            raise RuntimeError(f"limited to {LIMIT}, but {beyond}")
    return found


def _openblas() -> str:
    """Return the processor that NumPy's OpenBLAS chose its kernels for; "" if NumPy has another library."""
    import numpy as np

    for file in (Path(np.__file__).parent.parent / "numpy.libs").glob("libscipy_openblas*.so*"):
        library = ctypes.CDLL(str(file))
        for name in ("scipy_openblas_get_corename64_", "scipy_openblas_get_corename"):
            if function := getattr(library, name, None):
                function.restype = ctypes.c_char_p
                return str(function().decode())
    return ""
