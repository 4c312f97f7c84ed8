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
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from ..dialects import tile, tt
from ..dialects.arith import CmpiOp, ConstantOp, ExtSIOp, ExtUIOp, SelectOp, TruncIOp
from ..dialects.elements import chosen
from ..effects import reads, writes
from ..errors import unsupported
from . import interval
from .accesses import Accesses, box
from .integers import INTEGERS
from .interval import Interval, Truth, add, anything, choose, exactly, fit, mul, sub
from .values import Axis, Pointer, Range, Value, either, item_bytes, unknown, width

_OF_ONE_BIT = (arith.AndIOp.name, arith.OrIOp.name, arith.XOrIOp.name)
_INFINITY = float("inf")


class Walk:
    """The values and accesses of a kernel for many programs at once.

    Args:
        programs: the number of programs; intervals have one number, or this many.
        ids: the program's ids along x, y and z.
        grid: programs along x, y and z.
        reads, writes: where accesses are recorded.
    """

    def __init__(
        self, programs: int, ids: Sequence[Interval], grid: Sequence[int], reads: Accesses, writes: Accesses
    ) -> None:
        self._ids = ids
        self._grid = grid
        self._reads = reads
        self._writes = writes
        self._values: dict[SSAValue, Value] = {}
        # The programs that may reach this point, and those that certainly reach it.
        self._active: Truth = np.ones(programs, np.bool_)
        self._certain: Truth = np.ones(programs, np.bool_)
        self._trial = False

    def run(self, body: Block, arguments: Sequence[Value]) -> None:
        """Walk a kernel; `arguments` are its parameters' values."""
        self._values.update(zip(body.args, arguments, strict=True))
        self._block(body)

    def _block(self, block: Block) -> list[Value]:
        """Walk a block and return the values that it yields."""
        for op in block.ops:
            self._operation(op)
        last = block.last_op
        return [self._values.get(value) for value in last.operands] if last is not None else []

    def _number(self, value: SSAValue) -> Interval:
        found = self._values.get(value)
        assert isinstance(found, Interval)
        return found

    def _operation(self, op: Operation) -> None:
        match op:
            case tile.Access():
                for accesses, is_made in ((self._reads, reads(op)), (self._writes, writes(op))):
                    if is_made:
                        self._access(accesses, op)
                self._values.update((result, unknown(result.type)) for result in op.results)
            case scf.ForOp():
                self._for(op)
            case scf.IfOp():
                self._if(op)
            case scf.WhileOp():
                self._while(op)
            case tt.MapElementwiseOp():
                self._map(op)
            case scf.YieldOp() | scf.ConditionOp() | tt.ReturnOp() | tt.MapElementwiseReturnOp():
                pass
            case _ if reads(op) or writes(op):
                raise unsupported(op, "what it reaches in memory is not known")
            case _:
                for result in op.results:
                    self._values[result] = self._result(op, result)

    def _result(self, op: Operation, result: SSAValue) -> Value:
        operands = [self._values.get(operand) for operand in op.operands]
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
            case tt.AddPtrOp():
                pointer = self._values.get(op.ptr)
                assert isinstance(pointer, Pointer)
                size = exactly(np.float64(item_bytes(op.ptr.type)))
                return pointer.moved(fit(mul(self._number(op.offset), size), 64))
            case SelectOp() if isinstance(operands[1], Pointer):
                return either(operands[1], operands[2])
            case _ if elements := chosen(op):
                # In the analysis a tensor is any one of its elements.
                return functools.reduce(either, map(self._values.get, elements))
        bits = width(result.type)
        if bits is None:
            return unknown(result.type)
        found = self._integer(op, operands, bits)
        return fit(found, bits) if found is not None else anything(bits)

    def _integer(self, op: Operation, operands: Sequence[Value], bits: int) -> Interval | None:
        """Return the result of an operation before it wraps around; None if it is unknown."""
        match op:
            case ConstantOp():
                return _constant(op)
            case tt.GetProgramIdOp():
                return self._ids[op.axis.value.data]
            case tt.GetNumProgramsOp():
                return exactly(np.float64(self._grid[op.axis.value.data]))
            case tt.MakeRangeOp():
                return Interval(np.float64(op.start.value.data), np.float64(op.end.value.data - 1))
        if not operands or not all(isinstance(operand, Interval) for operand in operands):
            return None
        numbers = [operand for operand in operands if isinstance(operand, Interval)]
        from_bits = width(op.operands[-1].type)
        match op:
            case ExtSIOp():
                return sub(exactly(np.float64(0)), numbers[0]) if from_bits == 1 else numbers[0]
            case ExtUIOp():
                assert from_bits is not None
                whole = Interval(np.float64(0), np.exp2(from_bits))
                return choose(interval.compare("sge", numbers[0], exactly(0.0)), numbers[0], whole)
            case TruncIOp():
                # The analysis does not track numbers modulo 2.
                return numbers[0] if bits > 1 else None
            case CmpiOp():
                if from_bits == 1 and op.predicate_name not in ("eq", "ne"):
                    return None
                return interval.compare(op.predicate_name, *numbers)
            case SelectOp():
                return choose(*numbers)
        meaning = INTEGERS.get(op.name)
        # The analysis does not track sums and the like of one-bit numbers.
        if meaning is None or (bits == 1 and op.name not in _OF_ONE_BIT):
            return None
        return meaning.intervals(numbers[0], numbers[1], bits)

    def _access(self, accesses: Accesses, op: tile.Access) -> None:
        if self._trial:
            return
        pointer = self._values.get(op.base)
        assert isinstance(pointer, Pointer)
        axes = [axis for value in op.axes if isinstance(axis := self._values.get(value), Axis)]
        ranges = [found for value in op.ranges if isinstance(found := self._values.get(value), Range)]
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
        accesses.add(pointer, reached, item_bytes(op.base.type), active, certain)

    def _if(self, op: scf.IfOp) -> None:
        condition = self._number(op.cond)
        active, certain = self._active, self._certain
        branches: list[list[Value]] = []
        for region, may, must in (
            (op.true_region, np.greater(condition.high, 0), np.greater(condition.low, 0)),
            (op.false_region, np.less(condition.low, 1), np.less(condition.high, 1)),
        ):
            self._active, self._certain = active & may, certain & must
            # A branch that no program takes has no effect here; a missing branch yields nothing.
            branches.append(self._block(region.block) if region.blocks else [])
        self._active, self._certain = active, certain
        for i, result in enumerate(op.results):
            then, other = branches[0][i], branches[1][i]
            if isinstance(then, Interval) and isinstance(other, Interval):
                self._values[result] = choose(condition, then, other)
            else:
                self._values[result] = either(then, other)

    def _map(self, op: tt.MapElementwiseOp) -> None:
        block, pack = op.function.block, op.pack.value.data
        for place, argument in enumerate(block.args):
            self._values[argument] = self._values.get(op.srcs[place // pack])
        found = self._block(block)
        for place, result in enumerate(op.results):
            values = found[place * pack : (place + 1) * pack]
            self._values[result] = functools.reduce(either, values)

    def _while(self, op: scf.WhileOp) -> None:
        certain = self._certain
        for argument in op.before_region.block.args:
            self._values[argument] = unknown(argument.type)
        passed = self._block(op.before_region.block)[1:]  # the condition comes first
        self._certain = np.zeros_like(np.asarray(certain))
        self._values.update(zip(op.after_region.block.args, passed, strict=True))
        self._block(op.after_region.block)
        self._certain = certain
        self._values.update(zip(op.results, passed, strict=True))

    def _for(self, op: scf.ForOp) -> None:
        body = op.body.block
        counter, *carried = body.args
        counts = width(counter.type)
        assert counts is not None
        trips, index = loop_trips(self._number(op.lb), self._number(op.ub), self._number(op.step))
        self._values[counter] = fit(index, counts)
        active, certain, trial = self._active, self._certain, self._trial
        self._active, self._certain = active & np.greater(trips.high, 0), certain & np.greater(trips.low, 0)

        initial = [self._values.get(value) for value in op.iter_args]
        yields = body.last_op
        assert yields is not None
        steps = [_steps(value, argument) for value, argument in zip(yields.operands, carried, strict=True)]
        matter = [isinstance(value, Interval | Pointer) for value in initial]
        for argument in carried:
            self._values[argument] = unknown(argument.type)
        final: list[Value] = [self._values[argument] for argument in carried]
        if any(matter):
            self._trial = True
            self._block(body)
            amounts = [self._amount(found) if found is not None else None for found in steps]
            for i, (argument, amount) in enumerate(zip(carried, amounts, strict=True)):
                if matter[i] and amount is not None:
                    before = Interval(0.0, np.maximum(trips.high - 1, 0))
                    self._values[argument] = _moved(initial[i], mul(before, amount), argument)
                    final[i] = _moved(initial[i], mul(trips, amount), argument)
            others = [i for i in range(len(carried)) if matter[i] and amounts[i] is None]
            if others:
                yielded = self._block(body)
                for i in others:
                    final[i] = self._values[carried[i]] = either(initial[i], yielded[i])
            self._trial = trial
        self._block(body)
        self._active, self._certain = active, certain
        self._values.update(zip(op.results, final, strict=True))

    def _amount(self, steps: Sequence[tuple[SSAValue, float]]) -> Interval:
        """Return the amount that one iteration adds, in bytes for a pointer."""
        total = exactly(np.float64(0))
        for value, factor in steps:
            total = add(total, mul(self._number(value), exactly(np.float64(factor))))
        return total


def _constant(op: ConstantOp) -> Interval | None:
    numbers = op.integers
    return Interval(np.float64(min(numbers)), np.float64(max(numbers))) if numbers else None


def _steps(value: SSAValue, argument: BlockArgument) -> list[tuple[SSAValue, float]] | None:
    """Return what a loop adds to its argument per iteration, with factors; None if it does anything else."""
    if value is argument:
        return []
    match value.owner:
        case arith.AddiOp() as op:
            ways = [(op.lhs, op.rhs, 1.0), (op.rhs, op.lhs, 1.0)]
        case arith.SubiOp() as op:
            ways = [(op.lhs, op.rhs, -1.0)]
        case tt.AddPtrOp() as op:
            ways = [(op.ptr, op.offset, float(item_bytes(op.ptr.type)))]
        case _:
            return None
    for base, step, factor in ways:
        found = _steps(base, argument)
        if found is not None:
            return [*found, (step, factor)]
    return None


def _moved(initial: Value, by: Interval, argument: BlockArgument) -> Value:
    if isinstance(initial, Pointer):
        return initial.moved(fit(by, 64))
    assert isinstance(initial, Interval)
    bits = width(argument.type)
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
