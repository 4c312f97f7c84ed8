"""Compile Triton's IR to SPIR-V, in the stages that Triton's cache shows: ttir, tile, mlir, llir, spv.

Those are the stages where a program is one work-item. Where it is a workgroup, see simt.py.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, ClassVar

from foundry_core.backend.compiler import ProgramBackend, ProgramOptions, launch_options, make_tile, make_ttir
from foundry_core.codegen.programs import NAMES, fingerprint, locate
from foundry_core.mapping.arch import Device, arch, read_arch
from foundry_core.mapping.base.target import WorkItemTarget
from foundry_core.mapping.simt.target import SimtTarget
from triton.backends.compiler import GPUTarget

from . import simt


@dataclass(frozen=True)
class SpirvOptions(ProgramOptions):
    """Options that a launch may set by keyword: only the shared ones. A program is one work-item."""

    backend_name: str = "spirv"
    threads_instead: ClassVar[str] = "the OpenCL device has them: POCL_CPU_MAX_CU_COUNT=4 in the environment for PoCL"


def target(device: Device) -> GPUTarget:
    """Return Triton's name for a device. Where a program is one work-item, a warp is it, too."""
    return GPUTarget("spirv", arch(device), getattr(device, "warp_size", 1))


class SpirvBackend(ProgramBackend):
    """The compiler, as Triton's runtime sees it."""

    binary_ext = "spv"
    options_type = SpirvOptions

    def parse_options(self, opts: dict[str, Any]) -> Any:
        if isinstance(read_arch(self.target.arch), SimtTarget):
            return simt.SimtOptions(
                **launch_options(simt.SimtOptions, opts)
                | {"arch": self.target.arch, "warp_size": self.target.warp_size}
            )
        return super().parse_options(opts)

    def add_stages(self, stages: dict[str, Any], options: Any, language: Any = None) -> None:
        known = read_arch(self.target.arch)
        if isinstance(known, SimtTarget):
            simt.add_stages(stages, options, known)
            return
        stages["ttir"] = make_ttir
        stages["tile"] = make_tile
        stages["mlir"] = functools.partial(make_mlir, work_item=known)
        stages["llir"] = make_llir
        stages["spv"] = make_spirv

    def hash(self) -> str:
        return f"{self.target.arch}-{compiler_fingerprint()}"


# The stages. Each imports the lowering when it is called, so that a kernel from Triton's cache does not load it.


def make_mlir(structured: str, metadata: dict[str, Any], *, work_item: WorkItemTarget) -> str:
    """Run the stage mlir: the work of one work-item, in MLIR's own dialects."""
    from foundry_core.codegen.pipeline import to_mlir

    return to_mlir(structured, work_item)


def make_llir(mlir: str, metadata: dict[str, Any]) -> str:
    """Run the stage llir: LLVM IR for SPIR-V."""
    from foundry_core.codegen.pipeline import to_llvm

    return to_llvm(mlir)


def make_spirv(llir: str, metadata: dict[str, Any]) -> bytes:
    """Run the stage spv: the SPIR-V module."""
    from foundry_core.codegen.pipeline import to_spirv

    return to_spirv(llir)


@functools.cache
def compiler_fingerprint() -> str:
    """Identify everything between TTIR and SPIR-V, except missing programs, which fail when they are run."""
    programs = [path for name in NAMES if (path := locate(name))]
    return fingerprint(("foundry_core", "triton_spirv_backend"), programs)
