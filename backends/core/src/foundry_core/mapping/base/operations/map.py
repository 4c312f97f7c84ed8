"""tt.map_elementwise: a loop over the elements, in row-major order, around the function's operations."""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import TensorType

from ....dialects import tt
from ....effects import writes
from ....errors import unsupported
from ..emission import statement
from ..space import Point, extents

if TYPE_CHECKING:
    from ..program import Program


@statement(tt.MapElementwiseOp)
def _map(program: Program, op: tt.MapElementwiseOp) -> None:
    """Apply the function to `pack` neighbours in row-major order at a time."""
    tiles, space, t = program.tiles, program.tiles.space, program.text
    block, pack = op.function.block, op.pack.value.data
    shape = extents(op.srcs[0])
    count = math.prod(shape)
    if count % pack:
        raise unsupported(op, f"of {pack} elements at a time of a tensor with {count} elements")
    if any(isinstance(src.type, TensorType) and isinstance(src.type.element_type, tt.PointerType) for src in op.srcs):
        raise unsupported(op, "on tensors of pointers")
    results = [tiles.allocate(result, op) for result in op.results]
    # Work-items take different branches in the function. So one of them alone executes a function that writes.
    with space.alone() if writes(op) else nullcontext(), space.each((count // pack,), 0, 1) as group:
        first = space.times(group.index[0], t.integer(pack))
        points = [
            Point(space.unfolded(space.plus(first, t.integer(number)), shape), len(shape) - 1, 1)
            for number in range(pack)
        ]
        elements = [tiles.at(src, point, {}) for src in op.srcs for point in points]
        tiles.scalars.update(zip(block.args, elements, strict=True))
        *operations, last = block.ops
        program.write_operations(operations)
        made = [tiles.scalar(value) for value in last.operands]
        for place, value in enumerate(made):
            tiles.private.write(results[place // pack], points[place % pack], value)
    tiles.buffers.update(zip(op.results, results, strict=True))
