"""What a DPU's kernels are compared with: programs in C, and upper limits of a DPU's speed.

The programs in dpu_peers/ are written by hand; they are built with the SDK on PATH, and run on its DPUs. The limits are
computed from published throughputs (hardware.toml), in cycles.
"""

from __future__ import annotations

import functools
import subprocess
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_HARDWARE: dict[str, Any] = tomllib.loads(Path(__file__).with_name("hardware.toml").read_text())
_SOURCES = Path(__file__).with_name("dpu_peers")
TASKLETS = 16


def addition_bound(elements: int) -> float:
    """Return the cycles of one DPU's DMA engine for an int32 vector addition: two reads and a write per element."""
    return float(elements / _HARDWARE["vec_add_bound"] * _HARDWARE["frequency_mhz"])


def operation_cycles(dtype: str, name: str) -> float:
    """Return the cycles that the pipeline needs for one operation alone.

    With all 11 stages busy, PrIM's loop takes frequency / MOPS cycles an element; 5 instructions of the loop are not
    the operation. So an int32 multiplication takes 350 / 10.3 - 5 = 29 cycles, a float one 350 / 1.9 - 5 = 179.
    """
    known = _HARDWARE["instructions"].get(dtype, {})
    if name in known:
        return float(known[name])
    loop = _HARDWARE["frequency_mhz"] / _HARDWARE["mops"][dtype][name]
    return float(loop - _HARDWARE["loop_instructions"])


def multiplication_bound(dtype: str, m: int, n: int, k: int, dpus: int) -> float:
    """Return the cycles of an m x k by k x n product if DPUs only multiply and add, at one instruction a cycle."""
    return m * n * k * (operation_cycles(dtype, "multiply") + operation_cycles(dtype, "add")) / dpus


def arithmetic_bound(dtype: str, operations: Mapping[str, float]) -> float:
    """Return the cycles of one DPU that only computes: for each kind of operation how many there are."""
    return sum(count * operation_cycles(dtype, name) for name, count in operations.items())


def dma_bound(read: float, written: float, transfer: int = 0) -> float:
    """Return the cycles of one DPU's DMA engine for bytes that are read and written.

    Args:
        read, written: bytes, each moved once.
        transfer: bytes of a transfer, if the work does not allow the longest.
    """
    dma = _HARDWARE["dma"]
    size = transfer or dma["bytes"]
    engine = dma["engine_start"] + dma["engine_byte"] * size
    reading, writing = (min(dma[alpha] + dma["beta"] * size, engine) for alpha in ("read_alpha", "write_alpha"))
    return float(read / size * reading + written / size * writing)


def c_cycles(kind: str, size: str, dpus: int, *, tasklets: int = TASKLETS) -> int:
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
