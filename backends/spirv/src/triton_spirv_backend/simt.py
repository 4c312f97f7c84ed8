"""The mapping to workgroups: its options, its stages, and how Triton names a device for it.

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
from foundry_core.mapping.simt.target import Fragment, SimtTarget
from foundry_core.vulkan.library import VALIDATION_VARIABLE
from triton.backends.compiler import GPUTarget

# The flavour of SPIR-V that an API takes.
_FLAVOURS = {"vulkan": "shader", "opencl": "kernel"}
_ARCH = re.compile(
    r"(?P<api>vulkan|opencl)-s(?P<warp>[0-9]+)-l(?P<local>[0-9]+)-a(?P<arguments>[0-9]+)-f(?P<fuses>[0-9.]*)"
    r"-p(?P<parts>[01])-e(?P<exponentiates>[01])-x(?P<shuffles>[01])-h(?P<halves>[01])-d(?P<denormals>[0-9.]*)"
    r"-z(?P<special>[0-9.]*)-n(?P<nearest>[0-9.]*)-t(?P<adds>[0-9.]*)-m(?P<fragments>[0-9a-z._]*)"
    r"-k(?P<lacks>[0-9A-Za-z.]*)-i(?P<invocations>[0-9]+)-c(?P<slowly>[01])"
)
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


def is_simt(target: GPUTarget) -> bool:
    """Return whether programs are workgroups on a target."""
    return str(target.arch).startswith(tuple(_FLAVOURS))


def target(device: SimtTarget) -> GPUTarget:
    """Return Triton's name for a device.

    Such as vulkan-s8-l32768-a256-f32-p1-e1-x1-h1-d16-z16-n16-t32-mf16.f32.8.8.8-k-i1024-c1.
    """
    fuses, denormals, special, nearest, adds = (
        ".".join(map(str, widths))
        for widths in (
            *(device.fuses, device.preserves_denormals, device.preserves_special, device.rounds_to_nearest),
            device.atomic_adds,
        )
    )
    fragments = "_".join(".".join(map(str, fragment)) for fragment in device.fragments)
    (api,) = (api for api, flavour in _FLAVOURS.items() if flavour == device.flavour)
    arch = (
        f"{api}-s{device.warp_size}-l{device.workgroup_bytes}-a{device.argument_bytes}-f{fuses}"
        f"-p{device.splits_grids:d}-e{device.accurate_exp2:d}-x{device.shuffles:d}-h{device.converts_f16:d}-d{denormals}-z{special}-n{nearest}"
        f"-t{adds}-m{fragments}-k{'.'.join(device.lacks)}"
        f"-i{device.invocations}-c{device.compiles_slowly:d}"
    )
    return GPUTarget("spirv", arch, device.warp_size)


def device(target: GPUTarget, warps: int) -> SimtTarget:
    """Invert `target`.

    Raises:
        ValueError: `target` is not a valid name.
    """
    arch = _ARCH.fullmatch(target.arch)
    if arch is None:
        raise ValueError(f"spirv has no target {target.arch!r}; see triton_spirv_backend.simt.target")
    fuses, denormals, special, nearest, adds = (
        tuple(int(width) for width in arch[name].split(".") if width)
        for name in ("fuses", "denormals", "special", "nearest", "adds")
    )
    parts = [fragment.split(".") for fragment in arch["fragments"].split("_") if fragment]
    return SimtTarget(
        warp_size=int(arch["warp"]),
        warps=warps,
        workgroup_bytes=int(arch["local"]),
        argument_bytes=int(arch["arguments"]),
        fuses=fuses,
        splits_grids=arch["parts"] == "1",
        accurate_exp2=arch["exponentiates"] == "1",
        preserves_denormals=denormals,
        preserves_special=special,
        rounds_to_nearest=nearest,
        fragments=tuple(Fragment(part[0], part[1], *map(int, part[2:])) for part in parts),
        flavour=_FLAVOURS[arch["api"]],
        shuffles=arch["shuffles"] == "1",
        converts_f16=arch["halves"] == "1",
        atomic_adds=adds,
        lacks=tuple(name for name in arch["lacks"].split(".") if name),
        invocations=int(arch["invocations"]),
        compiles_slowly=arch["slowly"] == "1",
    )


def add_stages(stages: dict[str, Any], options: SimtOptions, target: GPUTarget) -> None:
    """Add the stages from TTIR to SPIR-V."""
    known = device(target, options.num_warps)
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
        found = lower_simt(ttgir, target, named=named, check=check)
    except TooLarge as error:
        # Triton's own error: its autotuner takes another configuration.
        raise OutOfResources(error.required, error.limit, f"{error.resource} ({error})") from error
    if target.flavour == "shader" and os.environ.get(VALIDATION_VARIABLE) == "1":
        from foundry_core.codegen.tools import check_spirv

        check_spirv(found.module, "vulkan1.3")
    metadata["written"] = found.writes
    metadata["shared"] = max(found.local_bytes, LEAST_SHARED)
    metadata["argument_offsets"] = found.offsets
    metadata["tables"] = found.tables
    metadata["argument_bytes"] = found.argument_bytes
    metadata["sites"] = [asdict(site) for site in found.sites]
    metadata["threads"] = target.warps * target.warp_size
    metadata["addresses"] = uses_addresses(ttgir)
    return found.module
