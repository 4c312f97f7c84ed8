"""The mapping to workgroups: its options and its stages.

Stages: ttir, ttgir, spv. A program is a workgroup of num_warps subgroups, on a Vulkan or an OpenCL device.
"""

from __future__ import annotations

import functools
import math
import os
import re
from dataclasses import asdict, dataclass, replace
from typing import Any

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
from foundry_core.vulkan.library import VALIDATION_VARIABLE

# The extents of a tile, and the number of subgroups that a kernel in TTGIR is for.
_EXTENTS = re.compile(r"tensor<((?:[0-9]+x)+)")
_WARPS = re.compile(r'"ttg\.num-warps" = ([0-9]+)')


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
    # Checks see through no pipeline.
    stages["ttgir"] = functools.partial(_make_ttgir, target=known, stages=1 if options.check else options.num_stages)
    stages["spv"] = functools.partial(_make_spirv, target=known, named=options.debug, check=bool(options.check))


def _make_ttir(module: Any, metadata: dict[str, Any]) -> Any:
    inline_all(module)
    return clean_up(module, metadata, block_pointers=True)


def _make_ttgir(module: Any, metadata: dict[str, Any], *, target: SimtTarget, stages: int) -> Any:
    tiles = (extents[:-1].split("x") for extents in _EXTENTS.findall(str(module)))
    wide = target.widen(max((math.prod(map(int, extents)) for extents in tiles), default=1))
    return make_ttgir(module, metadata, warps=wide.warps, warp_size=wide.warp_size, stages=stages)


def _make_spirv(module: Any, metadata: dict[str, Any], *, target: SimtTarget, named: bool, check: bool) -> bytes:
    from foundry_core.errors import TooLarge
    from foundry_core.mapping.simt.lower import lower_simt
    from triton.runtime.errors import OutOfResources

    metadata["name"] = kernel_name(module)
    ttgir = str(module)
    if warps := _WARPS.search(ttgir):
        target = replace(target, warps=int(warps[1]))
    try:
        lowered = lower_simt(ttgir, target, named=named, check=check)
    except TooLarge as error:
        # Triton's own error: its autotuner takes another configuration.
        raise OutOfResources(error.required, error.limit, f"{error.resource} ({error})") from error
    if target.flavour == "shader" and os.environ.get(VALIDATION_VARIABLE) == "1":
        from foundry_core.codegen.tools import check_spirv

        check_spirv(lowered.module, "vulkan1.3")
    metadata["written"] = lowered.writes
    metadata["shared"] = max(lowered.local_bytes, LEAST_SHARED)
    metadata["argument_offsets"] = lowered.offsets
    metadata["tables"] = lowered.tables
    metadata["argument_bytes"] = lowered.argument_bytes
    metadata["sites"] = [asdict(site) for site in lowered.sites]
    metadata["threads"] = target.warps * target.warp_size
    metadata["addresses"] = uses_addresses(ttgir)
    return lowered.module
