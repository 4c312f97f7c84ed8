"""Errors between a launch and the DPUs, and which source line of a kernel put a DPU into a fault."""

from __future__ import annotations

import functools
import re
from pathlib import Path

from foundry_core.failure import Failure
from foundry_core.runtime.crash import fault_line

# Where the instruction at fault is: its address, then the addresses of the calls that led there, or a file and line.
_CODE = re.compile(r"\(code (0x[0-9a-f]{8}[^)]*)\)")
_ADDRESS = re.compile(r"0x[0-9a-f]{8}")


class DpuError(Failure):
    """Something failed on the way to DPUs or on one. Says what, why, and what to do next."""


class SdkError(DpuError):
    """There is no SDK, or the shim over it cannot be built."""


def fault(kernel: str, message: str, program: Path | None) -> DpuError:
    """Return the error of a launch that failed.

    Args:
        kernel: the kernel's name.
        message: of the emulator or the SDK, of the DPUs in fault.
        program: the DPU program, whose line tables name the places; None if none is loaded.
    """
    places: list[str] = []

    @functools.cache
    def placed(code: str) -> str:
        for address in _ADDRESS.findall(code):
            if program and (place := fault_line(str(program), int(address, 16))):
                places.append(place)
                return f"({place}, code {_ADDRESS.findall(code)[0]})"
        return f"(code {code})"

    why = _CODE.sub(lambda code: placed(code[1]), message)
    if "(code " not in message:
        return DpuError(
            f"kernel {kernel} put a DPU into a fault",
            why=f"{why}\nthe SDK says neither which instruction it was nor why",
            next="run it in an image without --sdk: the emulator names the rule and the line; or attach dpu-lldb",
        )
    next = "run it with FOUNDRY_CHECK=1, which names an access outside of an array, its argument and its index"
    if "stack overflow" in message:
        next = "launch it with num_tasklets=8, or fewer: the stacks of fewer tasklets are larger"
    place = places[0] if places else "an unknown line"
    return DpuError(f"kernel {kernel} crashed at {place}", why=why, next=next)
