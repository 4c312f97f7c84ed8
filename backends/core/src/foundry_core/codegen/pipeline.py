"""The stages from TTIR to SPIR-V, or to the LLVM IR of a DPU. Each takes text; a backend's `add_stages` chains them."""

from __future__ import annotations

import re
from io import StringIO
from typing import TYPE_CHECKING, NamedTuple

from xdsl.dialects.builtin import UNKNOWN_LOC
from xdsl.printer import Printer

from ..errors import LoweringError, source_line
from ..front.assertions import end_failed_programs
from ..front.calls import inline_calls
from ..front.records import replace_prints
from ..front.structured import kernel, structure
from ..front.writes import WriteSet, write_set
from ..ir import tt
from ..ir.depth import deep_expressions
from ..ir.parse import parse, read_structured, remember
from ..log import Site
from ..mapping.base.target import TaskletTarget, WorkGroupTarget, WorkItemTarget
from ..mapping.workgroup.program import lower_work_group as lower_to_work_group
from ..mapping.workitem.program import lower_work_item
from .tools import llvm_to_spirv, mlir_to_llvm, mlir_to_llvm_dialect

# What only DPUs need is imported where it is used: xDSL's llvm dialect takes a seventh of a compiler's start time, and
# zen-compiler starts once for each kernel.
if TYPE_CHECKING:
    from ..mapping.tasklet.program import TaskletKernel

# Two barriers without anything between them mean the same as one. PoCL 6 generates wrong code for them behind a loop
# that contains barriers: what stands between that loop and the two is executed by the wrong work-items.
_REPEATED_BARRIER = re.compile(
    r"^( *call spir_func void @_Z7barrierj\(.*?)((?:, !dbg !\d+)?\n)(?:\1(?:, !dbg !\d+)?\n)+", re.MULTILINE
)
_EARLY_LOCATION = re.compile(r" loc\([^()]*\) \{$", re.MULTILINE)

# The triple and data layout of the DPU target in LLVM 12 (UPMEM's fork).
DPU_TRIPLE = "dpu-upmem-dpurte"
DPU_DATALAYOUT = "e-m:e-p:32:32-i1:8:32-i8:8:32-i16:16:32-i32:32:32-i64:64:64-n32"

__all__ = [
    "TaskletTarget",
    "WorkGroupTarget",
    "WorkItemTarget",
    "to_llvm",
    "to_mlir",
    "to_spirv",
    "to_structured",
    "to_tasklet_mlir",
    "to_typed_llvm",
    "to_work_group_mlir",
]


class StructuredKernel(NamedTuple):
    """A kernel in structured form.

    Attributes:
        writes: the arguments that it may write through.
        sites: the places that write to the launch's log, by number; without any, the kernel takes no log.
    """

    text: str
    writes: WriteSet
    sites: list[Site]


def to_structured(ttir: str) -> str:
    """Rewrite TTIR to structured form (ir/tile.py).

    Raises:
        UnsupportedOperation: names the operation and its source line.
    """
    return read_kernel(ttir).text


def read_kernel(ttir: str, *, check: bool = False, shares: bool = True, compares: bool = True) -> StructuredKernel:
    """Rewrite TTIR to structured form, and find what a launcher must know of the kernel.

    Args:
        check: whether the kernel checks its accesses (foundry_core.checked).
        shares: whether all programs share one memory.
        compares: whether checks compare what several programs store.

    Raises:
        UnsupportedOperation: names the operation and its source line.
    """
    with deep_expressions():
        module = inline_calls(parse(ttir))
        stored = write_set(module)
        sites = replace_prints(module)

        def add_checks(function: tt.FuncOp) -> None:
            from ..checked.instrument import instrument

            instrument(function, sites, shares=shares, compares=compares)

        end_failed_programs(kernel(structure(module, add_checks if check else None)))
    for op in module.walk():
        op.location = source_line(op.location) or UNKNOWN_LOC
    text = StringIO()
    Printer(text, print_debuginfo=True).print_op(module)
    # xDSL 0.74 prints the location of an scf.while before its region, where its own parser does not accept it.
    printed = _EARLY_LOCATION.sub(" {", text.getvalue().replace(" loc(unknown)", "")) + "\n"
    remember(printed, module)
    return StructuredKernel(printed, stored, sites)


def written_arguments(ttir: str) -> WriteSet | None:
    """Return the arguments that a kernel may write through; None if TTIR cannot be read."""
    try:
        with deep_expressions():
            return write_set(inline_calls(parse(ttir)))
    except LoweringError:
        return None


def to_mlir(structured: str, target: WorkItemTarget = WorkItemTarget()) -> str:  # noqa: B008  frozen
    """Lower structured form to loops and vectors in MLIR's scf, arith, vector and llvm dialects.

    One work-item executes each program.

    Raises:
        UnsupportedOperation: names the operation.
    """
    with deep_expressions():
        return lower_work_item(read_structured(structured), target)


def to_work_group_mlir(structured: str, target: WorkGroupTarget = WorkGroupTarget()) -> str:  # noqa: B008  frozen
    """Lower structured form to loops and vectors, in the same dialects as to_mlir.

    One work-group executes each program.

    Raises:
        UnsupportedOperation: names the operation.
        LoweringError: the kernel needs more memory than a work-group shares.
    """
    with deep_expressions():
        return lower_to_work_group(read_structured(structured), target)


def to_tasklet_mlir(structured: str, target: TaskletTarget = TaskletTarget()) -> TaskletKernel:  # noqa: B008  frozen
    """Lower structured form to loops and copies in MLIR's scf, arith and llvm dialects.

    One tasklet of a DPU executes each program.

    Raises:
        UnsupportedOperation: names the operation.
        LoweringError: the kernel needs more WRAM than a DPU has; the message has the numbers.
    """
    from ..mapping.tasklet.program import lower_tasklet as lower_to_tasklet

    with deep_expressions():
        return lower_to_tasklet(read_structured(structured), target)


def to_llvm(mlir: str) -> str:
    """Translate MLIR to LLVM IR with mlir-opt and mlir-translate.

    Raises:
        ToolError: one of the two tools failed.
    """
    return _REPEATED_BARRIER.sub(r"\1\2", mlir_to_llvm(mlir))


def to_typed_llvm(mlir: str) -> str:
    """Translate MLIR to LLVM IR with typed pointers, for a DPU, with mlir-opt and foundry_core.codegen.typed.

    Raises:
        ToolError: mlir-opt failed.
        UnsupportedOperation: names what LLVM 12 does not know.
    """
    from .typed import write_typed_llvm as typed

    with deep_expressions():
        return typed(mlir_to_llvm_dialect(mlir), triple=DPU_TRIPLE, datalayout=DPU_DATALAYOUT)


def to_spirv(llvm: str) -> bytes:
    """Compile LLVM IR to SPIR-V 1.2 for OpenCL with llc, and check the result with spirv-val.

    Raises:
        ToolError: llc or spirv-val failed.
    """
    return llvm_to_spirv(llvm)
