"""One pass over a kernel in structured form that gives each integer an interval and records each access.

Loops are not unrolled. If each iteration adds the same amount to a carried value, the value is between its first value
and that plus one amount per iteration. Any other carried value starts as unknown and is then narrowed once.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import TensorType
from xdsl.ir import BlockArgument, Operation, SSAValue

from ..analysis.integers import INTEGERS, form, integer_bits
from ..analysis.interpret import Interpreter, Part
from ..analysis.interval import Interval, Truth, add, choose, exactly, fit, full_interval, mul
from ..ir import tile, tt
from ..ir.arith import ConstantOp, SelectOp
from ..ir.effects import reads, writes
from ..ir.elements import extents, selected_operands
from ..ir.facts import first_number, pointer_sum
from .accesses import ByteRanges, box
from .values import Axis, Pointer, Range, Value, either, item_bytes, unknown_value

_INFINITY = float("inf")


class Walk(Interpreter[Value]):
    """The values and accesses of a kernel for many programs at once.

    Args:
        programs: the number of programs; intervals have one number, or this many.
        ids: the program's ids along x, y and z.
        grid: programs along x, y and z.
        reads, writes: where accesses are recorded.
    """

    def __init__(
        self, programs: int, ids: Sequence[Interval], grid: Sequence[int], reads: ByteRanges, writes: ByteRanges
    ) -> None:
        super().__init__()
        self._ids = ids
        self._grid = grid
        self._reads = reads
        self._writes = writes
        # The programs that may reach this point, and those that certainly reach it.
        self._active: Truth = np.ones(programs, np.bool_)
        self._certain: Truth = np.ones(programs, np.bool_)
        self._trial = False

    def _number(self, value: SSAValue) -> Interval:
        found = self.values[value]
        assert isinstance(found, Interval)
        return found

    def compute(self, op: Operation, operands: Sequence[Value]) -> list[Value]:
        return [self._result(op, operands, result) for result in op.results]

    def _result(self, op: Operation, operands: Sequence[Value], result: SSAValue) -> Value:
        match op:
            case tile.AffineOp():
                return Axis(stride=self._number(op.stride))
            case tile.WrappedOp():
                first, modulus = self._number(op.first), self._number(op.modulus)
                return Axis(self._number(op.stride), first, modulus, op.element.width.data)
            case tile.IndexedOp():
                return Axis(offsets=self._number(op.offsets))
            case tile.RangeOp():
                return Range(self._number(op.low), self._number(op.high))
            case tt.BitcastOp() if isinstance(operands[0], Pointer):
                return operands[0]
            case _ if moved := pointer_sum(op):
                pointer = operands[0]
                assert isinstance(pointer, Pointer)
                size = exactly(np.float64(item_bytes(moved[0].type)))
                return pointer.advance(fit(mul(self._number(moved[1]), size), 64))
            case SelectOp() if isinstance(operands[1], Pointer):
                return either(operands[1], operands[2])
            case _ if elements := selected_operands(op):
                # In the analysis a tensor is any one of its elements.
                return functools.reduce(either, self.lookup(elements))
        bits = integer_bits(result.type)
        if bits is None:
            return unknown_value(result.type)
        found = self._integer(op, operands)
        return fit(found, bits) if found is not None else full_interval(bits)

    def _integer(self, op: Operation, operands: Sequence[Value]) -> Interval | None:
        """Return the result of an operation before it wraps around; None if it is unknown."""
        match op:
            case ConstantOp():
                values = op.integers
                return Interval(np.float64(min(values)), np.float64(max(values))) if values else None
            case tt.GetProgramIdOp():
                return self._ids[op.axis.value.data]
            case tt.GetNumProgramsOp():
                return exactly(np.float64(self._grid[op.axis.value.data]))
            case _ if (first := first_number(op)) is not None:
                (count,) = extents(op.results[0])
                return Interval(np.float64(first), np.float64(first + count - 1))
        meaning, bits_of = INTEGERS.get(op.name), form(op)
        numbers = [operand for operand in operands if isinstance(operand, Interval)]
        if meaning is None or bits_of is None or len(numbers) < len(operands):
            return None
        return meaning.intervals(bits_of, numbers)

    def access(self, op: tile.Access) -> list[Value]:
        if not self._trial:
            self._record(op)
        return [unknown_value(result.type) for result in op.results]

    def _record(self, op: tile.Access) -> None:
        pointer = self.values[op.base]
        assert isinstance(pointer, Pointer)
        axes = [axis for axis in self.lookup(op.axes) if isinstance(axis, Axis)]
        ranges = [found for found in self.lookup(op.ranges) if isinstance(found, Range)]
        type = op.elements.type
        shape = type.get_shape() if isinstance(type, TensorType) else ()
        start = self._number(op.start)
        if op.gather is not None:
            start = add(start, self._number(op.gather))
        active, certain = self._active, self._certain
        if op.mask is not None:
            mask = self._number(op.mask)
            active, certain = active & np.greater(mask.high, 0), certain & np.greater(mask.low, 0)
        reached = box(start, axes, ranges, shape, loose=op.gather is not None)
        for accesses, is_made in ((self._reads, reads(op)), (self._writes, writes(op))):
            if is_made:
                accesses.add(pointer, reached, item_bytes(op.base.type), active, certain)

    def branch(self, op: scf.IfOp, condition: Value, ways: Sequence[Part[Value]]) -> list[Value]:
        assert isinstance(condition, Interval)
        active, certain = self._active, self._certain
        found: list[list[Value]] = []
        taken = (
            (np.greater(condition.high, 0), np.greater(condition.low, 0)),
            (np.less(condition.low, 1), np.less(condition.high, 1)),
        )
        for way, (may, must) in zip(ways, taken, strict=False):
            # A branch that no program takes has no effect here.
            self._active, self._certain = active & may, certain & must
            found.append(way(()))
        self._active, self._certain = active, certain
        return [
            choose(condition, then, other)
            if isinstance(then, Interval) and isinstance(other, Interval)
            else either(then, other)
            for then, other in zip(*found, strict=True)
        ]

    def map(self, op: tt.MapElementwiseOp, tiles: Sequence[Value], function: Part[Value]) -> list[Value]:
        pack = op.pack.value.data
        found = function([value for value in tiles for _ in range(pack)])
        return [functools.reduce(either, found[at : at + pack]) for at in range(0, len(found), pack)]

    def repeat(self, op: scf.WhileOp, initial: Sequence[Value], test: Part[Value], body: Part[Value]) -> list[Value]:
        certain = self._certain
        passed = test([unknown_value(value.type) for value in op.arguments])[1:]
        self._certain = np.zeros_like(np.asarray(certain))
        body(passed)
        self._certain = certain
        return passed

    def loop(self, op: scf.ForOp, bounds: Sequence[Value], initial: Sequence[Value], body: Part[Value]) -> list[Value]:
        counter, *arguments = op.body.block.args
        counts, last = integer_bits(counter.type), op.body.block.last_op
        assert counts is not None and last is not None
        trips, index = loop_trips(self._number(op.lb), self._number(op.ub), self._number(op.step))
        index = fit(index, counts)
        active, certain, trial = self._active, self._certain, self._trial
        self._active, self._certain = active & np.greater(trips.high, 0), certain & np.greater(trips.low, 0)

        steps = [_steps(value, argument) for value, argument in zip(last.operands, arguments, strict=True)]
        matter = [isinstance(value, Interval | Pointer) for value in initial]
        carried = [unknown_value(argument.type) for argument in arguments]
        final = list(carried)
        if any(matter):
            self._trial = True
            body([index, *carried])
            amounts = [self._amount(found) if found is not None else None for found in steps]
            for i, (argument, amount) in enumerate(zip(arguments, amounts, strict=True)):
                if matter[i] and amount is not None:
                    before = Interval(0.0, np.maximum(trips.high - 1, 0))
                    carried[i] = _advance(initial[i], mul(before, amount), argument)
                    final[i] = _advance(initial[i], mul(trips, amount), argument)
            others = [i for i in range(len(carried)) if matter[i] and amounts[i] is None]
            if others:
                yielded = body([index, *carried])
                for i in others:
                    final[i] = carried[i] = either(initial[i], yielded[i])
            self._trial = trial
        body([index, *carried])
        self._active, self._certain = active, certain
        return final

    def _amount(self, steps: Sequence[tuple[SSAValue, float]]) -> Interval:
        """Return the amount that one iteration adds, in bytes for a pointer."""
        total = exactly(np.float64(0))
        for value, factor in steps:
            total = add(total, mul(self._number(value), exactly(np.float64(factor))))
        return total


def _steps(value: SSAValue, argument: BlockArgument) -> list[tuple[SSAValue, float]] | None:
    """Return what a loop adds to its argument per iteration, with factors; None if it does anything else."""
    if value is argument:
        return []
    match value.owner:
        case arith.AddiOp() as op:
            ways = [(op.lhs, op.rhs, 1.0), (op.rhs, op.lhs, 1.0)]
        case arith.SubiOp() as op:
            ways = [(op.lhs, op.rhs, -1.0)]
        case op if moved := pointer_sum(op):
            ways = [(*moved, float(item_bytes(moved[0].type)))]
        case _:
            return None
    for base, step, factor in ways:
        found = _steps(base, argument)
        if found is not None:
            return [*found, (step, factor)]
    return None


def _advance(initial: Value, by: Interval, argument: BlockArgument) -> Value:
    if isinstance(initial, Pointer):
        return initial.advance(fit(by, 64))
    assert isinstance(initial, Interval)
    bits = integer_bits(argument.type)
    assert bits is not None
    return fit(add(initial, by), bits)


def loop_trips(low: Interval, high: Interval, step: Interval) -> tuple[Interval, Interval]:
    """Return how often a loop runs, and the possible values of its counter if it runs at all."""
    upward = np.greater(step.low, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        most = np.maximum(np.ceil((high.high - low.low) / step.low), 0)
        least = np.maximum(np.ceil((high.low - low.high) / step.high), 0)
        last = np.where(low.known & step.known, low.low + (most - 1) * step.low, high.high - 1)
    trips = Interval(np.where(upward, least, 0.0), np.where(upward, most, _INFINITY))
    everything = np.float64(_INFINITY)
    index = Interval(np.where(upward, low.low, -everything), np.where(upward, np.maximum(last, low.low), everything))
    # NaN: the end is unknown.
    trips = Interval(np.nan_to_num(trips.low, nan=0.0), np.where(np.isnan(trips.high), _INFINITY, trips.high))
    return trips, Interval(index.low, np.where(np.isnan(index.high), _INFINITY, index.high))
