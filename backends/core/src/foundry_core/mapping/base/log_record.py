"""What a record of the launch's log consists of (foundry_core/log.py)."""

from __future__ import annotations

from collections.abc import Iterable

from ...emit.builder import Builder
from ...emit.mlir import GLOBAL, WIDTHS, Reg
from ...log import CAPACITY, FAILED, FAILURE_CAPACITY, FIRST_FAILURE, FIRST_PRINTED, PRINTED

WORD = "i64"
# For the records of a kind: the words of the log with their number, their capacity, and the first of them.
OF_VALUES = PRINTED, CAPACITY, FIRST_PRINTED
OF_FAILURES = FAILED, FAILURE_CAPACITY, FIRST_FAILURE


def record_words(t: Builder, site: int, index: Reg, ids: Iterable[Reg], value: Reg | None) -> tuple[Reg, ...]:
    """Return the words of the record of one element; `ids` are those of the program along x, y and z."""
    x, y, z = (as_word(t, each) for each in ids)
    pairs = _pair(t, t.integer(site, WORD), as_word(t, index)), _pair(t, x, y)
    return *pairs, z, t.integer(0, WORD) if value is None else as_word(t, value)


def as_word(t: Builder, x: Reg) -> Reg:
    """Return the bits of a number or an address as a word."""
    if x.elem == GLOBAL:
        x = t.cast("llvm.ptrtoint", x, t.index)
    elif x.is_float:
        x = t.cast("arith.bitcast", x, f"i{WIDTHS[x.elem]}")
    return t.cast("arith.extui", x, WORD)


def _pair(t: Builder, low: Reg, high: Reg) -> Reg:
    return t.binary("arith.ori", low, t.binary("arith.shli", high, t.integer(32, WORD)))


def invert_condition(t: Builder, condition: Reg) -> Reg:
    return t.binary("arith.xori", condition, t.integer(1, "i1", condition.lanes))
