"""Functions of Triton's libdevice module without an operation in arith, math or tt (elementwise.py has the others).

Those that exist in OpenCL C call that function, with the errors that OpenCL allows (numeric.Numeric.library). The rest
is written here in plain arithmetic. A function that is in neither table is refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ..emit.builder import count_bits
from ..emit.mlir import WIDTHS, Reg
from ..functions.table import F32_ONLY, FUNCTIONS
from .numeric import Numeric

_DIRECTED = re.compile(r"^(?:[fd](add|sub|mul|div|rcp|sqrt|rsqrt)|(fma)f?)(?=_r[zdun]$)")
_FROM_INTEGER = re.compile(r"^(int|uint|ll|ull)2(float|double)(_r[zdu])$")


def call_libdevice(numeric: Numeric, symbol: str, args: Sequence[Reg]) -> Reg | None:
    """Return the result of a function on registers with the same number of lanes; None if the function is unknown."""
    name = symbol.removeprefix("__nv_")
    if name in _WHOLE:
        return _WHOLE[name](numeric, args)
    single = any(arg.elem == "f32" for arg in args)
    if single:
        name = name.removesuffix("f")
    if name in _OPENCL:
        return numeric.library(name, args)
    if name in _FUNCTIONS:
        return _FUNCTIONS[name](numeric, args)
    if converted := _FROM_INTEGER.match(name):
        return numeric.own(converted[1] + converted[3], args, "f32" if converted[2] == "float" else "f64")
    # fadd_rd on f32 and dadd_rd on f64; fmaf_rd and fma_rd.
    name = _DIRECTED.sub(r"\1\2", name)
    return numeric.own(name, args) if name in FUNCTIONS and (single or name not in F32_ONLY) else None


def _bits(n: Numeric, x: Reg) -> Reg:
    return n.text.cast("arith.bitcast", x, f"i{WIDTHS[x.elem]}")


def _like(n: Numeric, value: float, x: Reg) -> Reg:
    """Return a constant of the type of a register."""
    if x.is_float:
        return n.text.float_constant(value, x.elem, x.lanes)
    return n.text.integer(int(value), x.elem, x.lanes)


def _flag(n: Numeric, condition: Reg) -> Reg:
    """Convert a condition to C's 1 or 0."""
    return n.text.cast("arith.extui", condition, "i32")


# From floats to flags.


def _is_nan(n: Numeric, args: Sequence[Reg]) -> Reg:
    return _flag(n, n.text.compare("uno", args[0], args[0]))


def _is_infinite(n: Numeric, args: Sequence[Reg]) -> Reg:
    return _flag(n, n.text.compare("oeq", n.absolute(args[0]), _like(n, float("inf"), args[0])))


def _is_finite(n: Numeric, args: Sequence[Reg]) -> Reg:
    return _flag(n, n.text.compare("olt", n.absolute(args[0]), _like(n, float("inf"), args[0])))


def _sign_bit(n: Numeric, args: Sequence[Reg]) -> Reg:
    bits = _bits(n, args[0])
    return _flag(n, n.text.compare("slt", bits, _like(n, 0, bits)))


# From floats to floats.


def _with_power(name: str) -> Callable[[Numeric, Sequence[Reg]], Reg]:
    """Return a writer of OpenCL's function of a float and an integer."""
    return lambda n, args: n.library(name, args)


def _reciprocal(n: Numeric, x: Reg) -> Reg:
    return n.text.binary("arith.divf", _like(n, 1.0, x), x)


def _saturate(n: Numeric, args: Sequence[Reg]) -> Reg:
    """Clamp to [0, 1]; NaN becomes 0."""
    x, zero, one = args[0], _like(n, 0.0, args[0]), _like(n, 1.0, args[0])
    positive = n.text.select(n.text.compare("ogt", x, zero), x, zero)
    return n.text.select(n.text.compare("olt", positive, one), positive, one)


def _approximate_reciprocal(n: Numeric, args: Sequence[Reg]) -> Reg:
    """Write the reciprocal as PTX does (rcp.approx.ftz.f64): of the upper halves, and 0 in place of subnormals."""
    t, x = n.text, args[0]
    smallest = _like(n, 2.0**-1022, x)

    def coarse(value: Reg) -> Reg:
        bits = _bits(n, value)
        sign = t.binary("arith.andi", bits, _like(n, -(1 << 63), bits))
        upper = t.binary("arith.andi", bits, _like(n, -(1 << 32), bits))
        kept = t.select(t.compare("olt", n.absolute(value), smallest), sign, upper)
        # A NaN stays one.
        return t.select(t.compare("uno", value, value), value, t.cast("arith.bitcast", kept, "f64"))

    return coarse(_reciprocal(n, coarse(x)))


def _to_single(mode: str) -> Callable[[Numeric, Sequence[Reg]], Reg]:
    """Return a writer that converts f64 to f32 in a direction: a step from the nearest number, where that is wrong."""

    def convert(n: Numeric, args: Sequence[Reg]) -> Reg:
        t, x = n.text, args[0]
        near = t.cast("arith.truncf", x, "f32")
        back = t.cast("arith.extf", near, "f64")
        bits = t.cast("arith.bitcast", near, "i32")
        one, minus = _like(n, 1, bits), _like(n, -1, bits)
        inwards, outwards = t.binary("arith.addi", bits, minus), t.binary("arith.addi", bits, one)
        if mode == "rz":
            wrong, step = t.compare("ogt", n.absolute(back), n.absolute(x)), inwards
        else:
            negative = t.compare("slt", bits, _like(n, 0, bits))
            wrong = t.compare("ogt" if mode == "rd" else "olt", back, x)
            step = t.select(negative, *((outwards, inwards) if mode == "rd" else (inwards, outwards)))
        return t.cast("arith.bitcast", t.select(wrong, step, bits), "f32")

    return convert


# From floats to integers.


def _exponent(n: Numeric, args: Sequence[Reg]) -> Reg:
    """Write ilogb: the smallest integer for 0 and NaN, the largest for an infinity."""
    x = args[0]
    t, size = n.text, n.absolute(x)
    zero = t.compare("oeq", x, _like(n, 0.0, x))
    usual = t.compare("olt", size, _like(n, float("inf"), x))
    # Replace x by 1 if its logarithm is not representable as an integer.
    plain = t.select(t.binary("arith.andi", usual, t.compare("one", x, _like(n, 0.0, x))), x, _like(n, 1.0, x))
    found = t.cast("arith.fptosi", n.library("logb", [plain]), "i32")
    lowest = t.binary("arith.ori", zero, t.compare("uno", x, x))
    found = t.select(lowest, t.integer(-(1 << 31), "i32", x.lanes), found)
    infinite = t.compare("oeq", size, _like(n, float("inf"), x))
    return t.select(infinite, t.integer((1 << 31) - 1, "i32", x.lanes), found)


def _to_integer(rounding: str, bits: int, *, signed: bool = True) -> Callable[[Numeric, Sequence[Reg]], Reg]:
    """Return a writer that rounds and converts; out-of-range numbers saturate, NaN becomes 0."""

    def convert(n: Numeric, args: Sequence[Reg]) -> Reg:
        x = n.library(rounding, args) if rounding else args[0]
        t, elem = n.text, f"i{bits}"
        low, high = (-(1 << (bits - 1)), 1 << (bits - 1)) if signed else (0, 1 << bits)
        above = t.compare("oge", x, _like(n, float(high), x))
        positive = t.compare("ogt", x, _like(n, float(low), x))
        within = t.binary("arith.andi", positive, t.compare("olt", x, _like(n, float(high), x)))
        safe = t.select(within, x, _like(n, 0.0, x))
        found = t.cast("arith.fptosi" if signed else "arith.fptoui", safe, elem)
        if signed:
            # `low` itself may be replaced too, because it converts exactly; f32 cannot represent low - 1.
            below = t.compare("ole", x, _like(n, float(low), x))
            found = t.select(below, t.integer(low, elem, x.lanes), found)
        return t.select(above, t.integer(high - 1 if signed else -1, elem, x.lanes), found)

    return convert


def _lower_half(n: Numeric, args: Sequence[Reg]) -> Reg:
    return n.text.cast("arith.trunci", _bits(n, args[0]), "i32")


def _upper_half(n: Numeric, args: Sequence[Reg]) -> Reg:
    bits = _bits(n, args[0])
    return n.text.cast("arith.trunci", n.text.binary("arith.shrui", bits, _like(n, 32, bits)), "i32")


# Integers.


def _from_halves(n: Numeric, args: Sequence[Reg]) -> Reg:
    t = n.text
    upper, lower = (t.cast("arith.extui", arg, "i64") for arg in args)
    bits = t.binary("arith.ori", t.binary("arith.shli", upper, _like(n, 32, upper)), lower)
    return t.cast("arith.bitcast", bits, "f64")


def _narrowed(n: Numeric, x: Reg) -> Reg:
    return n.text.cast("arith.trunci", x, "i32") if x.elem != "i32" else x


def _leading_zeros(n: Numeric, args: Sequence[Reg]) -> Reg:
    """Count leading zeros; 0 has as many as the type has bits."""
    return _narrowed(n, n.leading_zeros(args[0]))


def _set_bits(n: Numeric, args: Sequence[Reg]) -> Reg:
    return _narrowed(n, count_bits(n.text, args[0]))


def _first_set(n: Numeric, args: Sequence[Reg]) -> Reg:
    """Return the position of the lowest set bit, counted from 1; 0 if no bit is set."""
    t, x = n.text, args[0]
    minus = t.binary("arith.subi", _like(n, 0, x), x)
    # x ^ -x sets all bits above the lowest set bit; the others are that bit and those below it.
    above = t.binary("arith.xori", x, minus)
    place = t.binary("arith.subi", _like(n, WIDTHS[x.elem], x), count_bits(n.text, above))
    zero = _like(n, 0, x)
    return _narrowed(n, t.select(t.compare("eq", x, zero), zero, place))


def _reversed(n: Numeric, args: Sequence[Reg]) -> Reg:
    t, x = n.text, args[0]
    width = WIDTHS[x.elem]
    by = 1
    while by < width:
        mask = sum(((1 << by) - 1) << place for place in range(0, width, 2 * by))
        lower = _like(n, mask, x)
        left = t.binary("arith.shli", t.binary("arith.andi", x, lower), _like(n, by, x))
        right = t.binary("arith.andi", t.binary("arith.shrui", x, _like(n, by, x)), lower)
        x = t.binary("arith.ori", left, right)
        by *= 2
    return x


def _chosen_bytes(n: Numeric, args: Sequence[Reg]) -> Reg:
    """Write byte_perm: byte i is that of (y, x), 0 to 7, which the lowest 3 bits of the selector's digit i name."""
    t, (x, y, selector) = n.text, args
    lower, upper, digits = (t.cast("arith.extui", arg, "i64") for arg in (x, y, selector))
    all_bytes = t.binary("arith.ori", lower, t.binary("arith.shli", upper, _like(n, 32, upper)))
    found = _like(n, 0, all_bytes)
    for place in range(4):
        number = t.binary(
            "arith.andi", t.binary("arith.shrui", digits, _like(n, 4 * place, digits)), _like(n, 7, digits)
        )
        byte = t.binary("arith.shrui", all_bytes, t.binary("arith.shli", number, _like(n, 3, digits)))
        byte = t.binary("arith.andi", byte, _like(n, 0xFF, byte))
        found = t.binary("arith.ori", found, t.binary("arith.shli", byte, _like(n, 8 * place, byte)))
    return t.cast("arith.trunci", found, "i32")


def _signed_upper_half(n: Numeric, args: Sequence[Reg]) -> Reg:
    """Subtract from the unsigned upper half, for each negative factor, the other factor."""
    t, (x, y) = n.text, args
    found = n.upper_half(x, y)
    zero = _like(n, 0, x)
    for one, other in ((x, y), (y, x)):
        negative = t.compare("slt", one, zero)
        found = t.binary("arith.subi", found, t.select(negative, other, zero))
    return found


def _product_of_24_bits(shift: str) -> Callable[[Numeric, Sequence[Reg]], Reg]:
    def multiply(n: Numeric, args: Sequence[Reg]) -> Reg:
        t, eight = n.text, _like(n, 8, args[0])
        x, y = (t.binary(shift, t.binary("arith.shli", arg, eight), eight) for arg in args)
        return t.binary("arith.muli", x, y)

    return multiply


def _sum_of_difference(predicate: str) -> Callable[[Numeric, Sequence[Reg]], Reg]:
    """Return a writer of |x - y| + z."""

    def add(n: Numeric, args: Sequence[Reg]) -> Reg:
        t, (x, y, z) = n.text, args
        larger = t.compare(predicate, x, y)
        one, other = t.binary("arith.subi", x, y), t.binary("arith.subi", y, x)
        return t.binary("arith.addi", t.select(larger, one, other), z)

    return add


def _average(shift: str, *, up: bool) -> Callable[[Numeric, Sequence[Reg]], Reg]:
    """Return a writer of (x + y) / 2 without overflow: (x & y) + (x ^ y) / 2, rounded up (x | y) - (x ^ y) / 2."""

    def halve(n: Numeric, args: Sequence[Reg]) -> Reg:
        t, (x, y) = n.text, args
        half = t.binary(shift, t.binary("arith.xori", x, y), _like(n, 1, x))
        if up:
            return t.binary("arith.subi", t.binary("arith.ori", x, y), half)
        return t.binary("arith.addi", t.binary("arith.andi", x, y), half)

    return halve


# Functions with the same name in OpenCL C.
_OPENCL = {
    "erfc",
    "lgamma",
    "tgamma",
    "hypot",
    "nextafter",
    "fdim",
    "remainder",
    "exp10",
    "sinpi",
    "cospi",
    "logb",
}
# By the name on f64; the name on f32 ends in f.
_FUNCTIONS: dict[str, Callable[[Numeric, Sequence[Reg]], Reg]] = {
    "ldexp": _with_power("ldexp"),
    "scalbn": _with_power("ldexp"),
    "powi": _with_power("pown"),
    "ilogb": _exponent,
    "llrint": _to_integer("rint", 64),
    "llround": _to_integer("round", 64),
}
# The names on f64 of the functions that exist for both types.
NAMES = frozenset((*_OPENCL, *_FUNCTIONS, *FUNCTIONS))
_ROUNDINGS = {"rn": "rint", "rz": "", "rd": "floor", "ru": "ceil"}
# By the full name.
_WHOLE: dict[str, Callable[[Numeric, Sequence[Reg]], Reg]] = {
    "isnanf": _is_nan,
    "isnand": _is_nan,
    "isinff": _is_infinite,
    "isinfd": _is_infinite,
    "finitef": _is_finite,
    "isfinited": _is_finite,
    "signbitf": _sign_bit,
    "signbitd": _sign_bit,
    "saturatef": _saturate,
    "frcp_rn": lambda n, args: _reciprocal(n, args[0]),
    "drcp_rn": lambda n, args: _reciprocal(n, args[0]),
    "rcp64h": _approximate_reciprocal,
    **{f"double2float_{mode}": _to_single(mode) for mode in ("rz", "rd", "ru")},
    "fast_exp10f": lambda n, args: n.library("exp10", args),
    "hiloint2double": _from_halves,
    "double2loint": _lower_half,
    "double2hiint": _upper_half,
    **{
        f"{source}2{target}_{mode}": _to_integer(function, bits, signed=signed)
        for source in ("float", "double")
        for target, bits, signed in (("int", 32, True), ("uint", 32, False), ("ll", 64, True), ("ull", 64, False))
        for mode, function in _ROUNDINGS.items()
    },
    "clz": _leading_zeros,
    "clzll": _leading_zeros,
    "popc": _set_bits,
    "popcll": _set_bits,
    "ffs": _first_set,
    "ffsll": _first_set,
    "brev": _reversed,
    "brevll": _reversed,
    "byte_perm": _chosen_bytes,
    "mulhi": _signed_upper_half,
    "mul64hi": _signed_upper_half,
    "mul24": _product_of_24_bits("arith.shrsi"),
    "umul24": _product_of_24_bits("arith.shrui"),
    "sad": _sum_of_difference("sgt"),
    "usad": _sum_of_difference("ugt"),
    "hadd": _average("arith.shrsi", up=False),
    "uhadd": _average("arith.shrui", up=False),
    "rhadd": _average("arith.shrsi", up=True),
    "urhadd": _average("arith.shrui", up=True),
}
