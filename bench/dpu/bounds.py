"""What a DPU could do at best, computed from published throughputs (hardware.toml), in cycles."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

_HARDWARE: dict[str, Any] = tomllib.loads(Path(__file__).with_name("hardware.toml").read_text())


def addition(elements: int) -> float:
    """Cycles that one DPU's DMA engine needs for a vector addition of int32: two reads and a write an element."""
    return float(elements / _HARDWARE["vec_add_bound"] * _HARDWARE["frequency_mhz"])


def operation(dtype: str, name: str) -> float:
    """Cycles of the pipeline for one operation alone.

    PrIM's loop takes frequency / MOPS cycles an element when all 11 stages are busy; what is not the operation is
    5 instructions. So an int32 multiplication is 350 / 10.3 - 5 = 29 cycles, a float one 350 / 1.9 - 5 = 179.
    """
    loop = _HARDWARE["frequency_mhz"] / _HARDWARE["mops"][dtype][name]
    return float(loop - _HARDWARE["loop_instructions"])


def multiplication(dtype: str, m: int, n: int, k: int, dpus: int) -> float:
    """Cycles for an m x k by k x n matrix product if DPUs did nothing but multiply and add, one instruction a cycle."""
    return m * n * k * (operation(dtype, "multiply") + operation(dtype, "add")) / dpus
