"""Build the hand-written C programs in dpu_peers/ with the SDK on PATH, and run them on its DPUs."""

from __future__ import annotations

import functools
import subprocess
import tempfile
from pathlib import Path

_SOURCES = Path(__file__).with_name("dpu_peers")
TASKLETS = 16


def cycles(kind: str, size: str, dpus: int, *, tasklets: int = TASKLETS) -> int:
    """Return the modelled cycles of the slowest DPU; the program has checked its result.

    Args:
        kind: va, element, red or gemv; see dpu_peers/peers_host.c.
        size: total number of elements, or ROWSxCOLUMNS.
        dpus: number of DPUs that share the work.
        tasklets: number of tasklets on each DPU.
    """
    folder = Path(_folder().name)
    program = folder / f"{kind}_{tasklets}"
    if not program.exists():
        _run("dpu-upmem-dpurte-clang", "-O2", f"-DNR_TASKLETS={tasklets}", "-o", program, _SOURCES / f"{kind}_dpu.c")
    return int(_run(_host(), kind, size, dpus, program))


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    # The folder exists as long as the process.
    return tempfile.TemporaryDirectory()


@functools.cache
def _host() -> Path:
    program = Path(_folder().name) / "peers_host"
    flags = _run("dpu-pkg-config", "--cflags", "--libs", "dpu").split()
    _run("cc", "-O2", "-std=gnu11", "-Wall", "-Wextra", "-o", program, _SOURCES / "peers_host.c", *flags)
    return program


def _run(*command: object) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))} ended with {done.returncode}\n{done.stderr}{done.stdout}")
    return done.stdout
