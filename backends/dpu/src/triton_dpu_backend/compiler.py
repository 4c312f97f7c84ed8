"""From Triton's IR to a DPU program, in the stages that Triton's cache shows: ttir, tile, mlir, llir, dpu."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

from foundry_core.compiling import ProgramBackend, ProgramOptions, given, make_tile, make_ttir
from foundry_core.errors import ToolError
from foundry_core.fingerprint import fingerprint
from foundry_core.programs import locate
from triton.backends.compiler import GPUTarget

from .artifact import STACK_BYTES
from .counts import MOST_DPUS, count
from .legalize import skipped

# The most tasklets and the clock of the two kinds of DPU (UPMEM SDK, dpu-upmem-dpurte-clang -mcpu).
MOST_TASKLETS = {"v1A": 24, "v1B": 16}
# What the fingerprint covers beside this package: the tools between TTIR and a DPU program.
_PROGRAMS = ("mlir-opt", "opt", "dpu-upmem-dpurte-clang")


@dataclass(frozen=True)
class DpuOptions(ProgramOptions):
    """What a launch may set by keyword, as `kernel[grid](..., num_dpus=4)`. A program is one tasklet's work here.

    Attributes:
        num_dpus: over how many DPUs a launch spreads its programs; None leaves it to the driver (see driver.py).
        num_tasklets: the most tasklets on a DPU. Fewer are taken if a program's tiles leave no room in WRAM for them.
    """

    backend_name: str = "dpu"
    num_dpus: int | None = None
    num_tasklets: int = 16
    threads_instead: ClassVar[str] = "num_tasklets= has the tasklets of a DPU, num_dpus= the DPUs"


def target(kind: str = "v1A") -> GPUTarget:
    """Triton's name for a kind of DPU. A warp is one tasklet, one program."""
    return GPUTarget("dpu", kind, 1)


class DpuBackend(ProgramBackend):
    """Triton's view of the compiler."""

    binary_ext = "dpu"

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return bool(target.backend == "dpu")

    def parse_options(self, opts: dict[str, Any]) -> DpuOptions:
        most = {"num_dpus": MOST_DPUS, "num_tasklets": MOST_TASKLETS[self.target.arch]}
        asked: dict[str, Any] = {
            name: count(value, most[name], name) if name in most else value
            for name, value in given(DpuOptions, opts).items()
        }
        asked["arch"] = self.target.arch
        return DpuOptions(**asked)

    def add_stages(self, stages: dict[str, Any], options: DpuOptions, language: Any = None) -> None:
        # The lowering is imported by its first use: a kernel out of Triton's cache does not pay for it.
        def tile(module: Any, metadata: dict[str, Any]) -> str:
            # The driver shards arrays by it, and of a compiled kernel it sees the metadata alone.
            metadata["structured"] = structured = make_tile(module, metadata)
            return structured

        def mlir(source: str, metadata: dict[str, Any]) -> str:
            from foundry_core.pipeline import to_tasklet_mlir
            from foundry_core.tasklet.target import TaskletTarget

            from .artifact.reach import reach

            dpu = TaskletTarget(most_tasklets=options.num_tasklets)
            lowered, reached = to_tasklet_mlir(source, dpu), reach(source).facts()

            def note() -> None:
                metadata["num_tasklets"] = lowered.num_tasklets
                metadata["facts"] = {"num_tasklets": str(lowered.num_tasklets)} | reached

            note()
            if lowered.doubtful and not fits(lowered.text, metadata):
                lowered = to_tasklet_mlir(source, replace(dpu, iram_instructions=0))
                note()
            return lowered.text

        def fits(source: str, metadata: dict[str, Any]) -> bool:
            """Whether a program is not too long for IRAM; what else is wrong with it is said by the later stages."""
            try:
                program(llir(source, metadata), metadata)
            except ToolError as error:
                return "iram" not in str(error).lower()
            return True

        def llir(source: str, metadata: dict[str, Any]) -> str:
            from foundry_core.pipeline import to_typed_llvm

            from .artifact.annotation import annotate
            from .legalize import legalize

            return annotate(legalize(to_typed_llvm(source), metadata["num_tasklets"]), metadata["facts"])

        def program(source: str, metadata: dict[str, Any]) -> bytes:
            from .artifact.build import build

            with TemporaryDirectory() as work:
                return build(
                    source,
                    name=metadata["name"],
                    num_tasklets=metadata["num_tasklets"],
                    stack_size=STACK_BYTES,
                    work=Path(work),
                ).read_bytes()

        stages["ttir"] = make_ttir
        stages["tile"] = tile
        stages["mlir"] = mlir
        stages["llir"] = llir
        stages["dpu"] = program

    def hash(self) -> str:
        return f"{self.target.arch}-{compiler_fingerprint()}{'-not-legalised' if skipped() else ''}"


@functools.cache
def compiler_fingerprint() -> str:
    """Identity of everything between TTIR and a DPU program. What is missing has none, and fails when it is run."""
    programs = [path for name in _PROGRAMS if (path := locate(name))]
    if (opt := os.environ.get("UPMEM_OPT")) and Path(opt).is_file():
        programs.append(Path(opt))
    return fingerprint(("foundry_core", "triton_dpu_backend"), programs)
