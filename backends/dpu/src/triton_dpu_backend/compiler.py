"""Compile Triton's IR to a DPU program, in the stages that Triton's cache shows: ttir, tile, mlir, llir, dpu."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar

from foundry_core.backend.compiler import ProgramBackend, ProgramOptions, launch_options, make_tile, make_ttir
from foundry_core.codegen.programs import fingerprint, locate
from foundry_core.errors import LoweringError, ToolError
from triton.backends.compiler import GPUTarget

from .artifact.signature import LOG, PARTS, annotate
from .counts import MOST_DPUS, count
from .legalize import is_skipped, legalize

if TYPE_CHECKING:
    from foundry_core.mapping.tasklet.program import TaskletKernel

# The most tasklets of each kind of DPU (UPMEM SDK, dpu-upmem-dpurte-clang -mcpu).
MOST_TASKLETS = {"v1A": 24, "v1B": 16}
# The fingerprint covers these tools between TTIR and a DPU program, in addition to this package.
_PROGRAMS = ("mlir-opt", "opt", "dpu-upmem-dpurte-clang")
# What _fits_iram has built, for the later stages: a kernel's LLVM IR by its MLIR, its program by its LLVM IR. A stage
# takes it out. What no stage asks for, because Triton was told to stop, is dropped when there are more than so many.
_built: dict[tuple[object, ...], Any] = {}
_MOST_BUILT = 16


@dataclass(frozen=True)
class DpuOptions(ProgramOptions):
    """Options that a launch may set by keyword: `kernel[grid](..., num_dpus=4)`. A tasklet runs one program.

    Attributes:
        num_dpus: number of DPUs that a launch spreads its programs over; None: the driver decides (see driver.py).
        num_tasklets: the most tasklets on a DPU. Fewer run if WRAM has no room for the tiles of so many.
    """

    backend_name: str = "dpu"
    num_dpus: int | None = None
    num_tasklets: int = 16
    threads_instead: ClassVar[str] = "num_tasklets= has the tasklets of a DPU, num_dpus= the DPUs"


def target(kind: str = "v1A") -> GPUTarget:
    """Return Triton's name for a kind of DPU. A warp is one tasklet, one program."""
    return GPUTarget("dpu", kind, 1)


class DpuBackend(ProgramBackend):
    """The compiler, as Triton's runtime sees it."""

    binary_ext = "dpu"
    options_type = DpuOptions

    def parse_options(self, opts: dict[str, Any]) -> DpuOptions:
        most = {"num_dpus": MOST_DPUS, "num_tasklets": MOST_TASKLETS[self.target.arch]}
        asked: dict[str, Any] = {
            name: count(value, most[name], name) if name in most else value
            for name, value in launch_options(self.options_type, opts).items()
        }
        asked["arch"] = self.target.arch
        return self.options_type(**asked)

    def add_stages(self, stages: dict[str, Any], options: DpuOptions, language: Any = None) -> None:
        stages["ttir"] = make_ttir
        stages["tile"] = functools.partial(make_structured, num_tasklets=options.num_tasklets)
        stages["mlir"] = functools.partial(make_mlir, num_tasklets=options.num_tasklets)
        stages["llir"] = make_llir
        stages["dpu"] = make_program

    def hash(self) -> str:
        return f"{self.target.arch}-{compiler_fingerprint()}{'-not-legalised' if is_skipped() else ''}"


# The stages. Each imports the lowering when it is called, so that a kernel from Triton's cache does not load it.


def make_structured(module: Any, metadata: dict[str, Any], *, num_tasklets: int) -> str:
    """Run the stage tile: the kernel in structured form.

    Checks compare what several programs store if WRAM and IRAM have room for it.

    Args:
        num_tasklets: the most tasklets on a DPU.
    """
    structured = make_tile(module, metadata, shares=False)
    if metadata.get("check") and not _fits(structured, dict(metadata), num_tasklets):
        structured = make_tile(module, metadata, shares=False, compares=False)
    # The driver shards arrays by this form, and has only the metadata of a compiled kernel.
    metadata["structured"] = structured
    return structured


def make_mlir(structured: str, metadata: dict[str, Any], *, num_tasklets: int, parts: int | None = None) -> str:
    """Run the stage mlir: the work of one tasklet, in MLIR's own dialects.

    The program is built, and lowered again to a shorter form as long as it does not fit into IRAM. The later stages
    take what was built.

    Args:
        num_tasklets: the most tasklets on a DPU. How many are used is written to the metadata.
        parts: slices of a program; None: the lowering decides. The number is written to the metadata.
    """
    from foundry_core.codegen.pipeline import to_tasklet_mlir
    from foundry_core.footprint.code import reach_code
    from foundry_core.mapping.base.target import TaskletTarget

    from .atomics import merge_rules

    dpu = TaskletTarget(most_tasklets=num_tasklets, parts=parts)
    if metadata.get("check"):
        # Checks keep more values at a time.
        dpu = replace(dpu, stack_bytes=dpu.most_stack_bytes, most_stack_bytes=2 * dpu.most_stack_bytes)
    metadata["most_tasklets"] = num_tasklets
    lowered, reach = to_tasklet_mlir(structured, dpu), reach_code(structured)
    reached = {"reach": reach.code} | ({} if reach.block is None else {"block": str(reach.block)})
    metadata["merged"], metadata["ordered"] = merge_rules(structured)
    if metadata["merged"] or metadata["ordered"]:
        reached["atomic"] = "1"
    _note_tasklets(metadata, lowered, reached)
    while not lowered.is_shortest and not _fits_iram(lowered.text, metadata):
        lowered = to_tasklet_mlir(structured, replace(dpu, shape=lowered.shape + 1))
        _note_tasklets(metadata, lowered, reached)
    return lowered.text


def make_llir(mlir: str, metadata: dict[str, Any]) -> str:
    """Run the stage llir: LLVM IR with typed pointers, legalised for a DPU and annotated for `pack`."""
    from foundry_core.codegen.pipeline import to_typed_llvm

    if (llir := _built.pop(_key(mlir, metadata), None)) is not None:
        return str(llir)
    return annotate(legalize(to_typed_llvm(mlir), metadata["num_tasklets"]), metadata["facts"])


def make_program(llir: str, metadata: dict[str, Any], *, by_line: bool = False) -> bytes:
    """Run the stage dpu: the linked DPU program.

    Args:
        by_line: whether the program counts modelled cycles by source line, which only the emulator's compiler can add.

    Raises:
        ToolError: the SDK's compiler refused it, for instance because the program is too long for IRAM.
    """
    from .artifact.build import COUNT_LINES, build

    if not by_line and (built := _built.pop(_key(llir, metadata), None)) is not None:
        return bytes(built)
    name, num_tasklets, stack_size = (metadata[key] for key in ("name", "num_tasklets", "stack_size"))
    with TemporaryDirectory() as work:
        options = [COUNT_LINES] if by_line else []
        program = build(
            llir, name=name, num_tasklets=num_tasklets, stack_size=stack_size, work=Path(work), options=options
        )
        return program.read_bytes()


def make_again(metadata: Any, parts: int, *, by_line: bool) -> tuple[bytes, int]:
    """Compile a kernel again, with another number of slices of a program, or so that it counts by source line.

    Args:
        metadata: of the compiled kernel.
        parts: the number, at most `most_parts` of the metadata.
        by_line: as make_program takes it.

    Returns:
        The DPU program, and the number of its tasklets.
    """
    mlir, compiled = _split_mlir(metadata, parts)
    return make_program(make_llir(mlir, compiled), compiled, by_line=by_line), compiled["num_tasklets"]


def split_tasklets(metadata: Any, parts: int) -> int:
    """Return how many tasklets have room in a program that `make_again` makes."""
    return int(_split_mlir(metadata, parts)[1]["num_tasklets"])


def _split_mlir(metadata: Any, parts: int) -> tuple[str, dict[str, Any]]:
    compiled: dict[str, Any] = {name: getattr(metadata, name, "") for name in ("name", "sites", "check")}
    return make_mlir(metadata.structured, compiled, num_tasklets=metadata.most_tasklets, parts=parts), compiled


def _note_tasklets(metadata: dict[str, Any], lowered: TaskletKernel, fields: dict[str, str]) -> None:
    sizes = {"num_tasklets": lowered.num_tasklets, "stack_size": lowered.stack_bytes, PARTS: lowered.parts}
    metadata.update(sizes, most_parts=lowered.most_parts, computes=lowered.computes)
    metadata["facts"] = (
        {name: str(size) for name, size in sizes.items()} | fields | ({LOG: "1"} if metadata["sites"] else {})
    )


def _fits(structured: str, metadata: dict[str, Any], num_tasklets: int) -> bool:
    """Return whether a DPU has room for a kernel's tiles and instructions."""
    try:
        return _fits_iram(make_mlir(structured, metadata, num_tasklets=num_tasklets), metadata)
    except LoweringError:
        return False


def _fits_iram(mlir: str, metadata: dict[str, Any]) -> bool:
    """Return whether a program is short enough for IRAM. The later stages report any other error."""
    try:
        llir = make_llir(mlir, metadata)
        program = make_program(llir, metadata)
    except ToolError as error:
        return "iram" not in str(error).lower()
    if len(_built) > _MOST_BUILT:
        _built.clear()
    _built.update({_key(mlir, metadata): llir, _key(llir, metadata): program})
    return True


def _key(text: str, metadata: dict[str, Any]) -> tuple[object, ...]:
    """Return all that a stage makes its output of."""
    facts = tuple(metadata["facts"].items())
    return text, is_skipped(), metadata["name"], metadata["num_tasklets"], metadata["stack_size"], facts


@functools.cache
def compiler_fingerprint() -> str:
    """Identify everything between TTIR and a DPU program, except missing programs, which fail when they are run."""
    programs = [path for name in _PROGRAMS if (path := locate(name))]
    if (opt := os.environ.get("UPMEM_OPT")) and Path(opt).is_file():
        programs.append(Path(opt))
    return fingerprint(("foundry_core", "triton_dpu_backend"), programs)
