"""Writes the arithmetic of functions through a Builder."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..emit.builder import Builder
from ..emit.mlir import Reg
from .arithmetic import Arithmetic
from .table import FUNCTIONS
from .value import Value, integer


def call_function(text: Builder, name: str, elem: str, args: Sequence[Reg], result: str = "") -> Reg:
    """Call a function of table.py on scalars; the first call adds it to the module.

    Args:
        elem: the type of its floats, f32 or f64.
        result: the type of its result, if that is another.
    """

    def write(inner: Builder, parameters: Sequence[Reg]) -> Reg:
        def further(other: str, *more: Value) -> Value:
            return Value(inner, call_function(inner, other, elem, [number.reg for number in more]))

        m = Registers(inner, elem, further, branches=True)
        return FUNCTIONS[name](m, *(Value(inner, reg) for reg in parameters)).reg

    return text.call_own(f"__foundry_{name}_{elem}", args, result or elem, write)


def inline(text: Builder, name: str, elem: str, args: Sequence[Reg], root: Callable[[Reg], Reg]) -> Reg:
    """Write a function of table.py on scalars or vectors where it is used.

    Args:
        root: writes a square root, correctly rounded.
    """

    def further(other: str, *more: Value) -> Value:
        if other == "sqrt":
            return Value(text, root(more[0].reg))
        return FUNCTIONS[other](m, *more)

    m = Registers(text, elem, further, branches=False)
    return FUNCTIONS[name](m, *(Value(text, arg) for arg in args)).reg


class Registers(Arithmetic):
    """Writes a function's operations to a Builder."""

    def __init__(self, text: Builder, elem: str, further: Callable[..., Value], *, branches: bool) -> None:
        super().__init__(elem)
        self._text = text
        self._further = further
        self._branches = branches

    def _number(self, reg: Reg) -> Value:
        return Value(self._text, reg)

    def _cast(self, name: str, x: Value, elem: str) -> Value:
        return self._number(self._text.cast(f"arith.{name}", x.reg, elem))

    def equal(self, x: Value, y: Value | float) -> Value:
        return x.compare("oeq", "eq", y)

    def less_unsigned(self, x: Value, y: Value | int) -> Value:
        return x.compare("", "ult", y)

    def select(self, condition: Value, x: Value | float, y: Value | float) -> Value:
        if isinstance(x, Value):
            y = x.like(y)
        elif isinstance(y, Value):
            x = y.like(x)
        else:
            x, y = self.constant(x, condition), self.constant(y, condition)
        return self._number(self._text.select(condition.reg, x.reg, y.reg))

    def choose(self, condition: Value, x: Callable[[], Value], y: Callable[[], Value]) -> Value:
        if not self._branches:
            return self.select(condition, x(), y())
        return self._number(self._text.choose(condition.reg, lambda: x().reg, lambda: y().reg))

    def repeat(self, count: int | Value, values: Sequence[Value], body: Callable[..., Sequence[Value]]) -> list[Value]:
        t = self._text
        result = t.repeat(
            t.integer(count, "i32") if isinstance(count, int) else count.reg,
            [value.reg for value in values],
            lambda regs: [value.reg for value in body(*map(self._number, regs))],
        )
        return [self._number(reg) for reg in result]

    def bits(self, x: Value) -> Value:
        return self._cast("bitcast", x, f"i{self.width}")

    def number(self, bits: Value) -> Value:
        return self._cast("bitcast", bits, self.elem)

    def shift_right(self, x: Value, by: Value | int) -> Value:
        return x.binary("", "shrui", by)

    def divide(self, x: Value, y: Value) -> Value:
        return x.binary("", "divui", y)

    def remainder(self, x: Value, y: Value) -> Value:
        return x.binary("", "remui", y)

    def wide(self, x: Value, *, signed: bool = True) -> Value:
        return self._cast("extsi" if signed else "extui", x, "i64")

    def narrow(self, x: Value) -> Value:
        return self._cast("trunci", x, "i32")

    def to_float(self, x: Value) -> Value:
        return self._cast("sitofp", x, self.elem)

    def to_wide(self, x: Value) -> Value:
        return self._cast("fptosi", x, "i64")

    def constant(self, value: float, like: Value) -> Value:
        return self._number(self._text.float_constant(value, self.elem, like.reg.lanes))

    def word(self, value: int, like: Value, width: int = 32) -> Value:
        return self._number(integer(self._text, value, f"i{width}", like.reg.lanes))

    def root(self, x: Value) -> Value:
        return self._further("sqrt", x)

    def call(self, name: str, *args: Value) -> Value:
        return self._further(name, *args)
