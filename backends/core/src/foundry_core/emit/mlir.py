"""Writes MLIR as text: registers, constants, nested blocks. mlir-opt, which reads the text, checks it.

We write text and build no IR in memory: mlir-opt is a separate process, a kernel has some thousand operations, and
building and printing an object for each costs ten times as much as writing its line.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from xdsl.dialects.builtin import FileLineColLoc

from ..scalars import PASSED
from ..strings import llvm_string

# A pointer to global memory; the first line of the module defines its address space.
GLOBAL = "!global"
PRIVATE = "!llvm.ptr"
# A pointer to memory that the work-items of a work-group share.
LOCAL = "!llvm.ptr<3>"
WIDTHS = {row.mlir: row.bits for row in PASSED.values()}
# Prefix of a function that the device's LLVM must treat as an LLVM intrinsic. llc would turn the intrinsic itself into
# an OpenCL instruction, so codegen/tools.py replaces this prefix by "llvm." in the binary after llc. Both have the same
# length.
LLVM_INTRINSIC = "xlvm."


class Reg(NamedTuple):
    """One SSA value of the text: a scalar of type `elem`, or a vector of `lanes` of them.

    It is a tuple, because a kernel has thousands, which are keys of tables.
    """

    name: str
    elem: str
    lanes: int = 1

    @property
    def type(self) -> str:
        return self.elem if self.lanes == 1 else f"vector<{self.lanes}x{self.elem}>"

    @property
    def is_float(self) -> bool:
        return self.elem in ("f32", "f64")


def vector_type(elem: str, lanes: int) -> str:
    return elem if lanes == 1 else f"vector<{lanes}x{elem}>"


@dataclass(frozen=True)
class Conventions:
    """The code conventions of a kind of device.

    Attributes:
        index: the integer type of indices, offsets and loop counters.
        global_space: the address space of kernel arguments and everything they point to.
        call: the calling convention of functions; empty for C's.
        kernel: the calling convention of kernels; empty for C's.
        attributes: the attributes of the kernel.
        private_alignment: the alignment of arrays in private memory, in bytes.
        split_addresses: write an address's constant part separately, for a compiler that cannot find it in a sum.
    """

    index: str = "i64"
    global_space: int = 1
    call: str = "spir_funccc "
    kernel: str = "spir_kernelcc "
    attributes: str = "reqd_work_group_size = array<i32: 1, 1, 1>"
    split_addresses: bool = False
    private_alignment: int = 64


# Comparisons of booleans as logic operations; the number says which operand (0 or 1) is inverted. LLVM 22 would write
# them as comparisons of numbers. SPIR-V has none for booleans, and PoCL computes different results. As a signed i1,
# true is -1.
ORDERS_OF_BOOLEANS = {
    "ult": ("arith.andi", 0),
    "ule": ("arith.ori", 0),
    "ugt": ("arith.andi", 1),
    "uge": ("arith.ori", 1),
    "slt": ("arith.andi", 1),
    "sle": ("arith.ori", 1),
    "sgt": ("arith.andi", 0),
    "sge": ("arith.ori", 0),
}


class Text:
    """A function body that grows line by line.

    Attributes:
        private_bytes: bytes allocated in private memory so far.
        local_bytes: bytes allocated so far in the memory that a work-group shares.
    """

    def __init__(self, conventions: Conventions = Conventions()) -> None:
        self._conventions = conventions
        self.index = conventions.index
        self.split_addresses = conventions.split_addresses
        self._lines: list[str] = []
        # Where each line comes from, as a suffix of it; and the suffix of a place.
        self._suffixes: list[str] = []
        self._suffix = ""
        self._places: dict[tuple[str, int, int], str] = {}
        self._depth = 2
        self._count = 0
        self._constants: dict[tuple[str, str], str] = {}
        self._allocas: list[str] = []
        self.private_bytes = 0
        self.local_bytes = 0
        self._declarations: dict[str, str] = {}

    def fresh(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def line(self, text: str) -> None:
        self._lines.append("  " * self._depth + text)
        self._suffixes.append(self._suffix)

    @contextmanager
    def location(self, place: FileLineColLoc | None) -> Iterator[None]:
        """Say where in the kernel's source the lines written inside the `with` come from; None: where those before."""
        before = self._suffix
        if place is not None:
            key = place.filename.data, place.line.data, place.column.data
            self._suffix = f" loc({self._places.setdefault(key, f'#at{len(self._places)}')})"
        yield
        self._suffix = before

    # Operations.

    def op(self, text: str, elem: str, lanes: int = 1) -> Reg:
        """Append `%new = text`; the result is a register of the given type."""
        name = self.fresh()
        self.line(f"{name} = {text}")
        return Reg(name, elem, lanes)

    def unary(self, name: str, x: Reg) -> Reg:
        return self.op(f"{name} {x.name} : {x.type}", x.elem, x.lanes)

    def binary(self, name: str, x: Reg, y: Reg) -> Reg:
        return self.op(f"{name} {x.name}, {y.name} : {x.type}", x.elem, x.lanes)

    def cast(self, name: str, x: Reg, elem: str) -> Reg:
        if elem == x.elem:
            return x
        return self.op(f"{name} {x.name} : {x.type} to {vector_type(elem, x.lanes)}", elem, x.lanes)

    def compare(self, predicate: str, x: Reg, y: Reg) -> Reg:
        if x.elem == "i1" and predicate in ORDERS_OF_BOOLEANS:
            name, first = ORDERS_OF_BOOLEANS[predicate]
            true = self.integer(1, "i1", x.lanes)
            x, y = (self.binary("arith.xori", each, true) if at == first else each for at, each in enumerate((x, y)))
            return self.binary(name, x, y)
        name = "arith.cmpf" if x.is_float else "arith.cmpi"
        return self.op(f"{name} {predicate}, {x.name}, {y.name} : {x.type}", "i1", x.lanes)

    def select(self, condition: Reg, x: Reg, y: Reg) -> Reg:
        kind = f"{condition.type}, {x.type}" if condition.lanes > 1 else x.type
        return self.op(f"arith.select {condition.name}, {x.name}, {y.name} : {kind}", x.elem, x.lanes)

    def leading_zeros(self, x: Reg) -> Reg:
        return self.op(
            f'"llvm.intr.ctlz"({x.name}) <{{is_zero_poison = false}}> : ({x.type}) -> {x.type}', x.elem, x.lanes
        )

    def least(self, integers: Sequence[Reg]) -> Reg | None:
        """Return the least of some signed integers; None if there are none."""
        least: Reg | None = None
        for each in integers:
            least = each if least is None else self.select(self.compare("slt", each, least), each, least)
        return least

    def broadcast(self, x: Reg, lanes: int) -> Reg:
        if lanes == x.lanes:
            return x
        return self.op(f"vector.broadcast {x.name} : {x.type} to {vector_type(x.elem, lanes)}", x.elem, lanes)

    def extract(self, x: Reg, lane: int) -> Reg:
        if x.lanes == 1:
            return x
        return self.op(f"vector.extract {x.name}[{lane}] : {x.elem} from {x.type}", x.elem)

    def insert(self, x: Reg, into: Reg, lane: int) -> Reg:
        text = f"vector.insert {x.name}, {into.name}[{lane}] : {x.elem} into {into.type}"
        return self.op(text, into.elem, into.lanes)

    def shuffle(self, x: Reg, places: Sequence[int]) -> Reg:
        """Return the lanes of a vector at these places."""
        if len(places) == 1:
            return self.extract(x, places[0])
        text = f"vector.shuffle {x.name}, {x.name} [{', '.join(map(str, places))}] : {x.type}, {x.type}"
        return self.op(text, x.elem, len(places))

    def part(self, x: Reg, first: int, lanes: int) -> Reg:
        """Return some neighbouring lanes of a vector."""
        return self.shuffle(x, range(first, first + lanes))

    def transpose(self, rows: Sequence[Reg]) -> list[Reg]:
        """Return the columns of a square matrix, given its rows; their number is a power of two.

        Each round exchanges the parts beside the diagonal of blocks that are twice as large as in the round before.
        """
        found, size = list(rows), len(rows)
        for half in (1 << power for power in range(size.bit_length() - 1)):
            for first in (number for number in range(size) if not number & half):
                x, y = found[first], found[first + half]
                lower = [lane if not lane & half else size + lane - half for lane in range(size)]
                upper = [lane + half if not lane & half else size + lane for lane in range(size)]
                found[first], found[first + half] = (
                    self.op(f"vector.shuffle {x.name}, {y.name} {places} : {x.type}, {x.type}", x.elem, size)
                    for places in (lower, upper)
                )
        return found

    def concatenate(self, x: Reg, y: Reg) -> Reg:
        """Concatenate the lanes of two registers of the same type."""
        lanes = x.lanes + y.lanes
        if x.lanes == 1:
            return self.op(f"vector.from_elements {x.name}, {y.name} : {vector_type(x.elem, lanes)}", x.elem, lanes)
        places = ", ".join(str(lane) for lane in range(lanes))
        return self.op(f"vector.shuffle {x.name}, {y.name} [{places}] : {x.type}, {y.type}", x.elem, lanes)

    def call(self, function: str, args: Sequence[Reg], elem: str, lanes: int = 1) -> Reg:
        """Call an external function and declare it once."""
        types = ", ".join(arg.type for arg in args)
        result = vector_type(elem, lanes)
        convention = self._conventions.call
        self._declarations[function] = f'llvm.func {convention}@"{function}"({types}) -> {result}'
        names = ", ".join(arg.name for arg in args)
        return self.op(f'llvm.call {convention}@"{function}"({names}) : ({types}) -> {result}', elem, lanes)

    def call_void(self, function: str, args: Sequence[Reg] = (), attributes: str = "") -> None:
        """Call a function that returns nothing; unless the module defines it, declare it once, with its attributes."""
        types, names = ", ".join(arg.type for arg in args), ", ".join(arg.name for arg in args)
        convention = self._conventions.call
        declared = f'llvm.func {convention}@"{function}"({types})' + f" attributes {{{attributes}}}" * bool(attributes)
        self._declarations.setdefault(function, declared)
        self.line(f'llvm.call {convention}@"{function}"({names}) : ({types}) -> ()')

    def call_own(
        self,
        function: str,
        args: Sequence[Reg],
        elem: str,
        write: Callable[[Text, Sequence[Reg]], Reg],
        *,
        inlined: bool = False,
    ) -> Reg:
        """Call a function that is defined in this module; its result has as many lanes as its first argument.

        Args:
            elem: the type of the function's result.
            write: writes the function's body to a separate Text; called once per module.
            inlined: let the device's compiler inline the function.
        """
        lanes = args[0].lanes if args else 1
        made = vector_type(elem, lanes)
        if function not in self._declarations:
            self._declarations[function] = ""
            inner = Text(self._conventions)
            inner._declarations = self._declarations
            parameters = [Reg(f"%a{number}", arg.elem, arg.lanes) for number, arg in enumerate(args)]
            result = write(inner, parameters)
            head = ", ".join(f"{reg.name}: {reg.type}" for reg in parameters)
            attributes = "" if inlined else "attributes {no_inline} "
            self._declarations[function] = "\n".join(
                [
                    f'llvm.func internal {self._conventions.call}@"{function}"({head}) -> {made} {attributes}{{',
                    *inner._body(),
                    f"    llvm.return {result.name} : {made}",
                    "  }",
                ]
            )
        types, names = ", ".join(arg.type for arg in args), ", ".join(arg.name for arg in args)
        call = f'llvm.call {self._conventions.call}@"{function}"({names}) : ({types}) -> {made}'
        return self.op(call, elem, lanes)

    def define(self, name: str, text: str) -> None:
        """Add a definition of this name to the module. Its text uses LLVM's types only."""
        self._declarations[name] = text

    def to_index(self, x: Reg) -> Reg:
        """Convert an integer to an index; a narrower index loses the upper bits."""
        return self.cast("arith.trunci" if WIDTHS[x.elem] > WIDTHS[self.index] else "arith.extsi", x, self.index)

    # Constants, written once at the head of the function.

    def _constant(self, literal: str, type: str) -> str:
        key = (literal, type)
        if key not in self._constants:
            self._constants[key] = f"%c{len(self._constants)}"
        return self._constants[key]

    def integer(self, value: int, elem: str = "", lanes: int = 1) -> Reg:
        elem = elem or self.index
        literal = str(value) if elem != "i1" else ("true" if value else "false")
        type = vector_type(elem, lanes)
        return Reg(self._constant(literal if lanes == 1 else f"dense<{literal}>", type), elem, lanes)

    def constant_number(self, reg: Reg) -> int | None:
        """Return the number of an integer constant; None for any other register."""
        return next((int(literal) for (literal, _), name in self._constants.items() if name == reg.name), None)

    def float_constant(self, value: float, elem: str, lanes: int = 1) -> Reg:
        """Return a float constant, written as bits: no decimal rounding, no special case for infinities and NaNs."""
        bits = struct.pack("<f" if elem == "f32" else "<d", value)
        return self.bits(int.from_bytes(bits, "little"), elem, lanes)

    def bits(self, bits: int, elem: str, lanes: int = 1) -> Reg:
        """Return a float constant that has these bits."""
        literal = f"0x{bits:0{WIDTHS[elem] // 4}X}"
        type = vector_type(elem, lanes)
        return Reg(self._constant(literal if lanes == 1 else f"dense<{literal}>", type), elem, lanes)

    def iota(self, elem: str, lanes: int, step: int = 1) -> Reg:
        """Return the vector 0, step, 2 * step, ..."""
        literal = ", ".join(str(lane * step) for lane in range(lanes))
        return Reg(self._constant(f"dense<[{literal}]>", vector_type(elem, lanes)), elem, lanes)

    # Memory.

    def private(self, elem: str, count: int) -> str:
        """Allocate an array in private memory, once at the head of the function."""
        name = f"%p{len(self._allocas)}"
        self.private_bytes += count * WIDTHS[elem] // 8
        self._allocas.append(
            f"{name} = llvm.alloca {self.integer(1, 'i32').name} x !llvm.array<{count} x {elem}> "
            f"{{alignment = {self._conventions.private_alignment} : i64}} : (i32) -> {PRIVATE}"
        )
        return name

    def local(self, elem: str, count: int) -> str:
        """Define an array that the work-items of a work-group share."""
        name = f"tile{len(self._allocas)}"
        self.local_bytes += count * WIDTHS[elem] // 8
        kind = f"!llvm.array<{count} x {elem}>"
        self._declarations[name] = (
            f"llvm.mlir.global internal @{name}() {{addr_space = 3 : i32, "
            f"alignment = {self._conventions.private_alignment} : i64}} : {kind} "
            f"{{ %none = llvm.mlir.undef : {kind} llvm.return %none : {kind} }}"
        )
        self._allocas.append(f"%{name} = llvm.mlir.addressof @{name} : {LOCAL}")
        return f"%{name}"

    def address(self, base: str, offset: Reg, elem: str, space: str) -> str:
        name = self.fresh()
        self.line(f"{name} = llvm.getelementptr {base}[{offset.name}] : ({space}, {offset.type}) -> {space}, {elem}")
        return name

    def offset_address(self, address: str, count: int, elem: str, space: str) -> str:
        """Return an address moved by a constant number of elements."""
        if count == 0:
            return address
        name = self.fresh()
        self.line(f"{name} = llvm.getelementptr {address}[{count}] : ({space}) -> {space}, {elem}")
        return name

    def load(self, address: str, elem: str, lanes: int, space: str) -> Reg:
        alignment = f"{{alignment = {max(1, WIDTHS[elem] // 8)} : i64}}"
        return self.op(f"llvm.load {address} {alignment} : {space} -> {vector_type(elem, lanes)}", elem, lanes)

    def store(self, value: Reg, address: str, space: str, *, volatile: bool = False) -> None:
        alignment = f"{{alignment = {max(1, WIDTHS[value.elem] // 8)} : i64}}"
        name = "llvm.store volatile" if volatile else "llvm.store"
        self.line(f"{name} {value.name}, {address} {alignment} : {value.type}, {space}")

    def volatile_load(self, address: str, elem: str, space: str) -> Reg:
        """Load a number at this position, and each time that the position is reached."""
        alignment = f"{{alignment = {max(1, WIDTHS[elem] // 8)} : i64}}"
        return self.op(f"llvm.load volatile {address} {alignment} : {space} -> {elem}", elem)

    def fence(self, order: str) -> None:
        """Keep other accesses on their side of this position; the order is `acquire` or `release`."""
        self.line(f"llvm.fence {order}")

    def atomic(self, kind: str, address: str, value: Reg, space: str) -> Reg:
        """Change an integer in memory as one step, and return what it was; `kind` is MLIR's name. See also `fence`."""
        return self.op(f"llvm.atomicrmw {kind} {address}, {value.name} acq_rel : {space}, {value.type}", value.elem)

    def compare_exchange(self, address: str, expected: Reg, value: Reg, space: str) -> Reg:
        """Store an integer if memory has the expected one, as one step; return what was there."""
        kind = f"!llvm.struct<({value.type}, i1)>"
        pair = self.op(
            f"llvm.cmpxchg {address}, {expected.name}, {value.name} acq_rel acquire : {space}, {value.type}", kind
        )
        return self.op(f"llvm.extractvalue {pair.name}[0] : {kind}", value.elem)

    def volatile_store(self) -> None:
        """Write an effect that no compiler removes: a volatile store to private memory that nobody reads."""
        zero = self.integer(0, "i32")
        self.line(f"llvm.store volatile {zero.name}, {self.private('i32', 1)} {{alignment = 4 : i64}} : i32, {PRIVATE}")

    def copy(self, target: str, target_space: str, source: str, source_space: str, length: Reg, alignment: int) -> None:
        """Copy bytes that do not overlap; both addresses are multiples of `alignment`."""
        attributes = f"{{llvm.align = {alignment} : i64}}"
        self.line(
            f'"llvm.intr.memcpy"({target}, {source}, {length.name}) <{{arg_attrs = [{attributes}, {attributes}, {{}}], '
            f"isVolatile = false}}> : ({target_space}, {source_space}, {length.type}) -> ()"
        )

    # Blocks.

    @contextmanager
    def nest(self, head: str, tail: str = "}") -> Iterator[None]:
        self.line(head)
        self._depth += 1
        yield
        self._depth -= 1
        self.line(tail)

    def when(self, condition: Reg) -> AbstractContextManager[None]:
        """Open a branch that is taken if a condition is true."""
        return self.nest(f"scf.if {condition.name} {{")

    def otherwise(self) -> AbstractContextManager[None]:
        """Open the other way of the branch that was closed just before."""
        return self.nest("else {")

    @contextmanager
    def loop(self, low: Reg, high: Reg, step: int) -> Iterator[Reg]:
        """Open a loop over indices, without carried values."""
        index = Reg(self.fresh(), self.index)
        head = f"scf.for {index.name} = {low.name} to {high.name} step {self.integer(step).name} : {self.index} {{"
        with self.nest(head):
            yield index

    def repeat(self, count: Reg, values: Sequence[Reg], body: Callable[[Sequence[Reg]], Sequence[Reg]]) -> list[Reg]:
        return self.carry(self.integer(0, count.elem), count, 1, values, lambda _, inside: body(inside))

    def carry(
        self,
        low: Reg,
        high: Reg,
        step: int,
        values: Sequence[Reg],
        body: Callable[[Reg, Sequence[Reg]], Sequence[Reg]],
    ) -> list[Reg]:
        """Write a loop over indices that carries registers; return their final values.

        Args:
            body: takes the index and the carried registers, and returns those of the next iteration.
        """
        if not values:
            with self.loop(low, high, step) as index:
                body(index, ())
            return []
        index, inside = Reg(self.fresh(), low.elem), [Reg(self.fresh(), value.elem, value.lanes) for value in values]
        result = self.fresh()
        types = ", ".join(value.type for value in values)
        carried = ", ".join(f"{name.name} = {value.name}" for name, value in zip(inside, values, strict=True))
        head = (
            f"{result}:{len(values)} = scf.for {index.name} = {low.name} to {high.name} "
            f"step {self.integer(step, low.elem).name} iter_args({carried}) -> ({types}) : {low.elem} {{"
        )
        with self.nest(head):
            made = body(index, inside)
            self.line(f"scf.yield {', '.join(value.name for value in made)} : {types}")
        return [Reg(f"{result}#{place}", value.elem, value.lanes) for place, value in enumerate(values)]

    def pin_operations(self, write: Callable[[], Sequence[Reg]]) -> list[Reg]:
        """Write operations that MLIR's loop-invariant code motion leaves where they are; return their results."""
        head = len(self._lines)
        with self.nest(""):
            values = write()
            names, types = (", ".join(getattr(value, what) for value in values) for what in ("name", "type"))
            self.line(f"scf.yield {names} : {types}" if values else "scf.yield")
        results = [Reg(self.fresh(), value.elem, value.lanes) for value in values]
        named = f"{', '.join(result.name for result in results)} = " if results else ""
        region = f"{named}scf.execute_region{f' -> ({types})' if results else ''} no_inline {{"
        self._lines[head] = "  " * self._depth + region
        return results

    def choose(self, condition: Reg, then: Callable[[], Reg], otherwise: Callable[[], Reg]) -> Reg:
        name, head = self.fresh(), len(self._lines)
        self.line("")
        for branch, tail in ((then, "} else {"), (otherwise, "}")):
            self._depth += 1
            value = branch()
            self.line(f"scf.yield {value.name} : {value.type}")
            self._depth -= 1
            self.line(tail)
        self._lines[head] = "  " * self._depth + f"{name} = scf.if {condition.name} -> ({value.type}) {{"
        return Reg(name, value.elem, value.lanes)

    def function(self, name: str, parameters: Sequence[str]) -> str:
        """Return the module: declarations and one kernel, whose body is the lines written so far."""
        places = self._places.items()
        return "\n".join(
            [
                f"{GLOBAL} = !llvm.ptr<{self._conventions.global_space}>",
                "module {",
                *(f"  {text}" for text in self._declarations.values()),
                f"  llvm.func {self._conventions.kernel}@{name}({', '.join(parameters)}) attributes {{"
                f"{self._conventions.attributes}}} {{",
                *self._body(),
                "  }" + next(filter(None, self._suffixes), ""),
                "}",
                *(f"{name} = loc({llvm_string(file)}:{line}:{column})" for (file, line, column), name in places),
                "",
            ]
        )

    def _body(self) -> list[str]:
        constants = [
            # MLIR writes a boolean without its type.
            f"    {constant} = arith.constant {literal}" + ("" if type == "i1" else f" : {type}")
            for (literal, type), constant in self._constants.items()
        ]
        following = [text.lstrip() for text in [*self._lines, ""][1:]]
        lines = [
            # An operation with regions has its place after the last of them.
            text if text.endswith(("{", ":")) or after.startswith(("else {", "do {")) else text + suffix
            for text, suffix, after in zip(self._lines, self._suffixes, following, strict=True)
        ]
        return [*constants, *(f"    {text}" for text in self._allocas), *lines]
