"""Rewrites chains of steps that each combine the elements of a tile in pairs to one tile.pairs.

A step computes a tile from another of as many elements, a power of two. Element p of the result depends only on
elements p and p ^ (1 << i) of the source in row-major order, and on bits of p. Triton's library writes tl.sort,
tl.topk, tl.bitonic_merge and tl.flip as such steps: reshapes to dimensions of extent 2, a reduction along one of them,
and elementwise operations. Step by step, a sort of 256 elements would be 36 loops and as many tiles in memory.

Nothing here knows a sort: each step becomes a function of two scalars and a condition, whatever it computes. Steps with
the same function that follow each other become one operation, which a mapping writes as one nest of loops.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, TensorType, i1, i32
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ..dialects import tile, tt
from ..dialects.arith import BitcastOp, ConstantOp, SelectOp
from ..ops.elementwise import is_elementwise

# Operations that only move elements.
_MOVES = (tt.ExpandDimsOp, tt.BroadcastOp, tt.TransOp, tt.ReshapeOp)
_BITCASTS = (tt.BitcastOp, BitcastOp)
# The operations of one step, at most. Triton's steps have about 20.
_MOST = 64
# Where an element is: for each bit of its row-major index, from the highest, the number of the result's bit that it
# equals, or one of these two constants.
_ZERO, _ONE = -1, -2
_Place = tuple[int, ...]


def replace_pairs(body: Block) -> None:
    """Rewrite the chains of steps of a kernel, in place; what they no longer need stays, to be deleted."""
    for block in {op.parent_block(): None for op in body.walk() if isinstance(op, tt.ReduceOp) and _is_of_pairs(op)}:
        assert block is not None
        _Steps(block).replace()
        for op in list(block.ops):
            if isinstance(op, tt.ReduceOp) and isinstance(_reshaped(op.srcs[0]).owner, tile.PairsOp):
                _flatten(op)
        for op in block.ops:
            if isinstance(op, tile.PairsOp):
                op.operands[0] = _reshaped(op.src)


def _is_of_pairs(op: tt.ReduceOp) -> bool:
    """Return whether a reduction combines two elements each; other kernels need no search."""
    return len(op.srcs) == 1 and _shape(op.srcs[0])[op.axis.value.data] == 2


def _reshaped(value: SSAValue) -> SSAValue:
    """Return the value that a value is a reshape of."""
    while isinstance(value.owner, tt.ReshapeOp):
        value = value.owner.src
    return value


def _flatten(op: tt.ReduceOp) -> None:
    """Merge the dimensions before and behind the axis of a reduction with one operand."""
    if len(op.srcs) != 1:
        return
    builder = Builder(InsertPoint.before(op))
    shape, axis = _shape(op.srcs[0]), op.axis.value.data
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    element = _scalar(op.srcs[0].type)

    def reshaped(value: SSAValue, type: Attribute) -> SSAValue:
        return builder.insert(tt.ReshapeOp.create(operands=[value], result_types=[type])).results[0]

    made = tt.ReduceOp.create(
        operands=[reshaped(op.srcs[0], TensorType(element, (outer, shape[axis], inner)))],
        properties={"axis": IntegerAttr(1, 32)},
        regions=[op.detach_region(op.combine)],
        result_types=[TensorType(element, (outer, inner))],
    )
    made.location = op.location
    result: SSAValue = builder.insert(made).results[0]
    if not isinstance(op.results[0].type, TensorType):
        result = builder.insert(
            tt.UnsplatOp.create(operands=[reshaped(result, TensorType(element, (1,)))], result_types=[element])
        ).results[0]
    else:
        result = reshaped(result, op.results[0].type)
    op.results[0].replace_all_uses_with(result)
    Rewriter.erase_op(op)


@dataclass(frozen=True)
class _Step:
    """One step.

    Attributes:
        source, result: the two tiles; as many elements of the same type.
        nodes: the values between them, the result among them.
        bit: which bit of the index differs between the elements of a pair.
        flip: the bit of the index that is the function's condition; -1 if it has none.
        function: the expressions for the element whose bit is 0 and for the one whose bit is 1.
    """

    source: SSAValue
    result: SSAValue
    nodes: frozenset[SSAValue]
    bit: int
    flip: int
    function: tuple[int, int]


class _Unfit(Exception):
    """Values that are not one step."""


@dataclass(frozen=True)
class _Node:
    """An operation on scalars, or a leaf: an argument of the function, a constant, a value of the kernel."""

    kind: object
    type: Attribute
    arguments: tuple[int, ...] = ()
    properties: tuple[tuple[str, Attribute], ...] = ()


class _Expressions:
    """Expressions on scalars, each with a number; equal expressions have the same number."""

    def __init__(self) -> None:
        self.nodes: list[_Node] = []
        self._numbers: dict[_Node, int] = {}

    def number(self, node: _Node) -> int:
        if node not in self._numbers:
            self._numbers[node] = len(self.nodes)
            self.nodes.append(node)
        return self._numbers[node]

    def integer(self, value: int, type: Attribute) -> int:
        return self.constant(ConstantOp.integer(value, type))

    def constant(self, op: ConstantOp) -> int:
        if op.splat is None:
            raise _Unfit
        return self.number(_Node(("constant", op.splat), op.element))

    def operation(self, op: Operation, arguments: Sequence[int]) -> int:
        """Return an elementwise operation on scalars."""
        found = self._simpler(op, arguments)
        if found is not None:
            return found
        properties = tuple(sorted(op.properties.items()))
        return self.number(_Node(type(op), _scalar(op.results[0].type), tuple(arguments), properties))

    def _simpler(self, op: Operation, arguments: Sequence[int]) -> int | None:
        """Return what a ^ (a ^ b), or a bitcast of the opposite bitcast, is equal to."""
        if isinstance(op, arith.XOrIOp):
            for one, other in (arguments, arguments[::-1]):
                inner = self.nodes[other]
                if inner.kind is arith.XOrIOp and one in inner.arguments:
                    return inner.arguments[1 - inner.arguments.index(one)]
        if isinstance(op, _BITCASTS):
            inner = self.nodes[arguments[0]]
            if inner.kind in _BITCASTS and self.nodes[inner.arguments[0]].type == _scalar(op.results[0].type):
                return inner.arguments[0]
        return None


class _Steps:
    """Finds and replaces the steps of one block."""

    def __init__(self, block: Block) -> None:
        self._order = {op: number for number, op in enumerate(block.ops)}
        self._expressions = _Expressions()
        self._leafless: dict[SSAValue, bool] = {}

    def replace(self) -> None:
        chains: list[list[_Step]] = []
        for step in self._found():
            if chains and self._follows(chains[-1][-1], step):
                chains[-1].append(step)
            else:
                chains.append([step])
        # The last chain first: it may take the result of another one, which is replaced then.
        for chain in reversed(chains):
            self._write(chain)

    def _found(self) -> list[_Step]:
        """Return all steps, in the order of the block; none is part of another one."""
        steps: list[_Step] = []
        inner: set[SSAValue] = set()
        # The last value of a step first: values within a step may look like steps as well.
        for op in reversed(self._order):
            if len(op.results) == 1 and op.results[0] not in inner and (is_elementwise(op) or isinstance(op, _MOVES)):
                step = self._step(op.results[0])
                if step is not None:
                    steps.append(step)
                    inner |= step.nodes
        return steps[::-1]

    def _step(self, result: SSAValue) -> _Step | None:
        found = self._between(result)
        if found is None:
            return None
        source, nodes = found
        size = _size(result)
        if size < 2 or size & (size - 1) or _size(source) != size or _scalar(source.type) != _scalar(result.type):
            return None
        try:
            bit = _Pairing(self._expressions, source, size).bit(result)
            sides = [_Pairing(self._expressions, source, size, bit, side) for side in (_ZERO, _ONE)]
            left, right = (side.of(result) for side in sides)
        except _Unfit:
            return None
        flips = {flip for side in sides for flip in side.flips}
        if len(flips) > 1:
            return None
        return _Step(source, result, nodes, bit, flips.pop() if flips else -1, (left, right))

    def _between(self, result: SSAValue) -> tuple[SSAValue, frozenset[SSAValue]] | None:
        """Return the one tile that a value is computed from by way of a reduction, and the values between them."""
        waiting, nodes = {result}, set[SSAValue]()
        is_reduced = False
        while len(nodes) < _MOST:
            value = max(waiting, key=self._place)
            waiting.remove(value)
            op = value.owner
            if not isinstance(op, Operation) or op not in self._order or len(op.results) != 1:
                return None
            if not (is_elementwise(op) or isinstance(op, (*_MOVES, tt.ReduceOp))):
                return None
            if value is not result and any(use.operation not in self._owners(nodes) for use in value.uses):
                return None
            nodes.add(value)
            is_reduced |= isinstance(op, tt.ReduceOp)
            waiting |= {operand for operand in op.operands if not self._is_leafless(operand)}
            if len(waiting) == 1 and is_reduced:
                return waiting.pop(), frozenset(nodes)
            unary = all(isinstance(node.owner, (*_BITCASTS, tt.ReshapeOp)) for node in nodes)
            if not waiting or (len(waiting) == 1 and not unary):
                return None
        return None

    def _place(self, value: SSAValue) -> int:
        """Return the place of a value's operation in the block; -1 if it is in another one."""
        return self._order.get(value.owner, -1) if isinstance(value.owner, Operation) else -1

    @staticmethod
    def _owners(values: set[SSAValue]) -> set[Operation | Block]:
        return {value.owner for value in values}

    def _is_leafless(self, value: SSAValue) -> bool:
        """Return whether a value is a scalar, or depends on scalars and on the index only."""
        if value not in self._leafless:
            op = value.owner
            if not isinstance(value.type, TensorType) or isinstance(op, tt.MakeRangeOp | tt.SplatOp | ConstantOp):
                self._leafless[value] = True
            else:
                moved = is_elementwise(op) or isinstance(op, _MOVES)
                self._leafless[value] = moved and all(map(self._is_leafless, op.operands))  # type: ignore[union-attr]
        return self._leafless[value]

    @staticmethod
    def _follows(before: _Step, step: _Step) -> bool:
        """Return whether a step takes the result of the one before, and nothing else does."""
        source, users = step.source, {node.owner for node in step.nodes}
        while source is not before.result:
            op = source.owner
            if not isinstance(op, tt.ReshapeOp) or any(use.operation not in users for use in source.uses):
                return False
            source, users = op.src, {op}
        moved = {use.operation for use in source.uses} - users
        return not moved and before.function == step.function

    def _write(self, chain: list[_Step]) -> None:
        """Write one operation for a chain of steps with the same function; a single step of few dimensions stays."""
        if len(chain) < 2 and all(len(_shape(node)) <= 3 for node in chain[0].nodes):
            return
        last, source = chain[-1].result, chain[0].source
        owner = last.owner
        assert isinstance(owner, Operation)
        region = self._region(chain[0].function, _scalar(last.type))
        op = tile.PairsOp(source, [step.bit for step in chain], [step.flip for step in chain], region, last.type)
        op.location = owner.location
        Builder(InsertPoint.before(owner)).insert(op)
        last.replace_all_uses_with(op.result)

    def _region(self, function: tuple[int, int], element: Attribute) -> Region:
        block = Block(arg_types=[element, element, i1])
        builder = Builder(InsertPoint.at_end(block))
        values: dict[int, SSAValue] = {}

        def written(number: int) -> SSAValue:
            if number not in values:
                values[number] = write(self._expressions.nodes[number])
            return values[number]

        def write(node: _Node) -> SSAValue:
            match node.kind:
                case "argument", int(place):
                    return block.args[place]
                case "constant", int(bits):
                    return builder.insert(ConstantOp([bits], node.type)).result
                case "value", SSAValue() as value:
                    return value
            arguments = [written(argument) for argument in node.arguments]
            kind = node.kind
            assert isinstance(kind, type) and issubclass(kind, Operation)
            made = kind.create(operands=arguments, result_types=[node.type], properties=dict(node.properties))
            return builder.insert(made).results[0]

        results = [written(number) for number in function]
        builder.insert(tile.PairsReturnOp(results))
        return Region(block)


class _Pairing:
    """Reads a step: which element of its source each of its values needs.

    Args:
        bit, side: the bit that is fixed, and its value; without them, all bits of the index are open.

    Attributes:
        flips: the open bits of the index, other than the pair's, that the function depends on.
    """

    def __init__(
        self, expressions: _Expressions, source: SSAValue, size: int, bit: int = -1, side: int = _ZERO
    ) -> None:
        self._expressions = expressions
        self._source = source
        self._places = range(size.bit_length() - 2, -1, -1)
        self._start = tuple(side if place == bit else place for place in self._places)
        self._bit = bit
        self._fixed: set[int] = set()
        self._known: dict[tuple[SSAValue, _Place], int] = {}
        self.flips: set[int] = set()

    def bit(self, result: SSAValue) -> int:
        """Return the one bit in which the elements that an element depends on differ."""
        self.of(result)
        if len(self._fixed) != 1:
            raise _Unfit
        return self._fixed.pop()

    def of(self, result: SSAValue) -> int:
        """Return the expression of an element of the result."""
        return self._at(result, self._start)

    def _at(self, value: SSAValue, place: _Place) -> int:
        key = value, place
        if key not in self._known:
            self._known[key] = self._read(value, place)
        return self._known[key]

    def _read(self, value: SSAValue, place: _Place) -> int:
        make = self._expressions
        if value is self._source:
            return self._element(value, place)
        op = value.owner
        match op:
            case ConstantOp():
                return make.constant(op)
            case tt.SplatOp():
                return self._scalar(op.src)
            case tt.MakeRangeOp():
                return self._range(op, place)
            case tt.ExpandDimsOp() | tt.ReshapeOp():
                return self._at(op.src, place)
            case tt.BroadcastOp():
                parts = _parts(place, value)
                kept = [part for part, extent in zip(parts, _shape(op.src), strict=True) if extent > 1]
                return self._at(op.src, tuple(bit for part in kept for bit in part))
            case tt.TransOp():
                parts, order = _parts(place, value), list(op.order.get_values())
                turned = [parts[order.index(d)] for d in range(len(order))]
                return self._at(op.src, tuple(bit for part in turned for bit in part))
            case tt.ReduceOp():
                return self._reduced(op, place)
            case Operation() if is_elementwise(op):
                arguments = [
                    self._at(operand, place) if isinstance(operand.type, TensorType) else self._scalar(operand)
                    for operand in op.operands
                ]
                return make.operation(op, arguments)
        raise _Unfit

    def _scalar(self, value: SSAValue) -> int:
        op = value.owner
        if isinstance(op, ConstantOp):
            return self._expressions.constant(op)
        return self._expressions.number(_Node(("value", value), value.type))

    def _element(self, value: SSAValue, place: _Place) -> int:
        """Return an element of the source: the one whose bit is 0 or the one whose bit is 1."""
        side = 0
        for bit, wanted in zip(place, self._places, strict=True):
            if bit == wanted:
                continue
            if bit >= 0 or self._bit not in (-1, wanted):
                raise _Unfit
            self._fixed.add(wanted)
            side = int(bit == _ONE)
        return self._expressions.number(_Node(("argument", side), _scalar(value.type)))

    def _range(self, op: tt.MakeRangeOp, place: _Place) -> int:
        start, total = op.start.value.data, 0
        make, open_bits = self._expressions, set[int]()
        weight = 0
        for bit in place:
            total, weight = 2 * total + (bit == _ONE), 2 * weight
            if bit >= 0:
                open_bits.add(bit)
                weight += 1
        if not open_bits:
            return make.integer(start + total, i32)
        if self._bit != -1:
            if len(open_bits) > 1:
                raise _Unfit
            self.flips |= open_bits
        flip = make.number(_Node(("argument", 2), i1))
        values = [make.integer(number, i32) for number in (start + total + weight, start + total)]
        return make.number(_Node(SelectOp, i32, (flip, *values)))

    def _reduced(self, op: tt.ReduceOp, place: _Place) -> int:
        axis = op.axis.value.data
        (src,) = op.srcs
        shape = _shape(src)
        if shape[axis] != 2:
            raise _Unfit
        before = sum(extent.bit_length() - 1 for extent in shape[:axis])
        block = op.combine.block
        sides = [self._at(src, (*place[:before], side, *place[before:])) for side in (_ZERO, _ONE)]
        known: dict[SSAValue, int] = dict(zip(block.args, sides, strict=True))

        def number(value: SSAValue) -> int:
            return known[value] if value in known else self._scalar(value)

        for inner in block.ops:
            if isinstance(inner, tt.ReduceReturnOp):
                return number(inner.values[0])
            if not is_elementwise(inner):
                raise _Unfit
            known[inner.results[0]] = self._expressions.operation(inner, [number(arg) for arg in inner.operands])
        raise _Unfit


def _scalar(type: Attribute) -> Attribute:
    return type.element_type if isinstance(type, TensorType) else type


def _shape(value: SSAValue) -> tuple[int, ...]:
    return value.type.get_shape() if isinstance(value.type, TensorType) else ()


def _size(value: SSAValue) -> int:
    return math.prod(_shape(value))


def _parts(place: _Place, value: SSAValue) -> list[_Place]:
    """Split the bits of an index into those of each dimension."""
    parts, first = [], 0
    for extent in _shape(value):
        bits = extent.bit_length() - 1
        parts.append(place[first : first + bits])
        first += bits
    return parts
