"""Upper limits of a DPU's speed, computed from published throughputs (hardware.toml), in cycles."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_HARDWARE: dict[str, Any] = tomllib.loads(Path(__file__).with_name("hardware.toml").read_text())


def addition(elements: int) -> float:
    """Return the cycles of one DPU's DMA engine for an int32 vector addition: two reads and a write per element."""
    return float(elements / _HARDWARE["vec_add_bound"] * _HARDWARE["frequency_mhz"])


def operation(dtype: str, name: str) -> float:
    """Return the cycles that the pipeline needs for one operation alone.

    With all 11 stages busy, PrIM's loop takes frequency / MOPS cycles an element; 5 instructions of the loop are not
    the operation. So an int32 multiplication takes 350 / 10.3 - 5 = 29 cycles, a float one 350 / 1.9 - 5 = 179.
    """
    known = _HARDWARE["instructions"].get(dtype, {})
    if name in known:
        return float(known[name])
    loop = _HARDWARE["frequency_mhz"] / _HARDWARE["mops"][dtype][name]
    return float(loop - _HARDWARE["loop_instructions"])


def multiplication(dtype: str, m: int, n: int, k: int, dpus: int) -> float:
    """Return the cycles of an m x k by k x n product if DPUs only multiply and add, at one instruction a cycle."""
    return m * n * k * (operation(dtype, "multiply") + operation(dtype, "add")) / dpus


def computed(dtype: str, operations: Mapping[str, float]) -> float:
    """Return the cycles of one DPU that only computes: for each kind of operation how many there are."""
    return sum(count * operation(dtype, name) for name, count in operations.items())


def moved(read: float, written: float, transfer: int = 0) -> float:
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
