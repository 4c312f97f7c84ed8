"""The mapping to workgroups: its options and its stages.

Stages: ttir, ttgir, spv. A program is a workgroup of num_warps subgroups, on a Vulkan or an OpenCL device. The stages
import what lowers a kernel, with xDSL, when they are called: a kernel from Triton's cache does not load it.
"""

from __future__ import annotations

import functools
import math
import os
import re
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from foundry_core.backend.compiler import (
    LEAST_SHARED,
    ProgramOptions,
    clean_up,
    inline_all,
    kernel_name,
    uses_addresses,
)
from foundry_core.backend.gpu import make_ttgir
from foundry_core.mapping.simt.target import SimtTarget
from foundry_core.vulkan import VALIDATION_VARIABLE
from triton._C.libtriton import ir

if TYPE_CHECKING:
    from foundry_core.mapping.simt.lower import Simt

# The extents of a tile, and the number of subgroups that a kernel in TTGIR is for.
_EXTENTS = re.compile(r"tensor<((?:[0-9]+x)+)")
_WARPS = re.compile(r'"ttg\.num-warps" = ([0-9]+)')

# One tile is in workgroup memory, and the next one in registers, or the next two. A device that copies through
# registers is slower with more in workgroup memory: f16 is multiplied with 286 TFLOP/s on an H100, and then with 182.
_MOST_STAGES = 2


@dataclass(frozen=True)
class SimtOptions(ProgramOptions):
    """Options that a launch may set by keyword."""

    backend_name: str = "spirv"
    num_warps: int = 4
    num_stages: int = 2
    warp_size: int = 32


def add_stages(stages: dict[str, Any], options: SimtOptions, device: SimtTarget) -> None:
    """Add the stages from TTIR to SPIR-V for a device."""
    known = replace(device, warps=options.num_warps)
    stages["ttir"] = _make_ttir
    asked, check = options.num_stages, bool(options.check)
    lower = functools.partial(_lowered, target=known, named=options.debug, check=check, ahead=asked > _MOST_STAGES)
    most = min(asked, 1 if check else _MOST_STAGES)
    stages["ttgir"] = functools.partial(_make_ttgir, target=known, stages=most, lower=lower)
    stages["spv"] = functools.partial(_make_spirv, target=known, asked=asked, lower=lower)


def _make_ttir(module: Any, metadata: dict[str, Any]) -> Any:
    inline_all(module)
    return clean_up(module, metadata, block_pointers=True)


def _make_ttgir(
    module: Any,
    metadata: dict[str, Any],
    *,
    target: SimtTarget,
    stages: int,
    lower: Callable[[str, int], Simt],
) -> Any:
    """Run the stage ttgir with the most stages of loops whose tiles fit into workgroup memory."""
    ttir = str(module)
    tiles = (extents[:-1].split("x") for extents in _EXTENTS.findall(ttir))
    wide = target.widen(max((math.prod(map(int, extents)) for extents in tiles), default=1))
    for left in range(stages, min(stages, 1) - 1, -1):
        # The passes have changed the module that did not fit.
        source = module if left == stages else _parsed(ttir, module.context)
        made = make_ttgir(source, metadata, warps=wide.warps, warp_size=wide.warp_size, stages=left)
        if left <= 1 or _fits(str(made), lower):
            break
    metadata["num_stages"] = left
    return made


def _parsed(text: str, context: Any) -> Any:
    """Return a module in Triton's IR; Triton reads it from files only."""
    with tempfile.NamedTemporaryFile("w", suffix=".ttir", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        module = ir.parse_mlir_module(file.name, context)
    module.context = context
    return module


def _fits(ttgir: str, lower: Callable[[str, int], Simt]) -> bool:
    """Return whether the device has the workgroup memory for a kernel; what else is wrong, the next stage says."""
    from foundry_core.errors import LoweringError, TooLarge

    if "ttg.local_alloc" in ttgir:
        try:
            lower(ttgir, 1)
        except TooLarge as error:
            return error.resource != "workgroup memory"
        except LoweringError:
            pass
    return True


@functools.lru_cache(1)
def _lowered(ttgir: str, parts: int, *, target: SimtTarget, named: bool, check: bool, ahead: bool) -> Simt:
    """Translate a kernel, for the stage that asks whether it fits and for the one that follows."""
    from foundry_core.mapping.simt.lower import lower_simt

    return lower_simt(ttgir, _of_kernel(ttgir, target), named=named, check=check, parts=parts, ahead=ahead)


def _of_kernel(ttgir: str, target: SimtTarget) -> SimtTarget:
    """Return the device with as many subgroups a program as a kernel is for."""
    warps = _WARPS.search(ttgir)
    return replace(target, warps=int(warps[1])) if warps else target


def _make_spirv(
    module: Any, metadata: dict[str, Any], *, target: SimtTarget, asked: int, lower: Callable[[str, int], Simt]
) -> bytes:
    from foundry_core.errors import TooLarge
    from foundry_core.mapping.simt.lower import lower_to_fit
    from triton.runtime.errors import OutOfResources

    metadata["name"] = kernel_name(module)
    ttgir = str(module)
    target = _of_kernel(ttgir, target)
    try:
        lowered = lower_to_fit(functools.partial(lower, ttgir))
    except TooLarge as error:
        # Triton's own error: its autotuner takes another configuration.
        raise OutOfResources(error.required, error.limit, f"{error.resource} ({error})") from error
    if target.flavour == "shader" and os.environ.get(VALIDATION_VARIABLE) == "1":
        from foundry_core.codegen.tools import check_spirv

        check_spirv(lowered.module, "vulkan1.3")
    stages = metadata["num_stages"] = metadata["num_stages"] + lowered.is_ahead
    fitted = [f"num_stages={stages} instead of {asked}"] * (stages < asked)
    fitted += [f"products in {lowered.parts} parts along K"] * (lowered.parts > 1)
    metadata["fitted"] = ", ".join(fitted)
    metadata["hopes"] = lowered.hopes and [hope._asdict() for hope in lowered.hopes]
    metadata["written"] = lowered.writes
    metadata["shared"] = max(lowered.local_bytes, LEAST_SHARED)
    metadata["argument_offsets"] = lowered.offsets
    metadata["tables"] = lowered.tables
    metadata["argument_bytes"] = lowered.argument_bytes
    metadata["sites"] = [asdict(site) for site in lowered.sites]
    metadata["threads"] = target.warps * target.warp_size
    metadata["addresses"] = uses_addresses(ttgir)
    return lowered.module
