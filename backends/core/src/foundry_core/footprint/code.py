"""Write C code that computes what each program of a kernel reaches in memory, without the program's data.

A host that has no Python runs the C code for each program of a grid, and learns which elements the program's loads and
stores reach: to shard arrays, or to check how large they are. Scalars, loops and branches are computed as in the
kernel, if they depend only on its arguments and program ids. An access whose address or condition depends on data may
reach everything.

The C code is the body of a function, in C and C++. spans.h has `struct span` and the functions that it calls, except

    int64_t argument[], program[3], grid[3]   the integer arguments by parameter index; the current program and grid
    reads, writes(INDEX, span, exact)         called for each access, with the parameter's index; `exact` is not 0 if
                                              the program accesses the first and the last element for certain
    reads_any, writes_any(INDEX)              called for an access that may be anywhere
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerType, TensorType
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from ..analysis.integers import INTEGERS, form
from ..analysis.interpret import Interpreter, Part
from ..errors import unsupported
from ..front.masks import sufficient
from ..front.scalars import constant_value
from ..front.structured import kernel
from ..ir import tile, tt
from ..ir.arith import ConstantOp, ExtSIOp
from ..ir.effects import reads, writes
from ..ir.facts import pointer_sum
from ..ir.parse import read_structured

_WIDTHS = (1, 8, 16, 32, 64)


@dataclass(frozen=True)
class ReachCode:
    """What the programs of a kernel reach.

    Attributes:
        code: the C code.
        block: how many elements apart the stores of neighbouring programs are, if programs differ along x only and that
            is one constant for all stores. Such a kernel needs ceil(n / block) programs. Else None.
    """

    code: str
    block: int | None


def reach_code(structured: str) -> ReachCode:
    """Read a kernel in structured form (the stage `tile`)."""
    body = kernel(read_structured(structured)).body.block
    return ReachCode("\n".join(_Writer(body).lines), _block(body))


@dataclass(frozen=True)
class _Pointer:
    """A pointer at an offset (C code, in elements) from a parameter."""

    parameter: int
    offset: str


# A known value is C code (a name or a number) or a pointer; None is data, which is not known.
_Value: TypeAlias = "str | _Pointer | None"


class _Writer(Interpreter[_Value]):
    """Writes the C code of a kernel."""

    def __init__(self, body: Block) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._indent = 0
        self._count = 0
        self._body = body
        self.interpret(body, map(self._parameter, body.args))

    @staticmethod
    def _parameter(argument: BlockArgument) -> _Value:
        if isinstance(argument.type, tt.PointerType):
            return _Pointer(argument.index, "0")
        return f"argument[{argument.index}]" if _bits(argument.type) is not None else None

    def _write(self, line: str) -> None:
        self.lines.append("    " * self._indent + line)

    @contextmanager
    def _nested(self, opening: str) -> Iterator[None]:
        self._write(opening)
        self._indent += 1
        yield
        self._indent -= 1
        self._write("}")

    def _name(self) -> str:
        self._count += 1
        return f"v{self._count}"

    def _number(self, value: SSAValue) -> str | None:
        return _code(self.values[value])

    def _numbers(self, values: Sequence[SSAValue]) -> list[str] | None:
        """Return the C code of each value; None if one of them is not known."""
        return _all_known(self.lookup(values))

    def compute(self, op: Operation, operands: Sequence[_Value]) -> Sequence[_Value]:
        match op:
            case _ if pointer_sum(op):
                pointer, offset = operands
                if isinstance(pointer, _Pointer) and isinstance(offset, str):
                    return [_Pointer(pointer.parameter, f"({pointer.offset} + {offset})")]
            case ConstantOp() if (number := constant_value(op.result)) is not None:
                return [_literal(number, _bits(op.result.type))]
            case tt.GetProgramIdOp():
                return [f"program[{op.axis.value.data}]"]
            case tt.GetNumProgramsOp():
                return [f"grid[{op.axis.value.data}]"]
        return [self._named(op, operands, result) for result in op.results]

    def _named(self, op: Operation, operands: Sequence[_Value], result: SSAValue) -> str | None:
        """Write the C code of an integer, and return its name."""
        numbers, meaning, bits = _all_known(operands), INTEGERS.get(op.name), form(op)
        if not numbers or meaning is None or bits is None or _bits(result.type) is None:
            return None
        code = meaning.c(bits, numbers)
        if code is None or code in numbers:
            return code
        name = self._name()
        self._write(f"const int64_t {name} = {code};")
        return name

    # Control flow. A result of a branch or loop is a variable, if it is known in each branch and after each iteration.

    def branch(self, op: scf.IfOp, condition: _Value, ways: Sequence[Part[_Value]]) -> Sequence[_Value]:
        if condition is None:
            return self._anywhere(op)

        def write(names: Sequence[str | None]) -> list[int]:
            lost: list[int] = []
            self._declare(names, ["0"] * len(names))
            for opening, way in zip((f"if ({condition}) {{", "else {"), ways, strict=False):
                with self._nested(opening):
                    lost += self._assign(names, way(()))
            return lost

        return self._settled(op.results, write)

    def loop(
        self, op: scf.ForOp, bounds: Sequence[_Value], initial: Sequence[_Value], body: Part[_Value]
    ) -> Sequence[_Value]:
        known = _all_known(bounds)
        if known is None:
            return self._anywhere(op)
        low, high, step = known

        def write(names: Sequence[str | None]) -> list[int]:
            starts = [_code(start) for start in initial]
            if lost := [i for i, start in enumerate(starts) if start is None and names[i] is not None]:
                return lost
            self._declare(names, starts)
            index = self._name()
            with self._nested(f"for (int64_t {index} = {low}; {index} < {high}; {index} += {step}) {{"):
                return self._assign(names, body([index, *names]))

        return self._settled(op.results, write)

    def repeat(
        self, op: scf.WhileOp, initial: Sequence[_Value], test: Part[_Value], body: Part[_Value]
    ) -> Sequence[_Value]:
        return self._anywhere(op)

    def map(self, op: tt.MapElementwiseOp, tiles: Sequence[_Value], function: Part[_Value]) -> Sequence[_Value]:
        return [None] * len(op.results)

    def _settled(
        self, results: Sequence[SSAValue], write: Callable[[Sequence[str | None]], list[int]]
    ) -> Sequence[str | None]:
        """Run `write` with a variable for each result, and again without those that turn out to be unknown."""
        names = [self._name() if _bits(result.type) is not None else None for result in results]
        while True:
            before = len(self.lines), dict(self.values)
            lost = write(names)
            if not lost:
                return names
            del self.lines[before[0] :]
            self.values = before[1]
            for index in lost:
                names[index] = None

    def _declare(self, names: Sequence[str | None], values: Sequence[str | None]) -> None:
        for name, value in zip(names, values, strict=True):
            if name is not None:
                self._write(f"int64_t {name} = {value};")

    def _assign(self, names: Sequence[str | None], yielded: Sequence[_Value]) -> list[int]:
        """Assign what a block yields, all at once: a new value may be the old value of another variable.

        Returns:
            Which variables cannot be assigned to, because data decides their value.
        """
        values = [_code(value) for value in yielded]
        wanted = [i for i, name in enumerate(names) if name is not None]
        for i in wanted:
            self._write(f"const int64_t {names[i]}_next = {values[i]};")
        for i in wanted:
            self._write(f"{names[i]} = {names[i]}_next;")
        return [i for i in wanted if values[i] is None]

    # Accesses.

    def _anywhere(self, op: Operation) -> Sequence[_Value]:
        """Handle control flow that depends on data: an access inside may reach anything. Return the results."""
        for inner in op.walk():
            if isinstance(inner, tile.Access):
                self._any(inner)
            elif not inner.regions and (reads(inner) or writes(inner)):
                raise unsupported(inner, "what it reaches in memory is not known")
        return [None] * len(op.results)

    def _any(self, op: tile.Access) -> None:
        for parameter in self._parameters(op.base):
            for verb in _verbs(op):
                self._write(f"{verb}_any({parameter});")

    def _parameters(self, pointer: SSAValue) -> list[int]:
        """Return the parameters whose memory a pointer may point into."""
        pointer = tt.pointer_root(pointer)
        if isinstance(pointer, BlockArgument) and pointer.block is self._body:
            return [pointer.index]
        return [argument.index for argument in self._body.args if isinstance(argument.type, tt.PointerType)]

    def access(self, op: tile.Access) -> Sequence[_Value]:
        type = op.elements.type
        pointer = self.values[op.base]
        span = self._span(op, type.get_shape() if isinstance(type, TensorType) else ())
        if span is None or not isinstance(pointer, _Pointer):
            self._any(op)
            return [None] * len(op.results)
        # The mask of a single element is a number. Any other mask leaves out elements that are not known here.
        condition = self._number(op.mask) if op.mask is not None else None
        exact = "1"
        if op.mask is not None and condition is None:
            unmasked = sufficient(op.mask)
            exact = " && ".join((self._numbers(unmasked) if unmasked else None) or ["0"])
        with self._nested("{" if condition is None else f"if ({condition}) {{"):
            self._write(f"struct span span = span_at({pointer.offset} + {span[0]});")
            for line in span[1:]:
                self._write(line)
            for verb in _verbs(op):
                self._write(f"{verb}({pointer.parameter}, span, {exact});")
        return [None] * len(op.results)

    def _span(self, op: tile.Access, shape: Sequence[int]) -> list[str] | None:
        """Return the start of an access, and a line for each of its axes; None if they depend on data."""
        start = self._number(op.start)
        if start is None or op.gather is not None:
            return None
        lines = [start]
        for d, (axis, extent) in enumerate(zip(op.axes, shape, strict=True)):
            limits: list[str] | None = ["INT64_C(0)", f"INT64_C({extent})"]
            if op.ranges:
                range = op.ranges[d].owner
                assert isinstance(range, tile.RangeOp)
                limits = self._numbers([range.low, range.high])
            way = axis.owner
            moved = self._numbers(way.operands) if isinstance(way, tile.AffineOp | tile.WrappedOp) else None
            if limits is None or moved is None:
                return None
            function = "span_along"
            if isinstance(way, tile.WrappedOp):
                function = "span_around"
                moved.append(f"INT{way.element.width.data}_MAX")
            lines.append(f"{function}(&span, {', '.join(limits + moved)});")
        return lines


def _verbs(op: tile.Access) -> list[str]:
    return [verb for verb, is_made in (("reads", reads(op)), ("writes", writes(op))) if is_made]


def _bits(type: Attribute) -> int | None:
    """Return the width of a scalar integer that fits in an int64_t; None for every other type."""
    match type:
        case IntegerType() if type.width.data in _WIDTHS:
            return int(type.width.data)
        case IndexType():
            return 64
        case _:
            return None


def _literal(number: int, bits: int | None) -> str:
    """Return C code for a constant. A set i1 may be written as -1; C has no literal for the least int64_t."""
    if bits == 1:
        return str(number & 1)
    return "INT64_MIN" if number == -(2**63) else f"INT64_C({number})"


def _code(value: _Value) -> str | None:
    return value if isinstance(value, str) else None


def _all_known(values: Sequence[_Value]) -> list[str] | None:
    """Return the C code of each value; None if one of them is not a known number."""
    found = [value for value in values if isinstance(value, str)]
    return found if len(found) == len(values) else None


def _block(body: Block) -> int | None:
    """Return the value of ReachCode.block."""
    distances = set()
    for op in body.walk():
        match op:
            case tt.GetNumProgramsOp():
                return None
            case tt.GetProgramIdOp() if op.axis.value.data != 0:
                return None
            case tile.Access() if writes(op):
                line = len(op.axes) == 1 and isinstance(op.axes[0].owner, tile.AffineOp) and op.gather is None
                places = [_per_program(op.base), _per_program(op.start)]
                known = line and None not in places and op.parent_block() is body
                distances.add(sum(place for place in places if place is not None) if known else None)
    found = distances.pop() if len(distances) == 1 else None
    return abs(found) if found else None


def _per_program(value: SSAValue) -> int | None:
    """Return how much a number, or a pointer in elements, grows per program; None if that is not one constant."""
    if isinstance(value, BlockArgument):
        return 0 if isinstance(value.block.parent_op(), tt.FuncOp) else None
    match value.owner:
        case ConstantOp():
            return 0
        case tt.GetProgramIdOp():
            return 1
        case ExtSIOp() as extended:
            return _per_program(extended.input)
        case Operation() as total if isinstance(total, arith.AddiOp | arith.SubiOp) or pointer_sum(total):
            left, right = (_per_program(operand) for operand in total.operands)
            if left is None or right is None:
                return None
            return left - right if isinstance(total, arith.SubiOp) else left + right
        case arith.MuliOp() as product:
            for one, other in ((product.lhs, product.rhs), (product.rhs, product.lhs)):
                if (factor := constant_value(other)) is not None:
                    grown = _per_program(one)
                    return None if grown is None else grown * factor
    return None
