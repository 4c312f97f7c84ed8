"""Constants, program ids, scalar pointers, and operations that write next to nothing.

Arithmetic on numbers is elementwise (ops/elementwise.py).
"""

from __future__ import annotations

from ....emit.mlir import GLOBAL, Reg
from ....errors import unsupported
from ....ir import tile, tt
from ....ir.arith import AssumeOp, ConstantOp, SelectOp
from ....ops.elementwise import apply_row
from ....ops.numeric import element_name, in_memory
from ..emission import scalar_value, statement, tile_value
from ..mapping import Mapping
from ..space import Memo, Point
from ..tiles import Tiles


@scalar_value(ConstantOp)
def _constant(program: Mapping, op: ConstantOp) -> Reg:
    return program.tiles.scalar(op.result)


@tile_value(ConstantOp)
def _constant_tile(tiles: Tiles, op: ConstantOp, point: Point, memo: Memo) -> Reg:
    return tiles.constant(op, point.lanes)


@scalar_value(tt.AddPtrOp)
def _moved(program: Mapping, op: tt.AddPtrOp) -> Reg:
    assert isinstance(op.ptr.type, tt.PointerType)
    tiles = program.tiles
    memory = in_memory(element_name(op.ptr.type.pointee, op))
    offset = tiles.index(op.offset)
    return Reg(program.text.address(tiles.scalar(op.ptr).name, offset, memory, GLOBAL), GLOBAL)


@scalar_value(tt.BitcastOp)
def _bitcast(program: Mapping, op: tt.BitcastOp) -> Reg:
    value = program.tiles.scalar(op.src)
    return value if isinstance(op.result.type, tt.PointerType) else apply_row(program.tiles.numeric, op, [value])


@scalar_value(tt.IntToPtrOp)
def _pointer(program: Mapping, op: tt.IntToPtrOp) -> Reg:
    return program.tiles.numeric.pointer(program.tiles.scalar(op.src))


@scalar_value(tt.PtrToIntOp)
def _address(program: Mapping, op: tt.PtrToIntOp) -> Reg:
    return program.tiles.numeric.address(program.tiles.scalar(op.src))


@scalar_value(SelectOp)
def _select(program: Mapping, op: SelectOp) -> Reg:
    values = [program.tiles.scalar(operand) for operand in op.operands]
    if isinstance(op.result.type, tt.PointerType):
        return program.text.select(*values)
    return apply_row(program.tiles.numeric, op, values)


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
