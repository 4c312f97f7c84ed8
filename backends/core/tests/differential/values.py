"""Compute a kernel in NumPy, with what Triton leaves open: the reference of the differential tests.

A value has three parts for each element. `data` is the result if every operation rounds once, in its own type. `error`
is the allowed distance from it. Only these rules allow one:

- A product that is added may enter the sum unrounded (a fused multiply-add: TRITON_DEFAULT_FP_FUSION is on). `fused`
  is the product's rounding error. It becomes part of the error when an addition uses the product.
- A sum over a tile may be taken in any order: each partial sum is rounded, and none is larger than the sum of the
  absolute values. Partial sums and products of narrow floats are rounded to f32 only, and the result once more.
- A math function is as exact as OpenCL promises (OpenCL C 3.0, "ULP values").
- The minimum or maximum of 0.0 and -0.0 may be either of them.

Errors then propagate: a result of inexact operands may also be rounded to the other side, hence one ulp more. `open` is
true where nothing is promised: integers of floats beyond their range, lanes that a mask without `other` leaves out, and
the results of a step on an inexact number if the step's decision is within the number's error (a comparison, floor, a
cast to an integer, an overflow). Where error is 0 and `open` is false, the result must be equal, including the sign of
a zero. All NaNs are equal to each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
from foundry_core.ops.limits import ULPS
from foundry_core.scalars import ROWS

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Type:
    """An element type: its name in this package, in triton.language and in NumPy."""

    name: str
    triton: str
    numpy: np.dtype[Any]
    kind: str  # b, i, u or f
    bits: int

    def __repr__(self) -> str:
        return self.name


def _types() -> dict[str, Type]:
    found = {"i1": Type("i1", "int1", np.dtype(bool), "b", 1)}
    for bits in (8, 16, 32, 64):
        found[f"i{bits}"] = Type(f"i{bits}", f"int{bits}", np.dtype(f"i{bits // 8}"), "i", bits)
        found[f"u{bits}"] = Type(f"u{bits}", f"uint{bits}", np.dtype(f"u{bits // 8}"), "u", bits)
    for bits in (16, 32, 64):
        found[f"f{bits}"] = Type(f"f{bits}", f"float{bits}", np.dtype(f"f{bits // 8}"), "f", bits)
    found["bf16"] = Type("bf16", "bfloat16", np.dtype(ml_dtypes.bfloat16), "f", 16)
    return found


TYPES = _types()
I1, I32, F32, F64 = TYPES["i1"], TYPES["i32"], TYPES["f32"], TYPES["f64"]
INTEGERS = [each for each in TYPES.values() if each.kind in "iu"]
FLOATS = [each for each in TYPES.values() if each.kind == "f"]


@dataclass(frozen=True)
class Value:
    """Elements of a type; see the module's docstring. `error` and `fused` are of float64, `open` is of bool."""

    type: Type
    data: Array
    error: Array = field(default_factory=lambda: np.zeros(()))
    fused: Array = field(default_factory=lambda: np.zeros(()))
    open: Array = field(default_factory=lambda: np.zeros((), bool))

    def full(self, name: str) -> Array:
        return np.broadcast_to(getattr(self, name), self.data.shape)


def largest(type: Type) -> float:
    return float(ml_dtypes.finfo(type.numpy).max)


def ulp(type: Type, x: Array) -> Array:
    """Return the distance from a number to the next larger one of a type, at each element of a float64 array."""
    info = ml_dtypes.finfo(type.numpy)
    with np.errstate(all="ignore"):
        least = float(info.smallest_normal)
        _, exponent = np.frexp(np.clip(np.abs(np.nan_to_num(x)), least, largest(type)))
        return np.ldexp(1.0, exponent - 1 - info.nmant)


def wide(value: Value) -> Array:
    return value.data.astype(np.float64)


def number(type: Type, literal: Any) -> Value:
    with np.errstate(all="ignore"):
        return Value(type, np.asarray(literal).astype(type.numpy))


def _settled(type: Type, data: Array, error: Array, open: Array, uncertain: Array, fused: Any = 0.0) -> Value:
    """Return a value of inexact operands. It is open where it may be a number as well as an infinity or a NaN."""
    x = data.astype(np.float64)
    with np.errstate(all="ignore"):
        border = uncertain & ~(np.abs(x) + error < largest(type))
    error = np.where(uncertain & ~border, error, 0.0)
    return Value(type, data, error, np.broadcast_to(np.asarray(fused, np.float64), np.shape(x)), open | border)


def _loosened(value: Value) -> Array:
    return np.asarray(value.error + value.fused)


def arithmetic(sign: str, a: Value, b: Value) -> Value:
    """Return +, -, * or / of two floats of a type."""
    function = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}[sign]
    kind = a.type
    ea, eb = (_loosened(a), _loosened(b)) if sign in "+-" else (a.error, b.error)
    with np.errstate(all="ignore"):
        data = function(a.data, b.data).astype(kind.numpy)
        x, y, z = wide(a), wide(b), data.astype(np.float64)
        uncertain = (ea > 0) | (eb > 0) | np.zeros(z.shape, bool)
        if sign in "+-":
            bound = ea + eb
        elif sign == "*":
            bound = np.abs(x) * eb + np.abs(y) * ea + ea * eb
        else:
            bound = (ea * np.abs(y) + np.abs(x) * eb) / (np.abs(y) * np.maximum(np.abs(y) - eb, 0.0))
            bound = np.where(np.abs(y) <= eb, np.inf, bound)
        bound = np.where(uncertain, np.nan_to_num(bound, nan=np.inf, posinf=np.inf), 0.0)
        error = bound + np.where(uncertain, ulp(kind, np.abs(z) + np.where(np.isfinite(bound), bound, 0.0)), 0.0)
        # An operand that is certainly a NaN makes the result a NaN.
        certain = (np.isnan(x) & ~(ea > 0)) | (np.isnan(y) & ~(eb > 0))
        fused: Array = np.zeros(z.shape)
        if sign == "*":
            fused = np.abs(x * y - z) if kind.bits < 64 else np.where((x == 0) | (y == 0), 0.0, ulp(kind, z))
            overflowed = np.isinf(z) & np.isfinite(x) & np.isfinite(y)
            fused = np.where(np.isfinite(z), fused, np.where(overflowed, np.inf, 0.0))
    return _settled(kind, data, error, a.open | b.open, uncertain & ~certain, fused)


def fused(a: Value, b: Value, c: Value) -> Value:
    """Return a * b + c, rounded once."""
    kind = a.type
    with np.errstate(all="ignore"):
        if kind.bits == 64:
            data = np.vectorize(_fma, otypes=[np.float64])(a.data, b.data, c.data)
        else:  # The product is exact in f64; its sum is rounded twice, by at most one ulp to the wrong side.
            data = (wide(a) * wide(b) + wide(c)).astype(kind.numpy)
        z = data.astype(np.float64)
        plain = (a.error == 0) & (b.error == 0) & (c.error == 0) & (c.fused == 0)
        bound = np.abs(wide(a)) * b.error + np.abs(wide(b)) * a.error + a.error * b.error + _loosened(c)
        bound = np.nan_to_num(bound, nan=np.inf, posinf=np.inf)
        error = np.where(plain & (z == 0), 0.0, np.where(plain, 0.0, bound) + ulp(kind, z))
        certain = np.isnan(wide(a)) | np.isnan(wide(b)) | np.isnan(wide(c)) | (plain & ~np.isfinite(z))
        overflows = np.isfinite(wide(a)) & np.isfinite(wide(b)) & np.isfinite(wide(c)) & ~np.isfinite(z)
    return _settled(kind, data, error, a.open | b.open | c.open, (error > 0) & (~certain | overflows))


def _fma(x: float, y: float, z: float) -> float:
    """Return x * y + z, computed with integers. math.fma needs Python 3.13, and raises an error on overflow."""
    if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(z)):
        return float(np.float64(x) * np.float64(y) + np.float64(z))
    from fractions import Fraction

    exact = Fraction(x) * Fraction(y) + Fraction(z)
    if exact == 0:
        return float(np.float64(x) * np.float64(y) + np.float64(z))
    try:
        return float(exact)
    except OverflowError:
        return math.copysign(math.inf, exact)


def fractional_remainder(a: Value, b: Value) -> Value:
    """Return a % b of floats, which is exact."""
    with np.errstate(all="ignore"):
        data = np.fmod(a.data, b.data)
    return Value(a.type, data, open=a.open | b.open | (a.error > 0) | (b.error > 0))


def negated(a: Value) -> Value:
    """Return -a with the sign changed, also of zero. Triton until 3.6 subtracts from 0, which makes 0.0 of 0.0."""
    return replace(a, data=np.negative(a.data))


def absolute(a: Value) -> Value:
    with np.errstate(all="ignore"):
        return replace(a, data=np.abs(a.data))


def chosen(function: str, a: Value, b: Value, propagate: bool = False) -> Value:
    """Return the minimum or the maximum of two values."""
    if a.type.kind != "f":
        return Value(a.type, (np.minimum if function == "min" else np.maximum)(a.data, b.data), open=a.open | b.open)
    pick = {("min", False): np.fmin, ("max", False): np.fmax, ("min", True): np.minimum, ("max", True): np.maximum}
    with np.errstate(all="ignore"):
        x, y = wide(a), wide(b)
        data = pick[function, propagate](x, y).astype(a.type.numpy)
        zeros = (x == 0) & (y == 0) & (np.signbit(x) != np.signbit(y))
        error = np.where(np.isnan(x), b.error, np.where(np.isnan(y), a.error, np.maximum(a.error, b.error)))
        error = np.where(zeros, np.maximum(error, ulp(a.type, x * 0)), np.where(np.isnan(data.astype(float)), 0, error))
    return Value(a.type, data, error, np.maximum(a.fused, b.fused), a.open | b.open)


def selected(condition: Value, a: Value, b: Value) -> Value:
    c = condition.data
    parts = {name: np.where(c, getattr(a, name), getattr(b, name)) for name in ("data", "error", "fused", "open")}
    parts["open"] = parts["open"] | condition.open
    return Value(a.type, **parts)


def compared(sign: str, a: Value, b: Value) -> Value:
    functions = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal}
    with np.errstate(all="ignore"):
        data = np.not_equal(a.data, b.data) if sign == "!=" else functions[sign](a.data, b.data)
        open = a.open | b.open
        if a.type.kind == "f":
            reach = a.error + b.error
            open = open | ((reach > 0) & ~(np.abs(wide(a) - wide(b)) > reach) & ~np.isnan(wide(a) - wide(b)))
    return Value(I1, np.asarray(data, bool), open=open)


def integral(sign: str, a: Value, b: Value) -> Value:
    """Return an operation on integers or booleans (only & | ^ for booleans). Divisors and shifts are in range."""
    kind, x, y = a.type, a.data, b.data
    with np.errstate(all="ignore"):
        if sign in ("//", "%"):
            # Towards zero, as in C. np.fmod does this for integers.
            rest = np.fmod(x, y)
            data = rest if sign == "%" else (x - rest) // y
        elif sign == "umulhi":
            data = _upper_half(kind, x, y)
        else:
            data = {
                "+": np.add,
                "-": np.subtract,
                "*": np.multiply,
                "&": np.bitwise_and,
                "|": np.bitwise_or,
                "^": np.bitwise_xor,
                "<<": np.left_shift,
                ">>": np.right_shift,
            }[sign](x, y)
    return Value(kind, data.astype(kind.numpy), open=a.open | b.open)


def _upper_half(kind: Type, x: Array, y: Array) -> Array:
    unsigned = np.dtype(f"u{kind.bits // 8}")
    p, q = (np.asarray(each).astype(unsigned).astype(object) for each in (x, y))
    return np.asarray((p * q) >> kind.bits, dtype=object).astype(unsigned).astype(kind.numpy)


def inverted(a: Value) -> Value:
    return replace(a, data=~a.data)


def _nearest(x: Array, kind: Type) -> Array:
    """Round float64 once to the nearest number, ties to even. ml_dtypes rounds twice, through f32."""
    info = ml_dtypes.finfo(kind.numpy)
    _, exponent = np.frexp(x)
    step = np.exp2(np.maximum(exponent - 1, info.minexp).astype(np.float64) - info.nmant)
    rounded = np.where(np.isfinite(x), np.rint(x / step) * step, x)
    rounded = np.where(np.abs(rounded) > largest(kind), np.copysign(np.inf, x), rounded)
    return np.copysign(rounded, x).astype(kind.numpy)


def _odd(a: Value) -> Array:
    """Return integers as float64, rounded to odd if they have more than 53 bits: rounding that again rounds once."""
    x = a.data
    if a.type.bits < 64:
        return wide(a)
    low = x & x.dtype.type(0xFFF)
    large = (x > 2**53) | (x < -(2**53) if a.type.kind == "i" else False)
    return np.where(large & (low != 0), (x - low) | x.dtype.type(0x1000), x).astype(np.float64)


# fp8 types by Triton's names, without fp8e4b15, which ml_dtypes does not have.
FP8 = {row.name.replace("fp", "float"): getattr(ml_dtypes, row.dtype) for row in ROWS if row.dtype[:6] == "float8"}


def narrowed(a: Value, to: Type, kind: Any, rounding: str) -> Value:
    """Return floats rounded to the numbers of a narrower type `kind`, in the type `to`; 8 bits saturate."""
    info = ml_dtypes.finfo(kind)
    most, x = float(info.max), wide(a)
    with np.errstate(all="ignore"):
        _, exponent = np.frexp(x)
        step = np.exp2(np.maximum(exponent - 1, info.minexp).astype(np.float64) - info.nmant)
        found = np.where(np.isfinite(x), (np.rint if rounding == "rtne" else np.trunc)(x / step) * step, x)
        is_fp8 = info.bits == 8
        limited = np.isfinite(x) | is_fp8
        found = np.where(limited & (np.abs(found) > most), np.copysign(most, x), found)
        found = np.where(
            (found == 0) & ~np.signbit(np.float64(-0.0).astype(kind).astype(np.float64)), 0.0, np.copysign(found, x)
        )
        error = np.where(a.error > 0, a.error + 2 * np.where(np.isfinite(x), step, most), 0.0)
        # An inexact number near the largest finite one may be an infinity.
        open = a.open | ((a.error > 0) & ~(np.abs(x) + a.error < most)) if not is_fp8 else a.open
    return Value(to, found.astype(to.numpy), np.where(np.isnan(x), 0.0, error), open=open)


def cast(a: Value, to: Type) -> Value:
    """Cast as `.to` does: integers keep low bits, floats lose their fraction, numbers become the nearest float."""
    with np.errstate(all="ignore"):
        if to.kind == "b":
            open = a.open
            if a.type.kind == "f":
                open = open | ((a.error > 0) & (np.abs(wide(a)) <= a.error))
            return Value(to, a.data.astype(bool) if a.type.kind != "f" else wide(a) != 0, open=open)
        if a.type.kind != "f":
            if to.kind != "f":
                return Value(to, a.data.astype(to.numpy), open=a.open)
            return Value(to, _nearest(_odd(a), to) if to.bits == 16 else a.data.astype(to.numpy), open=a.open)
        if to.kind == "f":
            if to == a.type:
                return a
            data = a.data.astype(to.numpy) if to.bits > 16 else _nearest(wide(a), to)
            exact = to.bits > a.type.bits
            uncertain = np.asarray(a.error > 0)
            error = a.error + (0.0 if exact else ulp(to, np.abs(wide(a)) + np.where(uncertain, a.error, 0.0)))
            # A wider type may also keep an unrounded product.
            return _settled(to, data, error, a.open, uncertain & ~np.isnan(wide(a)), a.fused if exact else 0.0)
        low, high = (float(end(to)) for end in (_least, _most))
        x = np.trunc(wide(a))
        inside = (x >= low) & (x < high)
        crossed = (a.error > 0) & (np.trunc(wide(a) - a.error) != np.trunc(wide(a) + a.error))
        return Value(to, np.where(inside, x, 0).astype(to.numpy), open=a.open | ~inside | crossed)


def _least(kind: Type) -> int:
    return -(1 << (kind.bits - 1)) if kind.kind == "i" else 0


def _most(kind: Type) -> int:
    """Return the first number beyond the largest one."""
    return 1 << (kind.bits - (kind.kind == "i"))


_erf = np.vectorize(math.erf, otypes=[np.float64])


def _rsqrt(x: Array) -> Array:
    return np.asarray(1 / np.sqrt(x))


FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "sqrt": np.sqrt,
    "sqrt_rn": np.sqrt,
    "rsqrt": _rsqrt,
    "sin": np.sin,
    "cos": np.cos,
    "erf": _erf,
}


def function(name: str, a: Value) -> Value:
    """Return one of FUNCTIONS, floor or ceil. NumPy computes in float64, so f64 gets one ulp more than its limit."""
    kind = a.type
    with np.errstate(all="ignore"):
        if name in ("floor", "ceil"):
            whole = np.floor if name == "floor" else np.ceil
            moved = (a.error > 0) & (whole(wide(a) - a.error) != whole(wide(a) + a.error))
            return Value(kind, whole(a.data), np.where(moved, 0.0, 0.0), open=a.open | moved)
        x = wide(a)
        exact = FUNCTIONS[name](x)
        data = exact.astype(kind.numpy)
        ends = [FUNCTIONS[name](x - a.error), FUNCTIONS[name](x + a.error)]
        if name in ("sin", "cos"):
            spread = np.asarray(a.error)
            lost = np.zeros(x.shape, bool)
        else:
            spread = np.maximum(*(np.abs(end - exact) for end in ends))
            lost = (a.error > 0) & ~(np.isfinite(ends[0]) & np.isfinite(ends[1]) & np.isfinite(exact)) & ~np.isnan(x)
        spread = np.where(a.error > 0, np.nan_to_num(spread), 0.0)
        step = ulp(kind, np.abs(exact) + spread)
        slack = ULPS[name] + 1 if name in ULPS else 0
        error = spread + np.where(a.error > 0, slack + 1, slack) * step
        # The function is exact at these arguments. Infinities and NaN have no error.
        error = np.where(np.isfinite(exact) & (slack > 0) | (a.error > 0), error, 0.0)
        uncertain = np.asarray((error > 0) & np.isfinite(exact))
        uncertain &= ~np.isnan(x)
    return _settled(kind, data, error, a.open | lost, uncertain)


def reduced(name: str, a: Value, axis: int, partial: Type | None = None) -> Value:
    """Return tl.sum, tl.max, tl.min, tl.xor_sum, tl.argmax or tl.argmin over an axis, which is kept.

    Args:
        partial: the type of partial sums; by default f32 or wider.
    """
    open = np.any(a.full("open"), axis=axis, keepdims=True)
    with np.errstate(all="ignore"):
        if name in ("argmax", "argmin"):
            pick = np.argmax if name == "argmax" else np.argmin
            data = np.expand_dims(pick(a.data, axis=axis), axis).astype(np.int32)
            if a.type.kind == "f":
                # The order of NaN is open, and so is which of two numbers is larger if their errors overlap.
                best = np.take_along_axis(wide(a), data.astype(np.int64), axis)
                slack = a.full("error") + np.max(a.full("error"), axis=axis, keepdims=True)
                near = (a.full("error") > 0) & (np.abs(wide(a) - best) <= slack)
                open = open | np.any(np.isnan(wide(a)) | near, axis=axis, keepdims=True)
            return Value(I32, data, open=open)
        if name == "xor_sum":
            return Value(a.type, np.bitwise_xor.reduce(a.data, axis=axis, keepdims=True), open=open)
        if name in ("max", "min"):
            return _extreme(name, a, axis, open)
        if a.type.kind != "f":
            return Value(a.type, np.add.reduce(a.data, axis=axis, keepdims=True, dtype=a.type.numpy), open=open)
        x = wide(a)
        exact = np.sum(x, axis=axis, keepdims=True)
        data = _nearest(exact, a.type) if a.type.bits == 16 else exact.astype(a.type.numpy)
        partial = partial or (F32 if a.type.bits < 32 else a.type)
        total = np.sum(np.abs(x), axis=axis, keepdims=True)
        loose = np.sum(a.full("error") + a.full("fused"), axis=axis, keepdims=True)
        count = x.shape[axis]
        # count - 1 additions, each of a number of at most `total`. If both zeros occur, the sign depends on the order.
        error = loose + (count - 1) * ulp(partial, total + loose) if count > 1 else loose
        uncertain = np.isfinite(total) & (error > 0)
        beyond = np.isfinite(total) & (total + error >= largest(partial)) & (count > 1)
        # An infinity among the addends stays, even if other sums overflow, unless the opposite infinity can arise.
        finite = np.sum(np.where(np.isfinite(x), np.abs(x), 0.0), axis=axis, keepdims=True)
        beyond |= np.isinf(data.astype(np.float64)) & (finite + loose >= largest(partial))
        beyond |= ~np.isfinite(loose)
        error = error + np.where((partial != a.type) & (error > 0), ulp(a.type, np.abs(exact) + error), 0.0)
    return _settled(a.type, data, error, open | beyond, uncertain)


def multiplied(a: Value, axis: int) -> Value:
    """Return the product over an axis, which is kept, of numbers so near to 1 that no partial product overflows."""
    x, count = wide(a), a.data.shape[axis]
    exact = np.prod(x, axis=axis, keepdims=True)
    data = _nearest(exact, a.type) if a.type.bits == 16 else exact.astype(a.type.numpy)
    loose = np.sum(a.full("error") / np.abs(x), axis=axis, keepdims=True)
    step = float(ml_dtypes.finfo(F32.numpy if a.type.bits < 32 else a.type.numpy).eps)
    error = np.abs(exact) * np.expm1(loose + (count - 1) * step)
    error = error + np.where((a.type.bits < 32) & (error > 0), ulp(a.type, np.abs(exact) + error), 0.0)
    return Value(a.type, data, error, open=np.any(a.full("open"), axis=axis, keepdims=True))


def _extreme(name: str, a: Value, axis: int, open: Array) -> Value:
    if a.type.kind != "f":
        reduce: np.ufunc = np.maximum if name == "max" else np.minimum
        return Value(a.type, reduce.reduce(a.data, axis=axis, keepdims=True), open=open)
    reduce = np.fmax if name == "max" else np.fmin
    x = wide(a)
    data = reduce.reduce(x, axis=axis, keepdims=True)
    error = np.max(a.full("error"), axis=axis, keepdims=True)
    error = np.where(data == 0, np.maximum(error, ulp(a.type, data * 0)), np.where(np.isnan(data), 0.0, error))
    return Value(a.type, data.astype(a.type.numpy), error, open=open)


def accumulated(name: str, a: Value) -> Value:
    """Return what atomic operations on floats leave in an element: `add`, `max` or `min` of all rows, in any order."""
    found = reduced("sum" if name == "add" else name, a, 0, a.type)
    # Triton compares the bits of floats, so a NaN may be larger or smaller than a number.
    open = np.any(np.isnan(wide(a)), axis=0, keepdims=True) & (name != "add")
    return Value(a.type, found.data[0], found.full("error")[0], open=(found.open | open)[0])


def combined(name: str, a: Value, axis: int, reverse: bool, *, keep: bool) -> Value:
    """Return a scan of integers, or of pairs (a, a + 1) of which the second result is taken.

    Args:
        name: the function: add, multiply, or one of program.FUNCTIONS.
        keep: whether all results are returned, or only the last one, as of a reduction.
    """
    turn = -1 if reverse else 1
    rows, open = (np.moveaxis(part, axis, 0)[::turn] for part in (a.data, a.full("open")))
    results, second = [rows[0]], [rows[0] + rows.dtype.type(1)]
    for row in rows[1:]:
        before = results[-1]
        match name:
            case "add":
                results.append(before + row)
            case "multiply":
                results.append(before * row)
            case "less":
                results.append(before * rows.dtype.type(2) - row)
            case "linear":
                results.append(before * row)
                second.append(second[-1] * row + (row + rows.dtype.type(1)))
    found = [np.array(second if name == "linear" else results), np.logical_or.accumulate(open, axis=0)]
    data, spread = (np.moveaxis(each[::turn] if keep else each[-1:], 0, axis) for each in found)
    return Value(a.type, data.astype(a.type.numpy), open=spread)


def ordered(name: str, a: Value, axis: int, reverse: bool, *, keep: bool) -> Value:
    """Return running maxima (`most`, `first`) or minima (`least`) of integers, or the first places of the maxima.

    Args:
        keep: whether all results are returned, or only the last one, as of a reduction.
    """
    turn = -1 if reverse else 1
    rows, open = (np.moveaxis(part, axis, 0)[::turn] for part in (a.data, a.full("open")))
    best = (np.minimum if name == "least" else np.maximum).accumulate(rows, axis=0)
    if name == "place":
        # The place of the largest so far; of equal ones the lowest, which is the last that a reversed scan meets.
        index = np.arange(len(rows), dtype=np.int32)[::turn].reshape(-1, *[1] * (rows.ndim - 1))
        found = [np.broadcast_to(index[0], rows[0].shape)]
        for row, before, place in zip(rows[1:], best, index[1:], strict=False):
            found.append(np.where((row > before) | ((row == before) & (place < found[-1])), place, found[-1]))
        best = np.array(found, np.int32)
    data, spread = (
        np.moveaxis(each[::turn] if keep else each[-1:], 0, axis)
        for each in (best, np.logical_or.accumulate(open, axis=0))
    )
    return Value(I32 if name == "place" else a.type, data, open=spread)


def sorted_rows(a: Value) -> Value:
    """Return tl.sort of integers."""
    open = np.broadcast_to(np.any(a.full("open"), axis=-1, keepdims=True), a.data.shape)
    return Value(a.type, np.sort(a.data, axis=-1), open=open)


def counted(a: Value) -> Value:
    """Return tl.histogram of as many bins as there are elements."""
    inside = (a.data >= 0) & (a.data < a.data.size)
    data = np.bincount(a.data[inside], minlength=a.data.size).astype(np.int32)
    return Value(I32, data, open=np.broadcast_to(np.any(a.full("open")), data.shape))


def differences(found: Array, expected: Value) -> Array:
    """Return where a result is not as required."""
    kind, open = expected.type, expected.full("open")
    if kind.kind != "f":
        return np.asarray((found != expected.data) & ~open)
    x, y = found.astype(np.float64), wide(expected)
    with np.errstate(all="ignore"):
        same = (x == y) & ((np.signbit(x) == np.signbit(y)) | (expected.error > 0)) | (np.isnan(x) & np.isnan(y))
        near = (expected.error > 0) & (np.abs(x - y) <= expected.error)
    return np.asarray(~(same | near | open))
