"""The end of a program, and operations without arithmetic: program ids, `tile.keep`, assumptions."""

from __future__ import annotations

from ....emit.mlir import Reg
from ....errors import unsupported
from ....ir import tile, tt
from ....ir.llvm import AssumeOp
from ..emission import scalar_value, statement
from ..mapping import Mapping


@scalar_value(tt.GetProgramIdOp)
def _program_id(program: Mapping, op: tt.GetProgramIdOp) -> Reg:
    return program.program_id(op.axis.value.data)


@scalar_value(tt.GetNumProgramsOp)
def _num_programs(program: Mapping, op: tt.GetNumProgramsOp) -> Reg:
    return program.num_programs(op.axis.value.data)


@statement(tile.KeepOp)
def _keep(program: Mapping, op: tile.KeepOp) -> None:
    program.text.volatile_store()


@statement(AssumeOp)
def _assume(program: Mapping, op: AssumeOp) -> None:
    """Write nothing: no compiler stage uses the promise."""


@statement(tt.ReturnOp)
def _return(program: Mapping, op: tt.ReturnOp) -> None:
    if op.values:
        raise unsupported(op, "a kernel that returns a value")
    program.text.line("llvm.return")
