"""Runs one program of a kernel in structured form on plain numbers: what the analyses of addresses must agree with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from foundry_core.analysis.integers import INTEGERS, OperationForm, form, integer_bits, wrap_integer
from foundry_core.analysis.interpret import Interpreter, Part
from foundry_core.footprint.values import item_bytes
from foundry_core.ir import tile, tt
from foundry_core.ir.arith import ConstantOp
from foundry_core.ir.effects import reads, writes
from foundry_core.ir.elements import extents, index_mapping, row_major_source
from xdsl.dialects import scf
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation


@dataclass(frozen=True)
class Pointer:
    """Addresses, in bytes from a parameter: one, or an array of them."""

    parameter: int
    offset: Any


@dataclass(frozen=True)
class Reached:
    """The bytes that an access reaches in a parameter's memory, from each element's first one."""

    parameter: int
    firsts: Any
    item: int
    is_write: bool


# An integer, a tile of integers (an array of objects), pointers, or (AxisOp or RangeOp, its operands); None for
# anything else, and for what depends on it.
Value: TypeAlias = Any


class Program(Interpreter[Value]):
    """One program. Memory has the integer 0 everywhere, and floats are not computed.

    Attributes:
        reached: what it accesses, in order; an access that depends on floats is None.
    """

    def __init__(self, ids: Sequence[int], grid: Sequence[int]) -> None:
        super().__init__()
        self._ids = ids
        self._grid = grid
        self.reached: list[Reached | None] = []

    def access(self, op: tile.Access) -> list[Value]:
        shape = extents(op.elements)
        pointer, start, *parts = place = self.lookup([op.base, op.start, *op.axes, *op.ranges])
        gather, mask = (None if value is None else self.values[value] for value in (op.gather, op.mask))
        is_known = all(found is not None for found in place)
        is_known &= (op.gather is None) == (gather is None) and (op.mask is None) == (mask is None)
        if is_known:
            index = np.indices(shape, dtype=object)
            offset = start + (0 if gather is None else gather) + sum(map(_along, parts, index))
            exists = np.full(shape, True) if mask is None else np.asarray(mask, bool)
            for (_, (low, high)), i in zip(parts[len(op.axes) :], index, strict=False):
                exists = exists & (low <= i) & (i < high)
            item = item_bytes(op.base.type)
            found = np.broadcast_to(pointer.offset + item * np.asarray(offset, object), shape)[exists]
        for is_write, is_made in ((False, reads(op)), (True, writes(op))):
            if is_made:
                self.reached.append(Reached(pointer.parameter, found, item, is_write) if is_known else None)
        return [_zeros(result.type) for result in op.results]

    def compute(self, op: Operation, operands: Sequence[Value]) -> list[Value]:
        return [self._result(op, operands, result) for result in op.results]

    def _result(self, op: Operation, operands: Sequence[Value], result: Any) -> Value:
        match op:
            case ConstantOp():
                numbers = op.integers
                tiles = numbers if len(numbers) > 1 else numbers * int(np.prod(extents(result)))
                return None if not numbers else np.array(tiles, object).reshape(extents(result))[()]
            case tt.GetProgramIdOp():
                return self._ids[op.axis.value.data]
            case tt.GetNumProgramsOp():
                return self._grid[op.axis.value.data]
            case tt.MakeRangeOp():
                return np.arange(op.start.value.data, op.end.value.data).astype(object)
        if None in [None if operand is None else 0 for operand in operands]:
            return None
        match op:
            case tile.AffineOp() | tile.WrappedOp() | tile.IndexedOp() | tile.RangeOp():
                return op, operands
            case tt.AddPtrOp():
                pointer, offset = operands
                return Pointer(pointer.parameter, pointer.offset + item_bytes(op.ptr.type) * offset)
            case tt.BitcastOp() if isinstance(operands[0], Pointer):
                return operands[0]
        if (of := index_mapping(result)) is not None:
            index = of.to_source(list(np.indices(of.shape)), lambda number: np.full(of.shape, number))
            return _each(operands[0], lambda array: array[tuple(index)] if index else np.full(of.shape, array, object))
        if row_major_source(result) is not None:
            return _each(operands[0], lambda array: array.reshape(extents(result)))
        meaning, bits = INTEGERS.get(op.name), form(op)
        if meaning is None or bits is None or any(isinstance(operand, Pointer) for operand in operands):
            return None
        return np.frompyfunc(lambda *numbers: meaning.number(bits, numbers), len(operands), 1)(*operands)

    def branch(self, op: scf.IfOp, condition: Value, ways: Sequence[Part[Value]]) -> Sequence[Value]:
        if condition is None:
            raise Undecided
        way = 0 if condition else 1
        return ways[way](()) if way < len(ways) else ()

    def loop(self, op: scf.ForOp, bounds: Sequence[Value], initial: Sequence[Value], body: Part[Value]) -> list[Value]:
        if None in bounds:
            raise Undecided
        carried = list(initial)
        for index in range(*bounds):
            carried = body([index, *carried])
        return carried

    def repeat(
        self, op: scf.WhileOp, initial: Sequence[Value], test: Part[Value], body: Part[Value]
    ) -> Sequence[Value]:
        carried = list(initial)
        for _ in range(_MOST_TURNS):
            condition, *passed = test(carried)
            if condition is not None and not condition:
                return passed
            if condition is None:
                break
            carried = body(passed)
        raise Undecided

    def map(self, op: tt.MapElementwiseOp, tiles: Sequence[Value], function: Part[Value]) -> list[Value]:
        return [None] * len(op.results)


_MOST_TURNS = 100


class Undecided(Exception):
    """What a program does next depends on floats, or does not end with memory that has zeros only."""


def _each(value: Value, function: Any) -> Value:
    return Pointer(value.parameter, function(value.offset)) if isinstance(value, Pointer) else function(value)


def _zeros(type: Any) -> Value:
    shape = type.get_shape() if isinstance(type, TensorType) else ()
    return np.full(shape, 0, object)[()] if integer_bits(type) is not None else None


def _along(value: Any, i: Any) -> Any:
    """Return what an axis adds to the address of an element, from its index."""
    op, operands = value
    match op:
        case tile.AffineOp():
            return operands[0] * i
        case tile.WrappedOp():
            first, modulus, stride = operands
            remainder, bits = INTEGERS["arith.remsi"].number, op.element.width.data
            index = np.frompyfunc(
                lambda n: remainder(OperationForm(64, 64), (wrap_integer(first + n, bits), modulus)), 1, 1
            )
            return stride * index(i)
    return np.broadcast_to(operands[0], i.shape)


def programs(grid: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield the ids of a grid's programs, x first."""
    for z in range(grid[2]):
        for y in range(grid[1]):
            for x in range(grid[0]):
                yield x, y, z
