"""Says of integers which of a tile's neighbours are consecutive or equal, and what divides them: Triton's AxisInfo.

A domain of the interpreter. A run of neighbours along a dimension begins at a multiple of its length, which is a power
of two. Numbers wrap around: the rules hold modulo 2^bits, but where an operation sees more than the low bits (an
extension, a quotient, a remainder, an order), a run counts only as far as its first number is a multiple of its length,
so that no number of it carries. Quotients and remainders of signed numbers round towards zero: a run counts only if
no number of it is negative, which intervals tell.

What only a launch decides may be hoped for (Hope); the caller writes a check of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FixedBitwidthType, IntegerAttr, TensorType
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from ..ir import tile, tt
from ..ir.arith import CmpiOp, ConstantOp, ExtSIOp, ExtUIOp, SelectOp, TruncIOp
from ..ir.effects import reads, writes
from ..ir.elements import extents, index_mapping
from ..ir.facts import first_number
from ..ops.elementwise import is_elementwise
from ..ops.numeric import scalar_type
from .integers import INTEGERS, form, integer_bits
from .interpret import Interpreter, Part
from .interval import Interval, fit, full_interval, join

# See Hope: two of them and the index of a tile's element have a sum that does not wrap around.
LARGEST_NATURAL = (1 << 30) - (1 << 16)
# No number is known to be a multiple of more than this.
_MOST = 1 << 30
# The bits of a program's id, of which none is negative.
_ID = Interval(0.0, float((1 << 31) - 1))
_ANY = Interval(-float("inf"), float("inf"))


class Hope(NamedTuple):
    """What a launch, or a program of it, may turn out to be.

    Attributes:
        kind: "multiple": a number is one of `of`; "natural": it is between 0 and LARGEST_NATURAL.
        value: an argument, or a scalar that the kernel computes from arguments and the program's place in the grid.
    """

    kind: str
    value: SSAValue
    of: int = 1


class LaunchHope(NamedTuple):
    """A hope of an argument, by its number, for those who know a launch and not the kernel."""

    kind: str
    argument: int
    of: int = 1

    def holds(self, values: Sequence[Any]) -> bool:
        """Return whether a launch with these arguments is as hoped."""
        value = values[self.argument]
        return bool(value % self.of == 0 if self.kind == "multiple" else 0 <= value <= LARGEST_NATURAL)


class Fact(NamedTuple):
    """What is known of an integer, a pointer or a tile; a scalar has one dimension, of extent 1.

    A pointer is counted in elements, not in bytes.

    Attributes:
        consecutive: for each dimension, how many neighbours are each one more than the one before it.
        equal: for each dimension, how many neighbours are the same.
        divisor: for each dimension, a power of two that divides the first of each run of consecutive numbers.
        range: what all numbers are between.
    """

    consecutive: tuple[int, ...]
    equal: tuple[int, ...]
    divisor: tuple[int, ...]
    range: Interval

    def divisor_at(self, dimension: int, step: int) -> int:
        """Return what divides all numbers whose index in a dimension is a multiple of a step."""
        found = self.divisor[dimension]
        return found if step >= self.consecutive[dimension] else min(found, step)

    def common_divisor(self) -> int:
        """Return what divides all numbers."""
        return max(self.divisor_at(d, 1) for d in range(len(self.divisor)))

    def aligned(self, dimension: int) -> int:
        """Return how many neighbours are consecutive without a carry out of the bits in which they differ."""
        return min(self.consecutive[dimension], self.divisor[dimension])

    def number(self) -> int | None:
        """Return the number that all are, if it is known."""
        return int(self.range.low) if self.range.low == self.range.high else None


# Of one dimension: consecutive, equal, divisor.
_Run = tuple[int, int, int]


class Axes(Interpreter[Fact]):
    """What is known of the values of a kernel, in `values`.

    Args:
        hopes: what to take for granted.
    """

    def __init__(self, function: tt.FuncOp, hopes: Iterable[Hope] = ()) -> None:
        super().__init__()
        self._hopes = {(hope.kind, hope.value): hope.of for hope in hopes}
        body = function.body.block
        attributes = function.arg_attrs or [None] * len(body.args)
        arguments = []
        for argument, given in zip(body.args, attributes, strict=True):
            known = given.data.get("tt.divisibility") if given else None
            fact = self._argument(argument)
            divisor = _lowest(known.value.data) // _unit(argument.type) if isinstance(known, IntegerAttr) else 1
            arguments.append(fact._replace(divisor=(max(divisor, *fact.divisor),)))
        self.interpret(body, arguments)

    def _argument(self, argument: BlockArgument) -> Fact:
        found = _unknown(argument)
        multiple = self._hopes.get(("multiple", argument), 1)
        return found._replace(divisor=(multiple,), range=self._hoped(argument, found.range))

    def _hoped(self, value: SSAValue, range: Interval) -> Interval:
        if ("natural", value) not in self._hopes:
            return range
        return Interval(max(range.low, 0.0), min(range.high, float(LARGEST_NATURAL)))

    def operation(self, op: Operation) -> None:
        is_walked = isinstance(op, scf.ForOp | scf.IfOp | scf.WhileOp)
        if is_walked or not (op.regions or reads(op) or writes(op)):
            super().operation(op)
        else:
            self.bind(op.results, [_hinted(op, _unknown(result), result) for result in op.results])

    # Control flow.

    def access(self, op: tile.Access) -> list[Fact]:
        return list(map(_unknown, op.results))

    def map(self, op: tt.MapElementwiseOp, tiles: Sequence[Fact], function: Part[Fact]) -> list[Fact]:
        return list(map(_unknown, op.results))

    def branch(self, op: scf.IfOp, condition: Fact, ways: Sequence[Part[Fact]]) -> list[Fact]:
        found = [way(()) for way in ways]
        return [_joined(*pair) for pair in zip(*found, strict=True)] if len(found) > 1 else []

    def loop(self, op: scf.ForOp, bounds: Sequence[Fact], initial: Sequence[Fact], body: Part[Fact]) -> list[Fact]:
        low, high, step = bounds
        counter = op.body.block.args[0]
        found = _unknown(counter)._replace(divisor=(min(low.common_divisor(), step.common_divisor()),))
        # The counter passes its end once, and must not wrap around there.
        bits = integer_bits(counter.type) or 64
        if step.range.low > 0 and high.range.high + step.range.high <= full_interval(bits).high:
            found = found._replace(range=_proper(Interval(low.range.low, high.range.high - 1), counter.type))
        return _settled(op.body.block.args[1:], initial, lambda carried: body([found, *carried]))

    def repeat(self, op: scf.WhileOp, initial: Sequence[Fact], test: Part[Fact], body: Part[Fact]) -> list[Fact]:
        passed: list[Fact] = []

        def turn(carried: Sequence[Fact]) -> list[Fact]:
            passed[:] = test(carried)[1:]
            return body(passed)

        _settled(op.before_region.block.args, initial, turn)
        return passed

    # Operations.

    def compute(self, op: Operation, operands: Sequence[Fact]) -> list[Fact]:
        return [self._result(op, operands, result) for result in op.results]

    def _result(self, op: Operation, operands: Sequence[Fact], result: SSAValue) -> Fact:
        shape, bits = _shape(result.type), integer_bits(result.type)
        is_pointer = isinstance(scalar_type(result.type), tt.PointerType)
        if not isinstance(result.type, TensorType) and bits is None and not is_pointer:
            return _unknown(result)
        mapping = index_mapping(result)
        if mapping is not None:
            runs = [_moved(self.values[mapping.source], mapping.inner(d), n) for d, n in enumerate(shape)]
        elif isinstance(op, ConstantOp) and len(op.integers) == 1:
            runs = [(1, n, _lowest(op.integers[0])) for n in shape]
        elif (first := first_number(op)) is not None:
            runs = [(shape[0], 1, _lowest(first))]
        elif is_elementwise(op):
            is_tile = isinstance(result.type, TensorType)
            facts = [
                fact if isinstance(operand.type, TensorType) or not is_tile else _splat(fact, shape)
                for operand, fact in zip(op.operands, operands, strict=True)
            ]
            runs = [_run(op, facts, d) for d in range(len(shape))]
        else:
            runs = [(1, 1, 1) for _ in shape]
        if bits == 1 or (bits is None and not is_pointer):
            runs = [(1, equal, 1) for _, equal, _ in runs]
        consecutive, equal, divisor = zip(*runs, strict=True)
        return _hinted(op, Fact(consecutive, equal, divisor, self._range(op, operands)), result)

    def _range(self, op: Operation, operands: Sequence[Fact]) -> Interval:
        type = op.results[0].type
        found: Interval | None = None
        match op:
            case ConstantOp() if op.integers:
                found = Interval(float(min(op.integers)), float(max(op.integers)))
            case tt.GetProgramIdOp() | tt.GetNumProgramsOp():
                found = _ID
            case _ if (first := first_number(op)) is not None:
                found = Interval(float(first), float(first + extents(op.results[0])[0] - 1))
            case _ if (mapping := index_mapping(op.results[0])) is not None:
                found = self.values[mapping.source].range
            case _ if (meaning := INTEGERS.get(op.name)) is not None and (bits_of := form(op)) is not None:
                found = meaning.intervals(bits_of, [fact.range for fact in operands])
        return self._hoped(op.results[0], _proper(found, type))


def _shape(type: Attribute) -> tuple[int, ...]:
    return tuple(type.get_shape()) if isinstance(type, TensorType) and type.get_shape() else (1,)


def _unit(type: Attribute) -> int:
    """Return the bytes of what one is added for: of an element that is pointed to, or 1 for an integer."""
    pointer = scalar_type(type)
    if not isinstance(pointer, tt.PointerType) or not isinstance(pointer.pointee, FixedBitwidthType):
        return 1
    return max(1, pointer.pointee.bitwidth // 8)


def _lowest(number: int) -> int:
    return min(number & -number, _MOST) if number else _MOST


def _proper(found: Interval | None, type: Attribute) -> Interval:
    """Return an interval of plain numbers, of what is stored in a type."""
    bits = integer_bits(type)
    if bits is None:
        return _ANY
    if found is not None:
        found = fit(found, bits)
        low, high = float(found.low), float(found.high)
        if low <= high:
            return Interval(low, high)
    return full_interval(bits)


def _unknown(value: SSAValue) -> Fact:
    ones = (1,) * len(_shape(value.type))
    return Fact(ones, ones, ones, _proper(None, value.type))


def _splat(fact: Fact, shape: tuple[int, ...]) -> Fact:
    """Return what is known of a scalar that an operation takes beside tiles, as of a tile."""
    return Fact((1,) * len(shape), shape, (fact.common_divisor(),) * len(shape), fact.range)


def _joined(x: Fact, y: Fact) -> Fact:
    """Return what is known of a value that is one of two."""
    consecutive = tuple(map(min, x.consecutive, y.consecutive))
    divisor = tuple(min(x.divisor_at(d, n), y.divisor_at(d, n)) for d, n in enumerate(consecutive))
    both = join(x.range, y.range)
    return Fact(consecutive, tuple(map(min, x.equal, y.equal)), divisor, Interval(float(both.low), float(both.high)))


def _settled(
    arguments: Iterable[SSAValue], initial: Sequence[Fact], turn: Callable[[Sequence[Fact]], Sequence[Fact]]
) -> list[Fact]:
    """Return what is known of what a loop carries, in every iteration. The last walk of the body was with that."""
    carried, types = list(initial), [argument.type for argument in arguments]
    while True:
        after = [_joined(*pair) for pair in zip(carried, turn(carried), strict=True)]
        if after == carried:
            return carried
        carried = [
            new if new.range == old.range else new._replace(range=_proper(None, type))
            for new, old, type in zip(after, carried, types, strict=True)
        ]


def _moved(fact: Fact, dimension: int | None, extent: int) -> _Run:
    """Return the run along a dimension of a tile that moves elements; None for one along which they are repeated."""
    if dimension is None or extent == 1:
        return 1, extent, fact.common_divisor()
    return fact.consecutive[dimension], fact.equal[dimension], fact.divisor[dimension]


def _hinted(op: Operation, fact: Fact, result: SSAValue) -> Fact:
    """Add what the author promised: tl.max_contiguous, tl.max_constancy and tl.multiple_of."""

    def more(name: str, known: tuple[int, ...], limits: Iterable[int]) -> tuple[int, ...]:
        given = op.attributes.get(name)
        if isinstance(given, IntegerAttr):
            promised = [int(given.value.data)]
        elif isinstance(given, DenseIntOrFPElementsAttr):
            promised = [int(number) for number in given.get_values()]
        else:
            return known
        if len(promised) != len(known):
            return known
        return tuple(max(old, min(_lowest(new), n)) for old, new, n in zip(known, promised, limits, strict=True))

    if not op.attributes or integer_bits(result.type) in (None, 1):
        return fact
    shape = _shape(result.type)
    return fact._replace(
        consecutive=more("tt.contiguity", fact.consecutive, shape),
        equal=more("tt.constancy", fact.equal, shape),
        divisor=more("tt.divisibility", fact.divisor, (_MOST for _ in shape)),
    )


def _run(op: Operation, facts: Sequence[Fact], d: int) -> _Run:
    """Return the run along a dimension of the result of an elementwise operation."""
    equal = min(fact.equal[d] for fact in facts)
    if len(facts) == 1:
        x, run = facts[0], 1
        match op:
            case ExtSIOp() | ExtUIOp() | arith.IndexCastOp():
                run = x.aligned(d)
            case TruncIOp():
                run = x.consecutive[d]
            case _:
                return 1, equal, 1
        return run, equal, x.divisor_at(d, run)
    if isinstance(op, SelectOp):
        condition, *facts = facts
    if len(facts) != 2 or integer_bits(op.operands[-1].type) is None:
        return 1, equal, 1
    x, y = facts
    if isinstance(op, arith.MuliOp | arith.AndIOp) and x.number() is not None:
        x, y = y, x
    n = y.number()
    # How many neighbours of x differ only in bits that are zero in y, which is the same for all of them.
    block = min(x.aligned(d), y.divisor_at(d, 1), y.equal[d])
    match op:
        case arith.AddiOp() | tt.AddPtrOp():
            run = max(min(x.consecutive[d], y.equal[d]), min(x.equal[d], y.consecutive[d]))
        case arith.SubiOp():
            run = min(x.consecutive[d], y.equal[d])
        case arith.MuliOp() | arith.DivSIOp() | arith.DivUIOp() if n == 1:
            return x.consecutive[d], x.equal[d], x.divisor[d]
        case arith.MuliOp():
            return 1, equal, min(x.divisor_at(d, 1) * y.divisor_at(d, 1), _MOST)
        case arith.RemSIOp() | arith.RemUIOp():
            run = block if isinstance(op, arith.RemUIOp) or x.range.low >= 0 else 1
        case arith.DivSIOp() | arith.DivUIOp():
            run = block if isinstance(op, arith.DivUIOp) or x.range.low >= 0 else 1
            exact = x.divisor_at(d, 1) // n if n is not None and n > 0 and n & n - 1 == 0 else 1
            return 1, max(equal, run), max(1, exact)
        case arith.AndIOp() if n is not None and n >= 0 and n & n + 1 == 0:
            run = min(x.aligned(d), n + 1)
            return run, equal, x.divisor_at(d, run)
        case arith.AndIOp() if n is not None and n < 0 and -n & -n - 1 == 0:
            return 1, max(equal, min(x.aligned(d), -n)), max(x.divisor_at(d, 1), -n)
        case arith.AndIOp():
            return 1, equal, max(x.divisor_at(d, 1), y.divisor_at(d, 1))
        case arith.OrIOp() | arith.XOrIOp():
            return 1, equal, min(x.divisor_at(d, 1), y.divisor_at(d, 1))
        case arith.ShLIOp():
            return 1, equal, min(x.divisor_at(d, 1) << (n if n is not None and 0 <= n < 31 else 0), _MOST)
        case arith.ShRSIOp() | arith.ShRUIOp() if n is not None and 0 <= n < 31:
            run = min(x.aligned(d), 1 << n)
            return (1, max(equal, run), max(1, x.divisor_at(d, 1) >> n)) if n else (run, equal, 1)
        case CmpiOp() if op.predicate_name in ("slt", "sge", "ult", "uge"):
            return 1, max(equal, block), 1
        case CmpiOp() if op.predicate_name in ("sgt", "sle", "ugt", "ule"):
            return 1, max(equal, min(y.aligned(d), x.divisor_at(d, 1), x.equal[d])), 1
        case SelectOp():
            run = min(x.consecutive[d], y.consecutive[d], condition.equal[d])
        case arith.MinSIOp() | arith.MaxSIOp() | arith.MinUIOp() | arith.MaxUIOp():
            run = min(x.aligned(d), y.aligned(d))
        case _:
            return 1, equal, 1
    return run, equal, min(x.divisor_at(d, run), y.divisor_at(d, run))
