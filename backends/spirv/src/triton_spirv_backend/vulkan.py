"""The road through Vulkan: its stages, and how kernels are launched.

Stages: ttir, ttgir, spv. A program is a workgroup of num_warps subgroups.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from foundry_core.compiling import ProgramOptions, clean_up, inline_all, kernel_name
from foundry_core.driver import SynchronousDriver, handles
from foundry_core.gpu import make_ttgir
from foundry_core.launches import Grid, SynchronousLauncher
from foundry_core.mapping.simt.target import Fragment, SimtTarget
from foundry_core.ran import Ran
from foundry_core.vulkan.device import Pipeline, opened
from foundry_core.vulkan.launcher import Launcher
from foundry_core.vulkan.logging import logging
from triton.backends.compiler import GPUTarget

from .roads import refuse_two

_ARCH = re.compile(
    r"vulkan-s(?P<warp>[0-9]+)-l(?P<local>[0-9]+)-a(?P<arguments>[0-9]+)-f(?P<fuses>[0-9.]*)-e(?P<exponentiates>[01])"
    r"-d(?P<denormals>[0-9.]*)-z(?P<special>[0-9.]*)-n(?P<nearest>[0-9.]*)-m(?P<fragments>[0-9a-z._]*)"
)


@dataclass(frozen=True)
class VulkanOptions(ProgramOptions):
    """Options that a launch may set by keyword."""

    backend_name: str = "spirv"
    num_warps: int = 4
    num_stages: int = 2
    warp_size: int = 32


def is_vulkan(target: GPUTarget) -> bool:
    """Return whether a target is a Vulkan device."""
    return str(target.arch).startswith("vulkan")


def target(device: SimtTarget) -> GPUTarget:
    """Return Triton's name for a device, such as vulkan-s32-l49152-a256-f32.64-e1-d16-z16-n16-mf16.f32.16.16.16."""
    fuses, denormals, special, nearest = (
        ".".join(map(str, widths))
        for widths in (device.fuses, device.preserves_denormals, device.preserves_special, device.rounds_to_nearest)
    )
    fragments = "_".join(".".join(map(str, fragment)) for fragment in device.fragments)
    arch = (
        f"vulkan-s{device.warp_size}-l{device.workgroup_bytes}-a{device.argument_bytes}-f{fuses}-e{device.exponentiates:d}"
        f"-d{denormals}-z{special}-n{nearest}-m{fragments}"
    )
    return GPUTarget("spirv", arch, device.warp_size)


def device(target: GPUTarget, warps: int) -> SimtTarget:
    """Invert `target`.

    Raises:
        ValueError: `target` is not a valid name.
    """
    arch = _ARCH.fullmatch(target.arch)
    if arch is None:
        raise ValueError(f"spirv has no target {target.arch!r}; see triton_spirv_backend.vulkan.target")
    fuses, denormals, special, nearest = (
        tuple(int(width) for width in arch[name].split(".") if width)
        for name in ("fuses", "denormals", "special", "nearest")
    )
    parts = [fragment.split(".") for fragment in arch["fragments"].split("_") if fragment]
    return SimtTarget(
        warp_size=int(arch["warp"]),
        warps=warps,
        workgroup_bytes=int(arch["local"]),
        argument_bytes=int(arch["arguments"]),
        fuses=fuses,
        exponentiates=arch["exponentiates"] == "1",
        preserves_denormals=denormals,
        preserves_special=special,
        rounds_to_nearest=nearest,
        fragments=tuple(Fragment(part[0], part[1], *map(int, part[2:])) for part in parts),
    )


def add_stages(stages: dict[str, Any], options: VulkanOptions, target: GPUTarget) -> None:
    """Add the stages from TTIR to SPIR-V."""
    known = device(target, options.num_warps)
    stages["ttir"] = _make_ttir
    stages["ttgir"] = functools.partial(
        make_ttgir, warps=known.warps, warp_size=known.warp_size, stages=options.num_stages
    )
    stages["spv"] = functools.partial(_make_spirv, target=known)


def _make_ttir(module: Any, metadata: dict[str, Any]) -> Any:
    inline_all(module)
    return clean_up(module, metadata)


def _make_spirv(module: Any, metadata: dict[str, Any], *, target: SimtTarget) -> bytes:
    from foundry_core.mapping.simt.lower import lower

    metadata["name"] = kernel_name(module)
    found = lower(str(module), target)
    metadata["written"] = found.written
    metadata["shared"] = found.local_bytes
    metadata["argument_offsets"] = found.offsets
    metadata["argument_bytes"] = found.argument_bytes
    metadata["sites"] = [asdict(site) for site in found.sites]
    metadata["addresses"] = False
    return found.module


class VulkanLauncher(SynchronousLauncher[tuple[bytes, str]]):
    """Launches one compiled kernel."""

    def __init__(self, src: Any, metadata: Any) -> None:
        super().__init__(src, metadata)
        self._metadata = metadata
        self._launcher: Launcher | None = None

    def prepare(self, function: tuple[bytes, str]) -> None:
        if self._launcher is None:
            known, (binary, name) = self._metadata, function
            here = opened()
            pipeline = Pipeline(here, binary, name, known.argument_bytes, here.properties.subgroup)
            types = [*self.parameters.types, *["u64"] * (self.log is not None)]
            self._launcher = Launcher(here, pipeline, types, known.argument_offsets, known.written)

    def launch(self, grid: Grid, function: tuple[bytes, str], arguments: Sequence[Any]) -> None:
        assert self._launcher is not None
        with logging(opened(), self.log) as log:
            self._launcher(grid, [*arguments, *log])


class VulkanUtils:
    """Answers Triton's runtime about the device and its binaries."""

    def get_device_properties(self, device: int) -> dict[str, int]:
        """Describe the one device."""
        known = opened().properties
        return {
            "max_shared_mem": known.workgroup_bytes,
            "multiprocessor_count": 1,
            "sm_clock_rate": 0,
            "warpSize": known.subgroup,
        }

    def load_binary(self, name: str, kernel: bytes, shared: int, device: int) -> tuple[Any, ...]:
        """Return the module and its name; it is compiled before the first launch."""
        return handles(kernel, (kernel, name), opened().properties.invocations)

    def unload_module(self, module: Any) -> None:
        """Do nothing."""


class VulkanDriver(SynchronousDriver):
    """The Vulkan device of a process, for Triton's runtime."""

    def __init__(self) -> None:
        super().__init__()
        self.launcher_cls = VulkanLauncher
        self.utils = VulkanUtils()

    @classmethod
    def is_active(cls) -> bool:
        """Return True: the environment asked for Vulkan. What it lacks is said at the first use.

        Raises:
            RoadError: another backend is active, and nothing chooses.
        """
        refuse_two()
        return True

    @classmethod
    def inactive_reason(cls) -> str:
        return ""

    def flushed(self) -> frozenset[str]:
        return opened().flushed()

    def get_current_target(self) -> GPUTarget:
        return target(opened().target(4))

    def ran(self) -> Ran:
        """Describe what launches run on, for reports."""
        return opened().ran()
