"""Atomic operations on elements in global memory.

Order and scope of an operation are not passed on: all use acquire and release among everything that shares the memory,
which is at least what any order and scope of Triton asks for, and costs nothing on a CPU. A fence before and another
one after all elements of an operation give that order (GlobalMemory.execute), because PoCL 6 compiles an atomic
instruction to a call that accesses its argument's memory only, and moves other accesses across it. It reads an atomic
load (OpAtomicLoad) as an ordinary one and moves it out of loops, so we use volatile loads.

A device of OpenCL changes integers of 32 and 64 bits as one step. Everything else (sums of floats, narrow types) is a
loop around a compare-and-exchange of the 32 or 64 bits that contain the element. Such a word is aligned, so it is in
the same page as the element.
"""

from __future__ import annotations

from collections.abc import Callable

from ...emit.builder import Builder
from ...emit.mlir import GLOBAL, WIDTHS, Reg, Text
from ...ops.numeric import Numeric, in_memory

# Triton's names of the operations that MLIR has on integers, and MLIR's.
_NATIVE = {
    **{name: name for name in ("add", "max", "min", "umax", "umin")},
    **{name: f"_{name}" for name in ("and", "or", "xor")},
    "exch": "xchg",
}
_LEAST_BITS = 32


def apply_atomic(numeric: Numeric, kind: str, elem: str, old: Reg, value: Reg, compare: Reg | None) -> Reg:
    """Return what an operation leaves in memory.

    Args:
        kind: Triton's name of the operation; of floats, `fadd`.
        old: what is in memory, in its type there.
        value, compare: the operands, as their bits or numbers are in memory.
    """
    t = numeric.text
    match kind:
        case "exch":
            return value
        case "cas":
            assert compare is not None
            return t.select(t.compare("eq", _bits(t, old), _bits(t, compare)), value, old)
        case "fadd":
            total = t.binary("arith.addf", numeric.from_memory(old, elem), numeric.from_memory(value, elem))
            return numeric.to_memory(total, elem)
        case "add" | "and" | "or" | "xor":
            return t.binary(f"arith.{kind}i", old, value)
    predicates = {"max": "sgt", "min": "slt", "umax": "ugt", "umin": "ult"}
    return numeric.pick(predicates[kind], old, value)


def _bits(t: Builder, x: Reg) -> Reg:
    """Return a number of memory as an integer of the same width."""
    return t.cast("arith.bitcast", x, f"i{WIDTHS[x.elem]}")


class Word:
    """The 32 or 64 bits of memory that contain an element; for an element of that size, the element itself."""

    def __init__(self, text: Text, address: str, elem: str) -> None:
        self._text = text
        self._memory = in_memory(elem)
        self._width = WIDTHS[self._memory]
        self.elem = f"i{max(self._width, _LEAST_BITS)}"
        self.address = address
        self._shift: Reg | None = None
        if self._width < _LEAST_BITS:
            place = text.op(f"llvm.ptrtoint {address} : {GLOBAL} to i64", "i64")
            first = text.binary("arith.andi", place, text.integer(-4, "i64"))
            self.address = text.op(f"llvm.inttoptr {first.name} : i64 to {GLOBAL}", GLOBAL).name
            behind = text.binary("arith.andi", place, text.integer(3, "i64"))
            bits = text.binary("arith.shli", text.cast("arith.trunci", behind, "i32"), text.integer(3, "i32"))
            self._shift = bits

    def element(self, word: Reg) -> Reg:
        """Return the element in a word, in its type in memory."""
        t = self._text
        if self._shift is not None:
            word = t.cast("arith.trunci", t.binary("arith.shrui", word, self._shift), f"i{self._width}")
        return t.cast("arith.bitcast", word, self._memory)

    def with_element(self, word: Reg, element: Reg) -> Reg:
        """Return a word with another element."""
        t, bits = self._text, _bits(self._text, element)
        if self._shift is None:
            return bits
        hole = t.binary("arith.shli", t.integer((1 << self._width) - 1, "i32"), self._shift)
        rest = t.binary("arith.andi", word, t.binary("arith.xori", hole, t.integer(-1, "i32")))
        return t.binary("arith.ori", rest, t.binary("arith.shli", t.cast("arith.extui", bits, "i32"), self._shift))


def load(text: Text, address: str, elem: str) -> Reg:
    """Load an element at this position in the text; return it in its type in memory."""
    return text.volatile_load(address, in_memory(elem), GLOBAL)


def wait(text: Text, expected: Reg, load: Callable[[], Reg]) -> None:
    """Load again and again until the element is as expected."""
    with text.nest("scf.while : () -> () {", "} do {"):
        different = text.compare("ne", load(), expected)
        text.line(f"scf.condition({different.name})")
    text.line("  scf.yield")
    text.line("}")


def change(t: Text, numeric: Numeric, kind: str, elem: str, address: str, value: Reg, compare: Reg | None) -> Reg:
    """Change an element as one step; return what was there before. Numbers are in their type in memory."""
    if kind == "exch" and WIDTHS[in_memory(elem)] < _LEAST_BITS:
        # Only tl.atomic_store has narrow types, and it returns nothing.
        t.store(value, address, GLOBAL, volatile=True)
        return value
    word = Word(t, address, elem)
    if WIDTHS[in_memory(elem)] >= _LEAST_BITS and kind in _NATIVE:
        return word.element(t.atomic(_NATIVE[kind], word.address, _bits(t, value), GLOBAL))
    if WIDTHS[in_memory(elem)] >= _LEAST_BITS and compare is not None:
        return word.element(t.compare_exchange(word.address, _bits(t, compare), _bits(t, value), GLOBAL))

    def attempt(seen: Reg) -> tuple[Reg, Reg]:
        new = apply_atomic(numeric, kind, elem, word.element(seen), value, compare)
        found = t.compare_exchange(word.address, seen, word.with_element(seen, new), GLOBAL)
        return t.compare("ne", found, seen), found

    return word.element(_until_done(t, t.volatile_load(word.address, word.elem, GLOBAL), attempt))


def _until_done(t: Text, first: Reg, attempt: Callable[[Reg], tuple[Reg, Reg]]) -> Reg:
    """Repeat an attempt, with what the one before it returned, as long as it returns true; return the last value."""
    result, seen, again = (Reg(t.fresh(), first.elem) for _ in range(3))
    with t.nest(
        f"{result.name} = scf.while ({seen.name} = {first.name}) : ({first.type}) -> ({first.type}) {{", "} do {"
    ):
        failed, found = attempt(seen)
        t.line(f"scf.condition({failed.name}) {found.name} : {found.type}")
    with t.nest(f"^bb0({again.name}: {again.type}):", "}"):
        t.line(f"scf.yield {again.name} : {again.type}")
    return result
