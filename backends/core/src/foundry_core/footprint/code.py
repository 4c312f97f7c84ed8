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

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerType, TensorType
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from ..dialects import tile, tt
from ..dialects.arith import CmpiOp, ConstantOp, ExtSIOp, ExtUIOp, SelectOp, TruncIOp
from ..effects import reads, writes
from ..errors import unsupported
from ..front.masks import sufficient
from ..front.scalars import constant
from ..front.structured import kernel
from ..parse import read_structured
from .integers import INTEGERS

_SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_WIDTHS = (1, 8, 16, 32, 64)


@dataclass(frozen=True)
class Reach:
    """What the programs of a kernel reach.

    Attributes:
        code: the C code.
        block: how many elements apart the stores of neighbouring programs are, if programs differ along x only and that
            is one constant for all stores. Such a kernel needs ceil(n / block) programs. Else None.
    """

    code: str
    block: int | None


def reach(structured: str) -> Reach:
    """Read a kernel in structured form (the stage `tile`)."""
    body = kernel(read_structured(structured)).body.block
    return Reach("\n".join(_Writer(body).lines), _block(body))


@dataclass(frozen=True)
class _Pointer:
    """A pointer at an offset (C code, in elements) from a parameter."""

    parameter: int
    offset: str


class _Writer:
    """Writes the C code of a kernel. A known value is C code (a name or a number) or a pointer; data is not known."""

    def __init__(self, body: Block) -> None:
        self.lines: list[str] = []
        self._indent = 0
        self._count = 0
        self._values: dict[SSAValue, str | _Pointer] = {}
        self._body = body
        for index, argument in enumerate(body.args):
            if isinstance(argument.type, tt.PointerType):
                self._values[argument] = _Pointer(index, "0")
            elif _bits(argument.type) is not None:
                self._values[argument] = f"argument[{index}]"
        self._block(body)

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
        found = self._values.get(value)
        return found if isinstance(found, str) else None

    def _numbers(self, values: Sequence[SSAValue]) -> list[str] | None:
        """Return the C code of each value; None if one of them is not known."""
        found = [number for value in values if (number := self._number(value)) is not None]
        return found if len(found) == len(values) else None

    def _block(self, block: Block) -> None:
        for op in block.ops:
            self._operation(op)

    def _operation(self, op: Operation) -> None:
        match op:
            case tile.Access():
                self._access(op)
            case scf.ForOp():
                self._for(op)
            case scf.IfOp():
                self._if(op)
            case scf.WhileOp():
                self._anywhere(op)
            case tt.AddPtrOp():
                pointer, offset = self._values.get(op.ptr), self._number(op.offset)
                if isinstance(pointer, _Pointer) and offset is not None:
                    self._values[op.result] = _Pointer(pointer.parameter, f"({pointer.offset} + {offset})")
            case ConstantOp() if (number := constant(op.result)) is not None:
                self._values[op.result] = _literal(number, _bits(op.result.type))
            case tt.GetProgramIdOp():
                self._values[op.result] = f"program[{op.axis.value.data}]"
            case tt.GetNumProgramsOp():
                self._values[op.result] = f"grid[{op.axis.value.data}]"
            case _:
                _refuse_memory(op)
                self._compute(op)

    def _compute(self, op: Operation) -> None:
        numbers = self._numbers(op.operands)
        if not numbers or len(op.results) != 1:
            return
        code = _expression(op, numbers)
        if code in numbers:
            self._values[op.results[0]] = code
        elif code is not None:
            name = self._name()
            self._write(f"const int64_t {name} = {code};")
            self._values[op.results[0]] = name

    # Control flow. A result of a branch or loop is a variable, if it is known in each branch and after each iteration.

    def _if(self, op: scf.IfOp) -> None:
        condition = self._number(op.cond)
        if condition is None:
            self._anywhere(op)
            return

        def write(names: Sequence[str | None]) -> list[int]:
            lost: list[int] = []
            self._declare(names, ["0"] * len(names))
            branches = [op.true_region.block, *([op.false_region.block] if op.false_region.blocks else [])]
            for opening, block in zip((f"if ({condition}) {{", "else {"), branches, strict=False):
                with self._nested(opening):
                    self._block(block)
                    lost += self._assign(names, block)
            return lost

        self._results(op.results, self._settled(op.results, write))

    def _for(self, op: scf.ForOp) -> None:
        bounds = self._numbers([op.lb, op.ub, op.step])
        if bounds is None:
            self._anywhere(op)
            return
        low, high, step = bounds
        body = op.body.block

        def write(names: Sequence[str | None]) -> list[int]:
            starts = [self._number(start) for start in op.iter_args]
            if lost := [i for i, start in enumerate(starts) if start is None and names[i] is not None]:
                return lost
            self._declare(names, starts)
            self._results(body.args[1:], names)
            index = self._name()
            self._values[body.args[0]] = index
            with self._nested(f"for (int64_t {index} = {low}; {index} < {high}; {index} += {step}) {{"):
                self._block(body)
                return self._assign(names, body)

        self._results(op.results, self._settled(op.results, write))

    def _settled(
        self, results: Sequence[SSAValue], write: Callable[[Sequence[str | None]], list[int]]
    ) -> Sequence[str | None]:
        """Run `write` with a variable for each result, and again without those that turn out to be unknown."""
        names = [self._name() if _bits(result.type) is not None else None for result in results]
        while True:
            before = len(self.lines), dict(self._values)
            lost = write(names)
            if not lost:
                return names
            del self.lines[before[0] :]
            self._values = before[1]
            for index in lost:
                names[index] = None

    def _declare(self, names: Sequence[str | None], values: Sequence[str | None]) -> None:
        for name, value in zip(names, values, strict=True):
            if name is not None:
                self._write(f"int64_t {name} = {value};")

    def _assign(self, names: Sequence[str | None], block: Block) -> list[int]:
        """Assign the values that a block yields, all at once: a new value may be the old value of another variable.

        Returns:
            Which variables cannot be assigned to, because data decides their value.
        """
        last = block.last_op
        assert last is not None
        values = [self._number(value) for value in last.operands]
        wanted = [i for i, name in enumerate(names) if name is not None]
        for i in wanted:
            self._write(f"const int64_t {names[i]}_next = {values[i]};")
        for i in wanted:
            self._write(f"{names[i]} = {names[i]}_next;")
        return [i for i in wanted if values[i] is None]

    def _results(self, results: Sequence[SSAValue], names: Sequence[str | None]) -> None:
        self._values |= {result: name for result, name in zip(results, names, strict=True) if name is not None}

    # Accesses.

    def _anywhere(self, op: Operation) -> None:
        """Handle control flow that depends on data: an access inside may reach anything."""
        for inner in op.walk():
            if isinstance(inner, tile.Access):
                self._any(inner)
            else:
                _refuse_memory(inner)

    def _any(self, op: tile.Access) -> None:
        for parameter in self._parameters(op.base):
            for verb in _verbs(op):
                self._write(f"{verb}_any({parameter});")

    def _parameters(self, pointer: SSAValue) -> list[int]:
        """Return the parameters whose memory a pointer may point into."""
        while isinstance(pointer.owner, tt.AddPtrOp | tt.BitcastOp):
            pointer = pointer.owner.operands[0]
        if isinstance(pointer, BlockArgument) and pointer.block is self._body:
            return [pointer.index]
        return [argument.index for argument in self._body.args if isinstance(argument.type, tt.PointerType)]

    def _access(self, op: tile.Access) -> None:
        type = op.elements.type
        pointer = self._values.get(op.base)
        span = self._span(op, type.get_shape() if isinstance(type, TensorType) else ())
        if span is None or not isinstance(pointer, _Pointer):
            self._any(op)
            return
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


def _refuse_memory(op: Operation) -> None:
    """Refuse an operation that reaches memory and is not a tile.Access. Its regions are checked separately."""
    if not op.regions and (reads(op) or writes(op)):
        raise unsupported(op, "what it reaches in memory is not known")


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


def _signed(code: str, bits: int) -> str:
    """Return C code that wraps a number to a signed one of this many bits."""
    match bits:
        case 1:
            return f"({code} & 1)"
        case 64:
            return code
        case _:
            return f"(int{bits}_t){code}"


def _unsigned(number: str, bits: int) -> str:
    """Return C code that reads a signed number of this many bits as an unsigned one."""
    return f"(uint{max(bits, 8)}_t){number}"


def _expression(op: Operation, numbers: Sequence[str]) -> str | None:
    """Return C code for an operation on numbers; None if there is none."""
    bits, source = _bits(op.results[0].type), _bits(op.operands[0].type)
    if bits is None or source is None:
        return None
    match op:
        case CmpiOp():
            order = op.predicate_name
            sides = [_unsigned(number, source) for number in numbers] if order.startswith("u") else numbers
            return f"({sides[0]} {_SIGNS[order[-2:]]} {sides[1]})"
        case SelectOp():
            return f"({numbers[0]} ? {numbers[1]} : {numbers[2]})"
        case ExtSIOp():
            # A set i1 is 1 here. Its sign extension has all bits set.
            return f"-{numbers[0]}" if source == 1 else numbers[0]
        case ExtUIOp():
            return f"(int64_t){_unsigned(numbers[0], source)}"
        case TruncIOp() | arith.IndexCastOp():
            return _signed(numbers[0], bits)
    meaning = INTEGERS.get(op.name)
    if meaning is None:
        return None
    sides = [_unsigned(number, source) for number in numbers] if meaning.is_unsigned else numbers
    return _signed(meaning.c.format(*sides), bits)


def _block(body: Block) -> int | None:
    """Return the value of Reach.block."""
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
        case arith.AddiOp() | arith.SubiOp() | tt.AddPtrOp() as total:
            left, right = (_per_program(operand) for operand in total.operands)
            if left is None or right is None:
                return None
            return left - right if isinstance(total, arith.SubiOp) else left + right
        case arith.MuliOp() as product:
            for one, other in ((product.lhs, product.rhs), (product.rhs, product.lhs)):
                if (factor := constant(other)) is not None:
                    grown = _per_program(one)
                    return None if grown is None else grown * factor
    return None
