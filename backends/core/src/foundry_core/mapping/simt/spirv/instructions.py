"""Writes what one invocation computes, as SPIR-V instructions: arithmetic, control flow, and constants.

`Code` is a mapping/base/builder.Builder. A register is a scalar.

It computes nothing twice: an instruction without effects whose operands and scope are those of an earlier one gives the
earlier result. A sum of a register and a constant stays in this form (`%7+3`) until an instruction needs it. So
registers that hold neighbouring elements are known to be neighbours: their base is the same and their constants follow
each other. For each integer it knows a power of two that divides it, and for some the bounds. From these,
statements/memory.py makes accesses of 16 bytes.

Drivers merge instructions although the result differs. Seen: Mesa 26.1 skips a conversion that the next one undoes but
for its rounding. NVIDIA 580 does so for f16, decorated or not, takes sext(-x) of an i8 or i16 for -sext(x), and turns
an extended i8 into a float as if it were signed. So each conversion is decorated NoContraction, and where that is not
enough, `_opaque` keeps the two instructions apart. NVIDIA was also seen to select the larger of two unsigned numbers of
64 bits as if they were signed: `compare` uses no unsigned order of them. It left out the last iteration of a loop from
one constant to another that had a loop inside: what such a loop counts is opaque from one iteration to the next.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from ....emit.builder import Builder, count_bits
from ....emit.mlir import ORDERS_OF_BOOLEANS, WIDTHS, Reg
from ....spirv_numbers import numbers
from .module import SpirvModule
from .shared_memory import PendingAccesses, Span

_INTEGERS = {
    "arith.addi": "IAdd",
    "arith.subi": "ISub",
    "arith.muli": "IMul",
    "arith.divsi": "SDiv",
    "arith.divui": "UDiv",
    "arith.remsi": "SRem",
    "arith.remui": "UMod",
    "arith.andi": "BitwiseAnd",
    "arith.ori": "BitwiseOr",
    "arith.xori": "BitwiseXor",
    "arith.shli": "ShiftLeftLogical",
    "arith.shrsi": "ShiftRightArithmetic",
    "arith.shrui": "ShiftRightLogical",
    "arith.addf": "FAdd",
    "arith.subf": "FSub",
    "arith.mulf": "FMul",
    "arith.divf": "FDiv",
    "arith.remf": "FRem",
}
_BOOLEANS = {
    "arith.andi": "LogicalAnd",
    "arith.muli": "LogicalAnd",
    "arith.ori": "LogicalOr",
    "arith.xori": "LogicalNotEqual",
    "arith.addi": "LogicalNotEqual",
    "arith.subi": "LogicalNotEqual",
}
_CASTS = {
    "arith.extsi": "SConvert",
    "arith.extui": "UConvert",
    "arith.trunci": "UConvert",
    "arith.sitofp": "ConvertSToF",
    "arith.uitofp": "ConvertUToF",
    "arith.fptosi": "ConvertFToS",
    "arith.fptoui": "ConvertFToU",
    "arith.extf": "FConvert",
    "arith.truncf": "FConvert",
    "arith.bitcast": "Bitcast",
}
# The least and the greatest result of operations on integers, from those of their operands; None if they say nothing.
_Bounds: TypeAlias = tuple[int, int]
_BOUNDS: dict[str, Callable[[_Bounds, _Bounds], _Bounds | None]] = {
    "arith.addi": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "arith.subi": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "arith.muli": lambda a, b: (a[0] * b[0], a[1] * b[1]) if min(a[0], b[0]) >= 0 else None,
    # One operand without a sign is enough.
    "arith.andi": lambda a, b: (0, min(each[1] for each in (a, b) if each[0] >= 0)) if max(a[0], b[0]) >= 0 else None,
    "arith.shrui": lambda a, b: (0, a[1]) if min(a[0], b[0]) >= 0 else None,
}
_COMPARED = {
    "eq": "IEqual",
    "ne": "INotEqual",
    "slt": "SLessThan",
    "sle": "SLessThanEqual",
    "sgt": "SGreaterThan",
    "sge": "SGreaterThanEqual",
    "ult": "ULessThan",
    "ule": "ULessThanEqual",
    "ugt": "UGreaterThan",
    "uge": "UGreaterThanEqual",
    "oeq": "FOrdEqual",
    "ogt": "FOrdGreaterThan",
    "oge": "FOrdGreaterThanEqual",
    "olt": "FOrdLessThan",
    "ole": "FOrdLessThanEqual",
    "one": "FOrdNotEqual",
    "ueq": "FUnordEqual",
    "ugt ": "FUnordGreaterThan",
    "une": "FUnordNotEqual",
}
_COMPARED_FLOATS = _COMPARED | {
    "ugt": "FUnordGreaterThan",
    "uge": "FUnordGreaterThanEqual",
    "ult": "FUnordLessThan",
    "ule": "FUnordLessThanEqual",
}
# Conversions that round, or undo one that does.
_ROUNDING = frozenset({"FConvert", "ConvertSToF", "ConvertUToF", "ConvertFToS", "ConvertFToU"})
# Arithmetic whose result in a narrow type has fewer bits than in the registers of a device.
_OVERFLOWING = frozenset({"IAdd", "ISub", "IMul"})
_CAPABILITIES = {"i8": "Int8", "i16": "Int16", "i64": "Int64", "f16": "Float16", "f64": "Float64"}
# No register is known to be a multiple of more than this.
_MOST = 1 << 30
# What a loop may ask of the device's compiler.
_UNROLL, _DONT_UNROLL = numbers("LoopControl", "Unroll DontUnroll")


@dataclass(frozen=True)
class Checkpoint:
    """A point in a function: the length of its body, its block, the results that can be used again, and the accesses of
    workgroup memory."""

    length: tuple[int, int, int]
    block: int
    found: dict[Any, Reg]
    scopes: list[list[Any]]
    accesses: set[tuple[Span, bool]]


class Code:
    """The body of one function, which grows instruction by instruction.

    Attributes:
        module: where the instructions go.
        accesses: the accesses of workgroup memory on the way here.
        opaque: the IDs of types that are not scalars, by the names that registers have for them.
        zero: an i32 that is always 0, which the device's compiler cannot know; None where drivers merge nothing.
    """

    index = "i32"

    def __init__(self, module: SpirvModule) -> None:
        self.module = module
        # The results that can be used again, and for each scope, which of them end with it.
        self._found: dict[Any, Reg] = {}
        self._scopes: list[list[Any]] = [[]]
        # The base and the constant of each sum of both.
        self._sums: dict[str, tuple[Reg, int]] = {}
        self.zero: Reg | None = None
        # Registers that have the bits of a float that has just been rounded to f16.
        self._halves: set[str] = set()
        self._integers: dict[str, int] = {}
        self._types: dict[str, int] = {}
        self._constants: dict[tuple[str, int], Reg] = {}
        self._multiples: dict[str, int] = {}
        self._bounds: dict[str, tuple[int, int]] = {}
        self._functions: dict[str, int] = {}
        self.opaque: dict[str, int] = {}
        self.block = 0
        self._loops = 0
        self.accesses = PendingAccesses()
        self._line: tuple[object, ...] = ()

    # Types and IDs.

    def type(self, elem: str) -> int:
        """Return the ID of a scalar type."""
        found = self.opaque.get(elem) or self._types.get(elem)
        if found is None:
            if elem in _CAPABILITIES:
                self.module.capability(_CAPABILITIES[elem])
            kind = "Bool" if elem == "i1" else "Float" if elem[0] == "f" else "Int"
            numbers = {"Bool": (), "Float": (WIDTHS[elem],), "Int": (WIDTHS[elem], 0)}[kind]
            found = self._types[elem] = self.module.type(kind, *numbers)
        return found

    def id(self, x: Reg) -> int:
        """Return the ID of a register; writes the sum if it has not been written yet."""
        found = self._sums.get(x.name)
        if found is None:
            return int(x.name[1:])
        base, step = found
        return int(self._pure("IAdd", x.elem, base, self.integer(step, x.elem)).name[1:])

    def _new(self, id: int, elem: str, multiple: int = 1) -> Reg:
        reg = Reg(f"%{id}", elem)
        if multiple > 1:
            self._multiples[reg.name] = min(multiple, _MOST)
        return reg

    def _pure(self, name: str, elem: str, *operands: Reg, literals: Sequence[int] = (), multiple: int = 1) -> Reg:
        """Return the result of an instruction without effects, which is written once in a scope."""
        key = (name, elem, operands, *literals)
        found = self._found.get(key)
        if found is not None:
            return found
        found = self._new(
            self.module.result(name, self.type(elem), *literals, *[self.id(x) for x in operands]), elem, multiple
        )
        if name in _ROUNDING:
            self.module.exact.append(self.id(found))
        if name in _OVERFLOWING and elem not in self.opaque and WIDTHS[elem] < 32:
            found = self._opaque(found, multiple)
        self._found[key] = found
        self._scopes[-1].append(key)
        return found

    def _opaque(self, x: Reg, multiple: int = 1) -> Reg:
        """Return the same number in a register of which the device's compiler does not know how it was made."""
        if self.zero is None:
            return x
        if x.elem == "f16":
            return self._pure("Bitcast", "f16", self._opaque(self._pure("Bitcast", "i16", x)))
        zero = self.zero if x.elem == "i32" else self._pure("UConvert", x.elem, self.zero)
        return self._pure("BitwiseXor", x.elem, x, zero, multiple=multiple)

    def opaque_result(self, name: str, elem: str, *operands: Reg) -> Reg:
        """Return the result of an instruction without effects, which has one of the types in `opaque`."""
        return self._pure(name, elem, *operands)

    def component(self, x: Reg, number: int, elem: str) -> Reg:
        """Return a scalar that is a part of a register of one of the types in `opaque`."""
        found = self._new(self.module.result("CompositeExtract", self.type(elem), self.id(x), number), elem)
        if elem == "f16":
            self._halves.add(found.name)
        return found

    def with_component(self, x: Reg, number: int, part: Reg) -> Reg:
        """Return a register of one of the types in `opaque` with another scalar in the place of one."""
        return self._new(
            self.module.result("CompositeInsert", self.type(x.elem), self.id(part), self.id(x), number), x.elem
        )

    def save(self) -> Checkpoint:
        """Return what `restore` needs to take back everything that is written from here on."""
        scopes = [list(scope) for scope in self._scopes]
        return Checkpoint(self.module.length(), self.block, dict(self._found), scopes, self.accesses.save())

    def restore(self, saved: Checkpoint) -> None:
        """Take back what was written since `save`. Declarations and definitions of functions stay."""
        self.module.cut(saved.length)
        self.block = saved.block
        self._found = dict(saved.found)
        self._scopes = [list(scope) for scope in saved.scopes]
        self.accesses.restore(saved.accesses)

    # What is known of integers.

    def parts(self, x: Reg) -> tuple[Reg, int]:
        """Return an integer as a register and the constant that is added to it."""
        return self._sums.get(x.name) or (x, 0)

    def value(self, x: Reg) -> int | None:
        """Return the value of an integer constant."""
        return self._integers.get(x.name)

    def multiple(self, x: Reg) -> int:
        """Return a power of two that divides an integer."""
        base, step = self.parts(x)
        known = self.value(base)
        if known is not None:
            return known & -known or _MOST
        found = self._multiples.get(base.name, 1)
        return min(found, step & -step) if step else found

    def state_multiple(self, x: Reg, multiple: int) -> None:
        """Record that an integer is a multiple of a number: a promise of the caller's."""
        lowest = multiple & -multiple
        if lowest > self.multiple(x) and "+" not in x.name:
            self._multiples[x.name] = min(lowest, _MOST)

    def bounds(self, x: Reg) -> tuple[int, int] | None:
        """Return the least and the greatest value that a signed integer may have, if they are known."""
        base, step = self.parts(x)
        known = self.value(base)
        low, high = (known, known) if known is not None else self._bounds.get(base.name, (1, 0))
        limit = 1 << WIDTHS[x.elem] - 1
        return (low + step, high + step) if low <= high and -limit <= low + step <= high + step < limit else None

    def assume_bounds(self, x: Reg, low: int, high: int) -> Reg:
        """Return a signed integer, of which the caller knows the bounds."""
        if "+" not in x.name:
            self._bounds[x.name] = (low, high)
        return x

    def _with_bounds(self, name: str, found: Reg, x: Reg, y: Reg) -> Reg:
        """Record the bounds of the result of an operation on integers."""
        base, step = self.parts(found)
        if base.name in self._bounds or self.value(base) is not None:
            return found
        limit = 1 << WIDTHS[x.elem] - 1
        any_number = -limit, limit - 1
        within = _BOUNDS[name](self.bounds(x) or any_number, self.bounds(y) or any_number)
        if within and -limit <= within[0] <= within[1] < limit:
            self._bounds[base.name] = (within[0] - step, within[1] - step)
        return found

    def _sum(self, base: Reg, step: int) -> Reg:
        width = WIDTHS[base.elem]
        step = (step + (1 << width - 1)) % (1 << width) - (1 << width - 1)
        if not step:
            return base
        found = Reg(f"{base.name}+{step}", base.elem)
        self._sums[found.name] = base, step
        return found

    # Arithmetic.

    def unary(self, name: str, x: Reg) -> Reg:
        if name != "arith.negf":
            raise KeyError(name)
        # FNegate may flush a subnormal.
        bits = f"i{WIDTHS[x.elem]}"
        sign = self.integer(1 << WIDTHS[x.elem] - 1, bits)
        return self.cast("arith.bitcast", self.binary("arith.xori", self.cast("arith.bitcast", x, bits), sign), x.elem)

    def binary(self, name: str, x: Reg, y: Reg) -> Reg:
        if x.elem == "i1":
            return self._pure(_BOOLEANS[name], "i1", x, y)
        if x.is_float:
            found = self._pure(_INTEGERS[name], x.elem, x, y)
            # Triton fuses a product and a sum where its operation math.fma says so, and nowhere else.
            if name != "arith.divf":
                self.module.exact.append(self.id(found))
            return found
        found = self._integer(name, x, y)
        return self._with_bounds(name, found, x, y) if name in _BOUNDS else found

    def _integer(self, name: str, x: Reg, y: Reg) -> Reg:
        a, b = self.value(x), self.value(y)
        if a is not None and b is not None and (folded := _fold(name, a, b, WIDTHS[x.elem])) is not None:
            return self.integer(folded, x.elem)
        match name:
            case "arith.addi":
                if a is not None:
                    x, y, a, b = y, x, b, a
                (base, step), (other, more) = self.parts(x), self.parts(y)
                if b is not None:
                    return self._sum(base, step + b)
                if base.name > other.name:
                    base, other = other, base
                total = self._pure("IAdd", x.elem, base, other, multiple=min(self.multiple(base), self.multiple(other)))
                return self._sum(total, step + more)
            case "arith.subi" if b is not None:
                base, step = self.parts(x)
                return self._sum(base, step - b)
            case "arith.muli":
                if a is not None:
                    x, y, a, b = y, x, b, a
                if b in (0, 1):
                    return x if b else self.integer(0, x.elem)
                base, step = self.parts(x)
                if b is None or not step:
                    return self._pure("IMul", x.elem, x, y, multiple=self.multiple(x) * self.multiple(y))
                return self._sum(self._integer(name, base, y), step * b)
            case "arith.andi" if b == 0:
                return y
            case "arith.shli" if b is not None and 0 <= b < WIDTHS[x.elem]:
                return self._integer("arith.muli", x, self.integer(1 << b, x.elem))
        multiple = 1
        if name == "arith.subi":
            multiple = min(self.multiple(x), self.multiple(y))
        elif name == "arith.andi":
            multiple = max(self.multiple(x), self.multiple(y))
        elif name == "arith.shrui" and b is not None and 0 <= b < WIDTHS[x.elem]:
            multiple = max(1, self.multiple(x) >> b)
        return self._pure(_INTEGERS[name], x.elem, x, y, multiple=multiple)

    def cast(self, name: str, x: Reg, elem: str) -> Reg:
        if elem == x.elem:
            return x
        if x.elem == "i1":
            true = -1 if name in ("arith.extsi", "arith.sitofp") else 1
            if elem[0] == "f":
                return self.select(x, self.float_constant(float(true), elem), self.float_constant(0.0, elem))
            return self.select(x, self.integer(true, elem), self.integer(0, elem))
        if elem == "i1":
            one = self.integer(1, x.elem)
            return self.compare("ne", self.binary("arith.andi", x, one), self.integer(0, x.elem))
        if name in ("arith.extsi", "arith.extui", "arith.trunci") and (value := self.value(x)) is not None:
            return self.integer(value % (1 << WIDTHS[x.elem]) if name == "arith.extui" else value, elem)
        if name in ("arith.extsi", "arith.extui"):
            base, step = self.parts(x)
            within, known = self.bounds(x), self.bounds(base)
            if step and within and known and (name == "arith.extsi" or min(within[0], known[0]) >= 0):
                return self._sum(self.cast(name, base, elem), step)
            # The low bits of the sum do not carry beyond those that are zero in the base: their extension is added.
            low = step % self.multiple(base)
            if low:
                return self._sum(self.cast(name, self._sum(base, step - low), elem), low)
        if name == "arith.uitofp" or (x.name in self._halves and name == "arith.extf"):
            x = self._opaque(x)
        kept = self.multiple(x) if name != "arith.bitcast" and elem[0] == "i" and x.elem[0] == "i" else 1
        found = self._pure(_CASTS[name], elem, x, multiple=kept)
        if (name == "arith.truncf" and elem == "f16") or (name == "arith.bitcast" and x.name in self._halves):
            self._halves.add(found.name)
        within = self.bounds(x) if name in ("arith.extsi", "arith.extui") else None
        if within and (name == "arith.extsi" or within[0] >= 0):
            self.assume_bounds(found, *within)
        return found

    def compare(self, predicate: str, x: Reg, y: Reg) -> Reg:
        if x.elem == "i1":
            return self._compare_booleans(predicate, x, y)
        if x.is_float:
            return self._compare_floats(predicate, x, y)
        (base, step), (other, more) = self.parts(x), self.parts(y)
        # base + step < n is the same for all steps of a block, if the base and n are multiples of its size: the mask of
        # neighbouring elements is one register.
        if predicate in ("slt", "sge", "ult", "uge") and not more:
            low = step % min(self.multiple(base), self.multiple(other))
            x = self._sum(base, step - low)
        elif predicate in ("sgt", "sle", "ugt", "ule") and not step:
            low = more % min(self.multiple(base), self.multiple(other))
            y = self._sum(other, more - low)
        if x.elem == "i64" and predicate[0] == "u" and self.zero is not None:
            # Flipping the signs makes the order of signed numbers that of unsigned ones.
            sign = self.cast("arith.extui", self._opaque(self.integer(1 << 31, "i32")), "i64")
            sign = self.binary("arith.shli", sign, self.integer(32, "i64"))
            x, y = (self._pure("BitwiseXor", "i64", each, sign) for each in (x, y))
            predicate = f"s{predicate[1:]}"
        return self._pure(_COMPARED[predicate], "i1", x, y)

    def _compare_booleans(self, predicate: str, x: Reg, y: Reg) -> Reg:
        if predicate in ("eq", "ne"):
            return self._pure("LogicalEqual" if predicate == "eq" else "LogicalNotEqual", "i1", x, y)
        name, inverted = ORDERS_OF_BOOLEANS[predicate]
        pair = [self._pure("LogicalNot", "i1", each) if at == inverted else each for at, each in enumerate((x, y))]
        return self.binary(name, *pair)

    def _compare_floats(self, predicate: str, x: Reg, y: Reg) -> Reg:
        if predicate in ("uno", "ord"):
            found = self._pure("FUnordNotEqual", "i1", x, x)
            if y != x:
                found = self._pure("LogicalOr", "i1", found, self._pure("FUnordNotEqual", "i1", y, y))
            return found if predicate == "uno" else self._pure("LogicalNot", "i1", found)
        if predicate in ("true", "false"):
            return self.integer(predicate == "true", "i1")
        return self._pure(_COMPARED_FLOATS[predicate], "i1", x, y)

    def select(self, condition: Reg, x: Reg, y: Reg) -> Reg:
        if x == y:
            return x
        multiple = min(self.multiple(x), self.multiple(y)) if x.elem[0] == "i" else 1
        return self._pure("Select", x.elem, condition, x, y, multiple=multiple)

    def leading_zeros(self, x: Reg) -> Reg:
        """Count leading zeros of an integer: set all bits below the highest that is set, and count those above it."""
        by = 1
        while by < WIDTHS[x.elem]:
            x, by = self.binary("arith.ori", x, self.binary("arith.shrui", x, self.integer(by, x.elem))), 2 * by
        return count_bits(self, self.binary("arith.xori", x, self.integer(-1, x.elem)))

    def extended_instruction(self, name: str, x: Reg, *more: Reg) -> Reg:
        """Return the result of an extended instruction (words.EXTENDED), which has the type of its first operand."""
        return self._pure("ExtInst", x.elem, x, *more, literals=self.module.extended_instruction(name))

    # Constants.

    def integer(self, value: int, elem: str = "", lanes: int = 1) -> Reg:
        elem = elem or self.index
        if elem == "i1":
            return Reg(f"%{self.module.boolean(self.type(elem), bool(value))}", elem)
        width = WIDTHS[elem]
        found = self._constants.get((elem, value))
        if found is not None:
            return found
        value = (value + (1 << width - 1)) % (1 << width) - (1 << width - 1)
        found = self._constants.get((elem, value))
        if found is None:
            found = Reg(f"%{self.module.constant(self.type(elem), value & ((1 << width) - 1), width)}", elem)
            self._constants[elem, value] = found
            self._integers[found.name] = value
        return found

    def float_constant(self, value: float, elem: str, lanes: int = 1) -> Reg:
        code = {"f16": "<e", "f32": "<f", "f64": "<d"}[elem]
        return self.bits(int.from_bytes(struct.pack(code, value), "little"), elem)

    def bits(self, bits: int, elem: str, lanes: int = 1) -> Reg:
        """Return a float constant that has these bits."""
        return Reg(f"%{self.module.constant(self.type(elem), bits, WIDTHS[elem])}", elem)

    # Control flow. SPIR-V for Vulkan is structured: each branch names the block where its paths meet.

    def label(self, id: int = 0) -> int:
        """Begin a block."""
        self.block = id or self.module.new()
        self.module.do("Label", self.block)
        return self.block

    def line(self, file: str, line: int, column: int) -> None:
        """Say where in the kernel's source the instructions after this one come from."""
        # A block begins without a line.
        place = (file, line, column, self.block)
        if place != self._line:
            self._line = place
            self.module.do("Line", self.module.string(file), line, column)

    def name(self, x: Reg, text: str) -> None:
        """Name a register for a person."""
        if "+" not in x.name:
            self.module.named.append((int(x.name[1:]), text))

    @contextmanager
    def _scope(self) -> Iterator[None]:
        self._scopes.append([])
        yield
        for key in self._scopes.pop():
            del self._found[key]

    def branch(
        self, condition: Reg, then: Callable[[], Sequence[Reg]], otherwise: Callable[[], Sequence[Reg]]
    ) -> list[Reg]:
        """Write a branch; return a register for each pair of results that the two paths give."""
        m = self.module
        yes, no, merge = m.new(), m.new(), m.new()
        m.do("SelectionMerge", merge, 0)
        m.do("BranchConditional", self.id(condition), yes, no)
        found = []
        before, after = self.accesses.save(), set()
        for label, path in ((yes, then), (no, otherwise)):
            self.label(label)
            self.accesses.restore(before)
            with self._scope():
                results = [(reg, self.id(reg)) for reg in path()]
            found.append((results, self.block))
            after |= self.accesses.save()
            m.do("Branch", merge)
        self.label(merge)
        self.accesses.restore(after)
        (first, left), (second, right) = found
        made = []
        for (x, a), (y, b) in zip(first, second, strict=True):
            if a == b:
                made.append(x)
                continue
            multiple = min(self.multiple(x), self.multiple(y)) if x.elem[0] == "i" else 1
            made.append(self._new(m.result("Phi", self.type(x.elem), a, left, b, right), x.elem, multiple))
        return made

    def when_in_turn(
        self, condition: Reg, then: Callable[[], Sequence[Reg]], otherwise: Callable[[], Sequence[Reg]]
    ) -> list[Reg]:
        """Write what `branch` writes as two branches with one path each, the second under the opposite condition."""
        inverted = self._pure("LogicalNot", "i1", condition)
        return self._or_before(inverted, otherwise, self._or_before(condition, then, None))

    def _or_before(self, condition: Reg, path: Callable[[], Sequence[Reg]], before: Sequence[Reg] | None) -> list[Reg]:
        """Write a branch without an else; return what its path gives, or else what there was before it."""
        m, head = self.module, self.block
        yes, merge = m.new(), m.new()
        m.do("SelectionMerge", merge, 0)
        m.do("BranchConditional", self.id(condition), yes, merge)
        self.label(yes)
        with self._scope():
            results = [(reg, self.id(reg)) for reg in path()]
        end = self.block
        m.do("Branch", merge)
        self.label(merge)
        made = []
        for number, (reg, id) in enumerate(results):
            type = self.type(reg.elem)
            multiple = self.multiple(reg) if reg.elem[0] == "i" else 1
            if before is None:
                other = m.undef(type)
            else:
                other = self.id(before[number])
                multiple = min(multiple, self.multiple(before[number])) if reg.elem[0] == "i" else 1
            made.append(self._new(m.result("Phi", type, id, end, other, head), reg.elem, multiple))
        return made

    def all_of(self, *conditions: Reg | None) -> Reg | None:
        """Return whether all of these conditions hold; None stands for one that always does."""
        found = None
        for condition in conditions:
            if condition is not None:
                found = condition if found is None else self.binary("arith.andi", found, condition)
        return found

    def do_when(self, condition: Reg | None, then: Callable[[], None]) -> None:
        """Write instructions that are executed under a condition only, which invocations need not agree on.

        Args:
            condition: see all_of.
        """
        if condition is None:
            then()
            return
        m = self.module
        yes, merge = m.new(), m.new()
        m.do("SelectionMerge", merge, 0)
        m.do("BranchConditional", self.id(condition), yes, merge)
        self.label(yes)
        with self._scope(), self.accesses.under_condition():
            then()
        m.do("Branch", merge)
        self.label(merge)

    def loop(
        self,
        initial: Sequence[Reg],
        test: Callable[[Sequence[Reg]], tuple[Reg, Sequence[Reg]]],
        body: Callable[[Sequence[Reg]], Sequence[Reg]],
        multiples: Sequence[int] = (),
        *,
        rolled: bool = False,
    ) -> list[Reg]:
        """Write a loop: while test(carried): carried = body(passed). Return what the test passes when it fails.

        Args:
            test: from what is carried, the condition and what is passed to the body, or out of the loop.
            multiples: a number that divides each carried integer in every iteration, as the caller knows.
            rolled: ask the device's compiler not to write several iterations one after the other.
        """
        with self.accesses.record_loop():
            return self._loop(initial, test, body, multiples, _DONT_UNROLL if rolled else 0)

    def _loop(
        self,
        initial: Sequence[Reg],
        test: Callable[[Sequence[Reg]], tuple[Reg, Sequence[Reg]]],
        body: Callable[[Sequence[Reg]], Sequence[Reg]],
        multiples: Sequence[int],
        control: int,
    ) -> list[Reg]:
        m = self.module
        self._loops += 1
        outer, starts = self._loops, [self.id(reg) for reg in initial]
        before, header, checked, inside, turn, merge = self.block, *(m.new() for _ in range(5))
        m.do("Branch", header)
        self.label(header)
        holes, carried = [], []
        for number, (reg, start) in enumerate(zip(initial, starts, strict=True)):
            made = m.result("Phi", self.type(reg.elem), start, before, 0, turn)
            holes.append(len(m.body) - 2)
            carried.append(self._new(made, reg.elem, multiples[number] if multiples else 1))
        m.do("LoopMerge", merge, turn, control)
        m.do("Branch", checked)
        self.label(checked)
        with self._scope():
            condition, passed = test(carried)
            m.do("BranchConditional", self.id(condition), inside, merge)
            self.label(inside)
            with self._scope():
                results = [
                    self.id(self._opaque(reg) if self._loops > outer and self.value(start) is not None else reg)
                    for start, reg in zip(initial, body(passed), strict=True)
                ]
            m.do("Branch", turn)
            self.label(turn)
            m.do("Branch", header)
            for hole, result in zip(holes, results, strict=True):
                m.body[hole] = result
        self.label(merge)
        return list(passed)

    def unroll_loop(
        self,
        count: int,
        values: Sequence[Reg],
        body: Callable[[Reg, Sequence[Reg]], Sequence[Reg]],
        *,
        rolled: bool = False,
    ) -> list[Reg]:
        """Write a loop that carries registers for `count` iterations, which the device's compiler shall unroll.

        Args:
            body: gets the number of the iteration. It may read workgroup memory that is not written meanwhile.
            rolled: ask it not to unroll instead.
        """
        one, limit = self.integer(1, "i32"), self.integer(count, "i32")

        def test(regs: Sequence[Reg]) -> tuple[Reg, Sequence[Reg]]:
            return self.compare("slt", regs[0], limit), regs

        def turn(regs: Sequence[Reg]) -> Sequence[Reg]:
            return [self.binary("arith.addi", regs[0], one), *body(regs[0], regs[1:])]

        return self._loop([self.integer(0, "i32"), *values], test, turn, (), _DONT_UNROLL if rolled else _UNROLL)[1:]

    def repeat(self, count: Reg, values: Sequence[Reg], body: Callable[[Sequence[Reg]], Sequence[Reg]]) -> list[Reg]:
        one = self.integer(1, count.elem)

        def test(regs: Sequence[Reg]) -> tuple[Reg, Sequence[Reg]]:
            return self.compare("slt", regs[0], count), regs

        def turn(regs: Sequence[Reg]) -> Sequence[Reg]:
            return [self.binary("arith.addi", regs[0], one), *body(regs[1:])]

        return self.loop([self.integer(0, count.elem), *values], test, turn)[1:]

    def choose(self, condition: Reg, then: Callable[[], Reg], otherwise: Callable[[], Reg]) -> Reg:
        return self.branch(condition, lambda: [then()], lambda: [otherwise()])[0]

    def call_own(
        self, function: str, args: Sequence[Reg], elem: str, write: Callable[[Builder, Sequence[Reg]], Reg]
    ) -> Reg:
        """Call a function on scalars, whose body `write` writes once in a module."""
        if function not in self._functions:
            self._functions[function] = self._define(function, args, elem, write)
        found = self.module.result(
            "FunctionCall", self.type(elem), self._functions[function], *[self.id(x) for x in args]
        )
        return self._new(found, elem)

    def _define(self, name: str, args: Sequence[Reg], elem: str, write: Callable[[Builder, Sequence[Reg]], Reg]) -> int:
        m = self.module
        outer, m.body = m.body, []
        inner = Code(m)
        inner._functions, inner._integers = self._functions, self._integers
        types = [self.type(arg.elem) for arg in args]
        result = self.type(elem)
        made = m.result("Function", result, 0, m.type("Function", result, *types))
        m.name(made, name)
        parameters = [
            Reg(f"%{m.result('FunctionParameter', type)}", arg.elem) for type, arg in zip(types, args, strict=True)
        ]
        inner.label()
        m.do("ReturnValue", inner.id(write(inner, parameters)))
        m.do("FunctionEnd")
        m.finish_function()
        m.body = outer
        return made


def _fold(name: str, a: int, b: int, width: int) -> int | None:
    """Return the result of an operation on two signed constants, or None if it is not worth it."""
    low = (1 << width) - 1
    match name:
        case "arith.addi":
            return a + b
        case "arith.subi":
            return a - b
        case "arith.muli":
            return a * b
        case "arith.andi":
            return a & b
        case "arith.ori":
            return a | b
        case "arith.xori":
            return a ^ b
        case "arith.shli" if 0 <= b < width:
            return a << b
        case "arith.shrui" if 0 <= b < width:
            return (a & low) >> b
        case "arith.shrsi" if 0 <= b < width:
            return a >> b
        case "arith.divsi" if b != 0:
            return math.trunc(a / b) if abs(a) < 1 << 52 else None
    return None
