"""The language in which functions are written: numbers with Python's operators, and further operations.

All operations are exact or correctly rounded by IEEE 754. So a function gives the same bits on every device, and tests
compute it with NumPy on the host.

Integers are signed: `>>` repeats the sign, `<` compares signed numbers, sums wrap around.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files

from .value import Value

Function = Callable[..., Value]


@cache
def coefficients(elem: str) -> dict[str, list[float]]:
    """Return the polynomials and constants for a type, f32 or f64: the coefficient of the highest power first.

    Where two numbers are a constant, they are its leading part and the rest. mpmath interpolated the polynomials in 60
    digits at Chebyshev's nodes; the lowest coefficients were rounded one after the other, and those above fitted again
    to what that left.
    """
    table: dict[str, list[float]] = json.loads((files(__package__) / "polynomials.json").read_text())[elem]
    return table


class Arithmetic(ABC):
    """Operations of a function on floats of one type.

    Attributes:
        elem: the type, f32 or f64.
        width: the type's width in bits; `bits` returns integers of this width.
        mantissa: the number of bits of its mantissa.
        bias: the bias of its exponent.
        sign: the integer in which only the sign bit is set.
    """

    def __init__(self, elem: str) -> None:
        self.elem = elem
        self.width, self.mantissa, self.bias = {"f32": (32, 23, 127), "f64": (64, 52, 1023)}[elem]
        self.sign = -(1 << (self.width - 1))
        self.infinity_bits = (2 * self.bias + 1) << self.mantissa
        # Adding this to a float rounds it to an integer, which is then in the lower bits of the sum.
        self.rounder = 1.5 * 2.0**self.mantissa
        self.rounder_bits = (self.bias + self.mantissa) << self.mantissa | 1 << (self.mantissa - 1)

    # Operations that depend on the kind of number.

    @abstractmethod
    def equal(self, x: Value, y: Value | float) -> Value:
        """Return whether two numbers are equal; a NaN equals nothing."""

    @abstractmethod
    def less_unsigned(self, x: Value, y: Value | int) -> Value:
        """Return whether x < y, both as unsigned integers."""

    @abstractmethod
    def select(self, condition: Value, x: Value | float, y: Value | float) -> Value:
        """Return x if a condition holds, else y."""

    @abstractmethod
    def choose(self, condition: Value, x: Callable[[], Value], y: Callable[[], Value]) -> Value:
        """Return x() or y() like select; where branches are possible, only one of the two is computed."""

    @abstractmethod
    def repeat(self, count: int | Value, values: Sequence[Value], body: Callable[..., Sequence[Value]]) -> list[Value]:
        """Return the values after `count` iterations of the body, which computes new values from the old.

        A count that is a Value is a 32-bit integer without lanes; below 0, it is like 0.
        """

    @abstractmethod
    def bits(self, x: Value) -> Value:
        """Return the bits of a float as an integer."""

    @abstractmethod
    def number(self, bits: Value) -> Value:
        """Return the float that has these bits."""

    @abstractmethod
    def shift_right(self, x: Value, by: Value | int) -> Value:
        """Return x >> by for an unsigned integer."""

    @abstractmethod
    def divide(self, x: Value, y: Value) -> Value:
        """Return the quotient of unsigned integers; y is not 0."""

    @abstractmethod
    def remainder(self, x: Value, y: Value) -> Value:
        """Return the remainder of unsigned integers; y is not 0."""

    @abstractmethod
    def wide(self, x: Value, *, signed: bool = True) -> Value:
        """Extend a 32-bit integer to 64 bits."""

    @abstractmethod
    def narrow(self, x: Value) -> Value:
        """Return the lower 32 bits of a 64-bit integer."""

    @abstractmethod
    def to_float(self, x: Value) -> Value:
        """Convert a signed integer to a float, rounded to nearest."""

    @abstractmethod
    def to_wide(self, x: Value) -> Value:
        """Convert a float that is an integer below 2^63 to a 64-bit integer."""

    @abstractmethod
    def constant(self, value: float, like: Value) -> Value:
        """Return a float constant with as many lanes as another number."""

    @abstractmethod
    def word(self, value: int, like: Value, width: int = 32) -> Value:
        """Return an integer constant with as many lanes as another number."""

    @abstractmethod
    def root(self, x: Value) -> Value:
        """Return the square root, correctly rounded."""

    @abstractmethod
    def call(self, name: str, *args: Value) -> Value:
        """Return the result of another function of table.py."""

    # Operations composed of those above.

    def pick(self, f32: float, f64: float) -> float:
        """Return the number for the type."""
        return f32 if self.elem == "f32" else f64

    def polynomial(self, x: Value, name: str) -> Value:
        """Evaluate a polynomial of polynomials.json, by Horner's rule."""
        first, *rest = coefficients(self.elem)[name]
        if not rest:
            return self.constant(first, x)
        result = x * first
        for value in rest[:-1]:
            result = (result + value) * x
        return result + rest[-1]

    def split(self, name: str) -> tuple[float, float]:
        """Return a constant as the sum of two numbers; the first has few bits if the name says so."""
        high, low = coefficients(self.elem)[name]
        return high, low

    def is_nan(self, x: Value) -> Value:
        return self.less_unsigned(self.word(self.infinity_bits, x, self.width), self.bits(x) & ~self.sign)

    def absolute(self, x: Value) -> Value:
        return self.number(self.bits(x) & ~self.sign)

    def sign_of(self, x: Value) -> Value:
        """Return the sign bit in its place; all other bits are 0."""
        return self.bits(x) & self.sign

    def with_sign(self, x: Value, sign: Value) -> Value:
        """Return a number that is not negative, with the sign that `sign_of` returned."""
        return self.number(self.bits(x) | sign)

    def flip_sign(self, x: Value, sign: Value) -> Value:
        """Negate a number if the sign bit is set in `sign`."""
        return self.number(self.bits(x) ^ sign)

    def negative(self, x: Value) -> Value:
        return self.number(self.bits(x) ^ self.sign)

    def power_of_two(self, exponent: Value) -> Value:
        """Return 2^exponent, for an integer in the range of normal numbers."""
        return self.number((exponent + self.bias) << self.mantissa)

    def scale(self, x: Value, exponent: Value) -> Value:
        """Return x * 2^exponent, for exponents up to twice those of normal numbers; exact if the result is normal."""
        half = exponent >> 1
        return x * self.power_of_two(half) * self.power_of_two(exponent - half)

    def nearest(self, x: Value) -> tuple[Value, Value]:
        """Return the nearest integer of |x| < 2^21, as a float and as an integer."""
        moved = x + self.rounder
        return moved - self.rounder, self.bits(moved) - self.rounder_bits

    def upper(self, x: Value) -> Value:
        """Clear the lower half of x's mantissa: a product of two such numbers is exact."""
        return self.number(self.bits(x) & -(1 << (12 if self.elem == "f32" else 27)))

    def upper_product(self, x: Value, y: Value) -> Value:
        """Return the upper 64 bits of the product of two unsigned 64-bit integers."""
        x_low, x_high = x & 0xFFFFFFFF, self.shift_right(x, 32)
        y_low, y_high = y & 0xFFFFFFFF, self.shift_right(y, 32)
        middle = x_low * y_high + self.shift_right(x_low * y_low, 32)
        other = x_high * y_low + (middle & 0xFFFFFFFF)
        return x_high * y_high + self.shift_right(middle, 32) + self.shift_right(other, 32)

    def any_nan(self, result: Value, *args: Value) -> Value:
        """Return `result`, or NaN if an argument is NaN."""
        for arg in args:
            result = self.select(self.is_nan(arg), arg + arg, result)
        return result
