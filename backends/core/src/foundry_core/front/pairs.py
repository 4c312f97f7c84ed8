"""Rewrites chains of steps that each combine the elements of tiles in pairs to one tile.pairs.

A step computes a tile from another of as many elements, a power of two. Element p of the result depends only on
elements p and p ^ (1 << i) of the source in row-major order, and on bits of p. Triton's library writes tl.sort,
tl.topk, tl.bitonic_merge and tl.flip as such steps: reshapes to dimensions of extent 2, a reduction along one of them,
and elementwise operations. Step by step, a sort of 256 elements would be 36 loops and as many tiles in memory. A step
may also compute several tiles from as many others: a sort of a user that moves indices along does.

Nothing here knows a sort: each step becomes a function of two scalars and a condition, whatever it computes. Steps with
the same function that follow each other become one operation, which a mapping writes as one nest of loops.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

from xdsl.builder import Builder
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, IntegerType, TensorType, i1
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ..ir import tile, tt
from ..ir.arith import BitcastOp, ConstantOp, SelectOp
from ..ir.build import reshape, unsplat
from ..ir.elements import extents, index_mapping, row_major_source
from ..ir.facts import first_number
from ..ops.elementwise import is_elementwise

_BITCASTS = (tt.BitcastOp, BitcastOp)
# The operations of one step for each tile, at most. Triton's steps have about 20.
_MOST = 64
# The tiles of one step, at most: all orders of the results are tried.
_TILES = 3
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
                op.operands = [_reshaped(src) for src in op.srcs]


def _is_of_pairs(op: tt.ReduceOp) -> bool:
    """Return whether a reduction combines two elements each; other kernels need no search."""
    return len(op.srcs) == 1 and extents(op.srcs[0])[op.axis.value.data] == 2


def _reshaped(value: SSAValue) -> SSAValue:
    """Return the value that a value is a reshape of."""
    while (before := row_major_source(value)) is not None:
        value = before
    return value


def _moves(value: SSAValue) -> bool:
    """Return whether an operation only moves elements to a tile."""
    return row_major_source(value) is not None or index_mapping(value) is not None


def _flatten(op: tt.ReduceOp) -> None:
    """Merge the dimensions before and behind the axis of a reduction with one operand."""
    if len(op.srcs) != 1:
        return
    builder = Builder(InsertPoint.before(op))
    shape, axis = extents(op.srcs[0]), op.axis.value.data
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    element = _scalar(op.srcs[0].type)
    made = tt.ReduceOp.create(
        operands=[reshape(builder, op.srcs[0], (outer, shape[axis], inner))],
        properties={"axis": IntegerAttr(1, 32)},
        regions=[op.detach_region(op.combine)],
        result_types=[TensorType(element, (outer, inner))],
    )
    made.location = op.location
    result: SSAValue = builder.insert(made).results[0]
    if not isinstance(op.results[0].type, TensorType):
        result = unsplat(builder, reshape(builder, result, (1,)))
    else:
        result = reshape(builder, result, extents(op.results[0]))
    op.results[0].replace_all_uses_with(result)
    Rewriter.erase_op(op)


@dataclass(frozen=True)
class _Step:
    """One step.

    Attributes:
        sources, results: the tiles before and after it, one of the same type for each; all have as many elements.
        nodes: the values between them, the results among them.
        bit: which bit of the index differs between the elements of a pair.
        flip: the bit of the index that is the function's condition; -1 if it has none.
        function: the expressions for each result's element whose bit is 0, and for those whose bit is 1.
    """

    sources: tuple[SSAValue, ...]
    results: tuple[SSAValue, ...]
    nodes: frozenset[SSAValue]
    bit: int = -1
    flip: int = -1
    function: tuple[int, ...] = ()


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
        self.expressions = _Expressions()
        self._leafless: dict[SSAValue, bool] = {}

    def replace(self) -> None:
        chains: list[list[_Step]] = []
        for step in self._found():
            if not chains or not self._extend(chains[-1], step):
                chains.append([step])
        for chain in chains:
            self._complete(chain)
        # The last chain first: it may take the result of another one, which is replaced then.
        for chain in reversed(chains):
            self._write(chain)

    def _found(self) -> list[_Step]:
        """Return all steps, in the order of the block; none is part of another one."""
        steps: list[_Step] = []
        inner: set[SSAValue] = set()
        # The last value of a step first: values within a step may look like steps as well.
        for op in reversed(self._order):
            if len(op.results) == 1 and op.results[0] not in inner and (is_elementwise(op) or _moves(op.results[0])):
                step = self._step(op.results[0])
                if step is not None:
                    steps.append(step)
                    inner |= step.nodes
        return steps[::-1]

    def _step(self, last: SSAValue) -> _Step | None:
        """Return the step whose last value is given."""
        size = _size(last)
        if size < 2 or size & (size - 1):
            return None
        results = {last}
        while len(results) <= _TILES:
            more = set[SSAValue]()
            for sources, nodes in self._between(results):
                more = self._others(nodes, last) - results
                if more:
                    break
                found = self._made(sources, nodes)
                if found is not None or len(sources) == 1:
                    return found
            if not more:
                return None
            results |= more
        return None

    def _made(self, sources: Sequence[SSAValue], nodes: frozenset[SSAValue]) -> _Step | None:
        """Return the step between these tiles and those of the nodes that are used elsewhere."""
        owners = self._owners(nodes)
        results = [node for node in nodes if any(use.operation not in owners for use in node.uses)]
        results.sort(key=self._place)
        if len(results) != len(sources) or any(_size(each) != _size(sources[0]) for each in results):
            return None
        # What replaces the step is written where its last result is.
        users = (use.operation for each in results for use in each.uses if use.operation not in owners)
        if any(self._outermost(user) < self._place(results[-1]) for user in users):
            return None
        step = _Step(tuple(sources), (), nodes)
        orders = (self._with(step, order) for order in permutations(results))
        return next((each for each in orders if each is not None), None)

    def _with(self, step: _Step, results: tuple[SSAValue, ...]) -> _Step | None:
        """Return a step with its results in an order, in which they have the types of the sources; None if unfit."""
        if [_scalar(each.type) for each in step.sources] != [_scalar(each.type) for each in results]:
            return None
        size = _size(results[0])
        try:
            bit = _Pairing(self, step.sources, size).bit(results)
            sides = [_Pairing(self, step.sources, size, bit, side) for side in (_ZERO, _ONE)]
            function = tuple(side.expression(each) for side in sides for each in results)
        except _Unfit:
            return None
        flips = {flip for side in sides for flip in side.flips}
        if len(flips) > 1:
            return None
        return replace(step, results=results, bit=bit, flip=flips.pop() if flips else -1, function=function)

    def _between(self, results: set[SSAValue]) -> Iterator[tuple[list[SSAValue], frozenset[SSAValue]]]:
        """Yield the tiles that values are computed from by way of reductions, nearest first, and the values between."""
        waiting, nodes = set(results), set[SSAValue]()
        size, is_reduced = _size(next(iter(results))), False
        while len(nodes) < _MOST * len(results):
            value = max(waiting, key=self._place)
            waiting.remove(value)
            op = value.owner
            if not isinstance(op, Operation) or op not in self._order or len(op.results) != 1:
                return
            if not (is_elementwise(op) or isinstance(op, tt.ReduceOp) or _moves(value)):
                return
            nodes.add(value)
            is_reduced |= isinstance(op, tt.ReduceOp)
            waiting |= {operand for operand in op.operands if not self.is_leafless(operand)}
            if not waiting:
                return
            # A tile, and a reshape of it, are one source. All sources come before the step, so that none depends on
            # another one.
            bases = {_reshaped(each): each for each in waiting}
            if is_reduced and len(bases) <= _TILES and all(_size(each) == size for each in waiting):
                sources, between = waiting, frozenset(nodes)
                if len(bases) < len(waiting):
                    sources, between = set(bases), between.union(*map(_reshapes, waiting))
                if max(map(self._place, sources)) < min(map(self._place, between)):
                    yield sorted(sources, key=self._place), between
            unary = all(isinstance(node.owner, _BITCASTS) or row_major_source(node) is not None for node in nodes)
            if len(waiting) == 1 and not is_reduced and not unary:
                return

    def _others(self, nodes: frozenset[SSAValue], last: SSAValue) -> set[SSAValue]:
        """Return what else is computed from these values before the last one: other results of the step."""
        owners, pending, found = self._owners(nodes), list(nodes), set[SSAValue]()
        while pending:
            for use in pending.pop().uses:
                user = use.operation
                if user not in owners and self._order.get(user, len(self._order)) < self._place(last):
                    owners.add(user)
                    found |= set(user.results)
                    pending += user.results
        return {value for value in found if any(use.operation not in owners for use in value.uses)}

    def _place(self, value: SSAValue) -> int:
        """Return the place of a value's operation in the block; -1 if it is in another one."""
        return self._order.get(value.owner, -1) if isinstance(value.owner, Operation) else -1

    def _outermost(self, op: Operation) -> int:
        """Return the place of an operation of the block, or of the one that an operation is in."""
        around: Operation | None = op
        while around is not None and around not in self._order:
            around = around.parent_op()
        return len(self._order) if around is None else self._order[around]

    @staticmethod
    def _owners(values: frozenset[SSAValue]) -> set[Operation]:
        return {value.owner for value in values if isinstance(value.owner, Operation)}

    def is_leafless(self, value: SSAValue) -> bool:
        """Return whether a value is a scalar, or depends on scalars and on the index only."""
        if value not in self._leafless:
            op = value.owner
            if not isinstance(value.type, TensorType) or isinstance(op, ConstantOp) or first_number(op) is not None:
                self._leafless[value] = True
            else:
                known = is_elementwise(op) or _moves(value)
                self._leafless[value] = known and all(map(self.is_leafless, op.operands))  # type: ignore[union-attr]
        return self._leafless[value]

    def _extend(self, chain: list[_Step], step: _Step) -> bool:
        """Append a step to a chain if it takes the chain's results, nothing else does, and its function is the same."""
        before = chain[-1]
        taken = self._taken(before, step)
        if taken is None:
            return False
        # The order of the first step's results is not known before the second one: that of their sources.
        for order in permutations(before.results) if len(chain) == 1 else (before.results,):
            first = self._with(before, order)
            if first is None:
                continue
            following = replace(step, sources=tuple(taken[result] for result in order))
            for results in permutations(step.results):
                second = self._with(following, results)
                if second is not None and second.function == first.function:
                    chain[-1:] = [first, second]
                    return True
        return False

    def _complete(self, chain: list[_Step]) -> None:
        """Add the step before a chain if one source of it depends on the index only, as indices to be sorted do."""
        results = chain[0].sources
        if len(results) < 2 or any(self._place(each) < 0 for each in results):
            return
        for sources, nodes in self._between(set(results)):
            owners = self._owners(nodes)
            used = {node for node in nodes if any(use.operation not in owners for use in node.uses)}
            if used != set(results) or len(sources) != len(results) - 1:
                continue
            operands = {_reshaped(operand): None for operation in owners for operand in operation.operands}
            for each in operands:
                if not self.is_leafless(each) or _size(each) != _size(results[0]):
                    continue
                for order in permutations((*sources, each)):
                    step = self._with(_Step(order, (), nodes), results)
                    if step is not None and step.function == chain[0].function:
                        chain.insert(0, step)
                        return

    def _taken(self, before: _Step, step: _Step) -> dict[SSAValue, SSAValue] | None:
        """Return the source that each result of the step before is; None if something else takes a result."""
        found = {}
        for source in step.sources:
            value, users = source, self._owners(step.nodes)
            while value not in before.results:
                op, inner = value.owner, row_major_source(value)
                if inner is None or any(use.operation not in users for use in value.uses):
                    return None
                assert isinstance(op, Operation)
                value, users = inner, {op}
            if {use.operation for use in value.uses} - users:
                return None
            found[value] = source
        return found if len(found) == len(before.results) else None

    def _write(self, chain: list[_Step]) -> None:
        """Write one operation for a chain of steps with the same function; a single step of few dimensions stays."""
        if len(chain) < 2 and all(len(extents(node)) <= 3 for node in chain[0].nodes):
            return
        results, sources = chain[-1].results, chain[0].sources
        owner = max(results, key=self._place).owner
        assert isinstance(owner, Operation)
        region = self._region(chain[0].function, [_scalar(each.type) for each in results])
        bits, flips = [step.bit for step in chain], [step.flip for step in chain]
        op = tile.PairsOp(sources, bits, flips, region, [each.type for each in results])
        op.location = owner.location
        Builder(InsertPoint.before(owner)).insert(op)
        for old, new in zip(results, op.results, strict=True):
            old.replace_all_uses_with(new)

    def _region(self, function: Sequence[int], elements: Sequence[Attribute]) -> Region:
        block = Block(arg_types=[*elements, *elements, i1])
        builder = Builder(InsertPoint.at_end(block))
        values: dict[int, SSAValue] = {}

        def expression_value(number: int) -> SSAValue:
            if number not in values:
                values[number] = write(self.expressions.nodes[number])
            return values[number]

        def write(node: _Node) -> SSAValue:
            match node.kind:
                case "argument", int(place):
                    return block.args[place]
                case "constant", int(bits):
                    return builder.insert(ConstantOp([bits], node.type)).result
                case "value", SSAValue() as value:
                    return value
            arguments = [expression_value(argument) for argument in node.arguments]
            kind = node.kind
            assert isinstance(kind, type) and issubclass(kind, Operation)
            made = kind.create(operands=arguments, result_types=[node.type], properties=dict(node.properties))
            return builder.insert(made).results[0]

        results = [expression_value(number) for number in function]
        builder.insert(tile.PairsReturnOp(results))
        return Region(block)


class _Pairing:
    """Reads a step: which elements of its sources each of its values needs.

    Args:
        bit, side: the bit that is fixed, and its value; without them, all bits of the index are open.

    Attributes:
        flips: the open bits of the index, other than the pair's, that the function depends on.
    """

    def __init__(
        self,
        steps: _Steps,
        sources: Sequence[SSAValue],
        size: int,
        bit: int = -1,
        side: int = _ZERO,
    ) -> None:
        self._expressions = steps.expressions
        self._is_leafless = steps.is_leafless
        self._sources = sources
        self._places = range(size.bit_length() - 2, -1, -1)
        self._start = tuple(side if place == bit else place for place in self._places)
        self._bit = bit
        self._fixed: set[int] = set()
        self._known: dict[tuple[SSAValue, _Place], int] = {}
        self.flips: set[int] = set()

    def bit(self, results: Sequence[SSAValue]) -> int:
        """Return the one bit in which the elements that elements of results depend on differ."""
        for result in results:
            self.expression(result)
        if len(self._fixed) != 1:
            raise _Unfit
        return self._fixed.pop()

    def expression(self, result: SSAValue) -> int:
        """Return the expression of an element of the result."""
        return self._at(result, self._start)

    def _at(self, value: SSAValue, place: _Place) -> int:
        key = value, place
        if key not in self._known:
            self._known[key] = self._read(value, place)
        return self._known[key]

    def _read(self, value: SSAValue, place: _Place) -> int:
        make = self._expressions
        if value in self._sources:
            return self._element(self._sources.index(value), place)
        op = value.owner
        match op:
            case ConstantOp():
                return make.constant(op)
            case _ if (before := _before(value, place)) is not None:
                return self._at(*before) if isinstance(before[0].type, TensorType) else self._scalar(before[0])
            case _ if self._is_of_index(value) and (bits := _bits(value, place)) is not None:
                return self._number(bits, _scalar(value.type))
            case tt.ReduceOp():
                return self._reduced(op, place)
            case Operation() if is_elementwise(op):
                arguments = [
                    self._at(operand, place) if isinstance(operand.type, TensorType) else self._scalar(operand)
                    for operand in op.operands
                ]
                return make.operation(op, arguments)
        raise _Unfit

    def _is_of_index(self, value: SSAValue) -> bool:
        """Return whether a value depends on the index only, and is not computed from a source that does."""
        operands = value.owner.operands if isinstance(value.owner, Operation) else ()
        return self._is_leafless(value) and not any(_reshaped(operand) in self._sources for operand in operands)

    def _scalar(self, value: SSAValue) -> int:
        op = value.owner
        if isinstance(op, ConstantOp):
            return self._expressions.constant(op)
        return self._expressions.number(_Node(("value", value), value.type))

    def _element(self, slot: int, place: _Place) -> int:
        """Return an element of a source: the one whose bit is 0 or the one whose bit is 1."""
        side = 0
        for bit, wanted in zip(place, self._places, strict=True):
            if bit == wanted:
                continue
            if bit >= 0 or self._bit not in (-1, wanted):
                raise _Unfit
            self._fixed.add(wanted)
            side = int(bit == _ONE)
        source = self._sources[slot]
        return self._expressions.number(_Node(("argument", slot + side * len(self._sources)), _scalar(source.type)))

    def _number(self, bits: _Place, type: Attribute) -> int:
        """Return an integer of which some bits are bits of the index: all the same one."""
        make, open_bits = self._expressions, {bit for bit in bits if bit >= 0}
        low, high = (
            sum((bit in ones) << n for n, bit in enumerate(reversed(bits))) for ones in ((_ONE,), (_ONE, *open_bits))
        )
        if not open_bits:
            return make.integer(low, type)
        if self._bit != -1:
            if len(open_bits) > 1:
                raise _Unfit
            self.flips |= open_bits
        flip = make.number(_Node(("argument", 2 * len(self._sources)), i1))
        return make.number(_Node(SelectOp, type, (flip, make.integer(high, type), make.integer(low, type))))

    def _reduced(self, op: tt.ReduceOp, place: _Place) -> int:
        axis = op.axis.value.data
        (src,) = op.srcs
        shape = extents(src)
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


def _before(value: SSAValue, place: _Place) -> tuple[SSAValue, _Place] | None:
    """Return the tile that this one rearranges, and the source's index of this element; None if it rearranges none."""
    if (same := row_major_source(value)) is not None:
        return same, place
    of = index_mapping(value)
    if of is None or not of.keeps_all:
        return None
    parts = of.to_source(_parts(place, value), lambda index: ())
    return of.source, tuple(bit for part in parts for bit in part)


def _bits(value: SSAValue, place: _Place) -> _Place | None:
    """Return the bits of an integer that consists of bits of the index, from the highest; None if it is another one."""
    op, type = value.owner, _scalar(value.type)
    if not isinstance(type, IntegerType) or not isinstance(op, Operation):
        return None
    width = type.width.data
    if (before := _before(value, place)) is not None:
        return _bits(*before)
    if isinstance(op, ConstantOp):
        return None if op.splat is None else tuple(_ONE if op.splat >> n & 1 else _ZERO for n in reversed(range(width)))
    if (start := first_number(op)) is not None:
        if start & ((1 << len(place)) - 1):
            return None
        above = tuple(_ONE if start >> n & 1 else _ZERO for n in reversed(range(len(place), width)))
        return above + place
    if not isinstance(op, arith.AndIOp | arith.OrIOp | arith.AddiOp | arith.MuliOp | arith.ShRUIOp | arith.ShRSIOp):
        return None
    a, b = _bits(op.lhs, place), _bits(op.rhs, place)
    if a is None or b is None:
        return None
    match op:
        case arith.AndIOp():
            return _merged(a, b, _ONE, _ZERO)
        case arith.OrIOp():
            return _merged(a, b, _ZERO, _ONE)
        case arith.AddiOp():
            # Nothing is carried where one of two bits is 0.
            return _merged(a, b, _ZERO, _ONE) if all(_ZERO in pair for pair in zip(a, b, strict=True)) else None
    by = None if max(b) >= 0 else sum((bit == _ONE) << n for n, bit in enumerate(reversed(b)))
    if isinstance(op, arith.MuliOp):
        return None if by is None or b.count(_ONE) != 1 else a[by.bit_length() - 1 :] + (_ZERO,) * (by.bit_length() - 1)
    return None if by is None or by >= width or a[0] != _ZERO else (_ZERO,) * by + a[: width - by]


def _merged(a: _Place, b: _Place, kept: int, forced: int) -> _Place | None:
    """Return the bits of `a and b`, or of `a or b`: `kept` leaves the other bit, and `forced` is the result."""
    found = []
    for one, other in zip(a, b, strict=True):
        if forced in (one, other):
            found.append(forced)
        elif kept in (one, other) or one == other:
            found.append(other if one == kept else one)
        else:
            return None
    return tuple(found)


def _reshapes(value: SSAValue) -> Iterator[SSAValue]:
    """Yield a value and what it is a reshape of, without the last one."""
    while (before := row_major_source(value)) is not None:
        yield value
        value = before


def _scalar(type: Attribute) -> Attribute:
    return type.element_type if isinstance(type, TensorType) else type


def _size(value: SSAValue) -> int:
    return math.prod(extents(value))


def _parts(place: _Place, value: SSAValue) -> list[_Place]:
    """Split the bits of an index into those of each dimension."""
    parts, first = [], 0
    for extent in extents(value):
        bits = extent.bit_length() - 1
        parts.append(place[first : first + bits])
        first += bits
    return parts
