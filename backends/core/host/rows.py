"""What each row of ELEMENTWISE means, in NumPy: texts of the operation on the types that it has, and the results.

A text is on %x0, %x1 and %x2, which are of the row's type. A row without a meaning here fails (test_rows.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from foundry_core.ops.limits import ULPS

from .memory import Array

DTYPES: dict[str, Any] = {
    **{f"i{bits}": np.dtype(f"int{bits}").type for bits in (8, 16, 32, 64)},
    **{f"f{bits}": np.dtype(f"float{bits}").type for bits in (16, 32, 64)},
}
INTEGERS, FLOATS = ("i8", "i16", "i32", "i64"), ("f32", "f64")
# x86's extended precision, for what is not exact.
Wide = np.longdouble
# The elements of a kernel.
COUNT = 512


class Meaning(NamedTuple):
    """An operation on one type.

    Attributes:
        elem: the type of %x0, %x1 and %x2.
        text: computes %v; T stands for a tile of `elem`, T[f32] for one of f32.
        result: the type of %v; i1 is stored as an i8.
        numpy: computes the result, from the three arrays.
        error: how many units in the last place it may be off; 0 for the same bits, of NaN for any NaN.
        before: texts of what it needs.
    """

    elem: str
    text: str
    result: str
    numpy: Callable[..., Any]
    error: float = 0
    before: Sequence[str] = ()


Meanings = Iterable[Meaning]


def unsigned(x: Array) -> Array:
    return x.view(x.dtype.str.replace("i", "u"))


def signed(x: Array) -> Array:
    return x.view(x.dtype.str.replace("u", "i"))


def _of_integers(name: str, function: Callable[[Array, Array], Array]) -> Meanings:
    for elem in INTEGERS:
        yield Meaning(elem, f"{name} %x0, %x1 : T", elem, lambda a, b, c: function(a, b))


def _of_unsigned(name: str, function: Callable[[Array, Array], Array]) -> Meanings:
    return _of_integers(name, lambda a, b: signed(function(unsigned(a), unsigned(b))))


def _shifted(name: str, function: Callable[[Array, Array], Array]) -> Meanings:
    for elem in INTEGERS:
        mask = DTYPES[elem]().itemsize * 8 - 1
        before = [f"%m = arith.constant dense<{mask}> : T", "%by = arith.andi %x1, %m : T"]
        yield Meaning(elem, f"{name} %x0, %by : T", elem, lambda a, b, c, m=mask: function(a, b & m), 0, before)


def _divided(name: str, function: Callable[[int, int], int], sign: str) -> Meanings:
    """The divisor is odd, and the smallest number is not divided by -1."""

    def numpy(a: Array, b: Array, c: Array) -> Array:
        x, y = (a & np.iinfo(a.dtype).max, b | 1) if sign == "s" else (unsigned(a), unsigned(b | 1))
        return np.array([function(p, q) for p, q in zip(x.tolist(), y.tolist(), strict=True)], y.dtype).view(a.dtype)

    for elem in INTEGERS:
        before = ["%one = arith.constant dense<1> : T", "%odd = arith.ori %x1, %one : T"]
        first = "%x0"
        if sign == "s":
            before += [
                f"%most = arith.constant dense<{np.iinfo(DTYPES[elem]).max}> : T",
                "%p = arith.andi %x0, %most : T",
            ]
            first = "%p"
        yield Meaning(elem, f"{name} {first}, %odd : T", elem, numpy, 0, before)


def _quotient(p: int, q: int) -> int:
    return abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1)


def _upper_half() -> Meanings:
    for elem, bits in (("i32", 32), ("i64", 64)):

        def numpy(a: Array, b: Array, c: Array, bits: int = bits) -> Array:
            pairs = zip(unsigned(a).tolist(), unsigned(b).tolist(), strict=True)
            return signed(np.array([p * q >> bits for p, q in pairs], f"u{bits // 8}"))

        yield Meaning(elem, "tt.mulhiui %x0, %x1 : T", elem, numpy)


_ORDERS: dict[str, Any] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def _integers_compared() -> Meanings:
    for elem in INTEGERS:
        for name, how in _ORDERS.items():
            signs: dict[str, Callable[[Array], Array]] = (
                {"s": signed, "u": unsigned} if name[0] in "lg" else {"": signed}
            )
            for sign, view in signs.items():
                numpy = lambda a, b, c, how=how, view=view: how(view(a), view(b))  # noqa: E731
                yield Meaning(elem, f"arith.cmpi {sign}{name}, %x0, %x1 : T", "i1", numpy)
    # Of booleans; as a signed number, true is -1.
    before = [
        "%z = arith.constant dense<0> : T",
        "%p = arith.cmpi sgt, %x0, %z : T",
        "%q = arith.cmpi sgt, %x1, %z : T",
    ]
    for name, how in _ORDERS.items():
        for sign in "su" if name[0] in "lg" else ("",):
            factor = -1 if sign == "s" else 1
            numpy = lambda a, b, c, how=how, factor=factor: how((a > 0) * factor, (b > 0) * factor)  # noqa: E731
            yield Meaning("i32", f"arith.cmpi {sign}{name}, %p, %q : T[i1]", "i1", numpy, 0, before)


def _floats_compared() -> Meanings:
    for elem in FLOATS:
        for name, how in _ORDERS.items():

            def ordered(a: Array, b: Array, c: Array, how: Any = how) -> Array:
                return how(a, b) & ~(np.isnan(a) | np.isnan(b))

            def unordered(a: Array, b: Array, c: Array, how: Any = how) -> Array:
                return how(a, b) | np.isnan(a) | np.isnan(b)

            yield Meaning(elem, f"arith.cmpf o{name}, %x0, %x1 : T", "i1", ordered)
            yield Meaning(elem, f"arith.cmpf u{name}, %x0, %x1 : T", "i1", unordered)
        yield Meaning(elem, "arith.cmpf uno, %x0, %x1 : T", "i1", lambda a, b, c: np.isnan(a) | np.isnan(b))
        yield Meaning(elem, "arith.cmpf ord, %x0, %x1 : T", "i1", lambda a, b, c: ~(np.isnan(a) | np.isnan(b)))


def _selected() -> Meanings:
    for elem in (*INTEGERS, *FLOATS):
        compared = "arith.cmpf olt" if elem[0] == "f" else "arith.cmpi slt"
        before = [f"%less = {compared}, %x0, %x1 : T"]
        numpy = lambda a, b, c: np.where(a < b, a, c)  # noqa: E731
        yield Meaning(elem, "arith.select %less, %x0, %x2 : T[i1], T", elem, numpy, 0, before)


def _extended(name: str, function: Callable[[Array], Array]) -> Meanings:
    for elem, to in ((x, y) for x in INTEGERS for y in INTEGERS if int(x[1:]) < int(y[1:])):
        yield Meaning(elem, f"{name} %x0 : T to T[{to}]", to, lambda a, b, c, to=to: function(a).astype(DTYPES[to]))


def _truncated() -> Meanings:
    for elem, to in ((x, y) for x in INTEGERS for y in INTEGERS if int(x[1:]) > int(y[1:])):
        yield Meaning(elem, f"arith.trunci %x0 : T to T[{to}]", to, lambda a, b, c, to=to: a.astype(DTYPES[to]))


def _from_integers(name: str, function: Callable[[Array], Array]) -> Meanings:
    for elem, to in ((x, y) for x in INTEGERS for y in FLOATS):
        yield Meaning(elem, f"{name} %x0 : T to T[{to}]", to, lambda a, b, c, to=to: function(a).astype(DTYPES[to]))


def _to_integers(name: str, low: float) -> Meanings:
    """Numbers are limited to what every integer type has."""

    def numpy(a: Array, to: str) -> Array:
        return np.fmin(np.fmax(a, a.dtype.type(low)), a.dtype.type(100)).astype(np.int64).astype(DTYPES[to])

    for elem, to in ((x, y) for x in FLOATS for y in INTEGERS):
        before = [
            f"%low = arith.constant dense<{low:e}> : T",
            "%high = arith.constant dense<1.0e2> : T",
            "%least = arith.maxnumf %x0, %low : T",
            "%some = arith.minnumf %least, %high : T",
        ]
        yield Meaning(elem, f"{name} %some : T to T[{to}]", to, lambda a, b, c, to=to: numpy(a, to), 0, before)


def _of_floats(name: str, function: Callable[..., Any], count: int = 2, elems: Sequence[str] = FLOATS) -> Meanings:
    operands = ", ".join(f"%x{k}" for k in range(count))
    for elem in elems:
        yield Meaning(elem, f"{name} {operands} : T", elem, lambda *x: function(*x[:count]))


def _clamped() -> Meanings:
    before = ["%low = arith.constant dense<-1.5> : T", "%high = arith.constant dense<2.5> : T"]
    for elem in FLOATS:
        numbers = lambda a, b, c: np.fmin(np.fmax(a, a.dtype.type(-1.5)), a.dtype.type(2.5))  # noqa: E731
        every = lambda a, b, c: np.clip(a, a.dtype.type(-1.5), a.dtype.type(2.5))  # noqa: E731
        yield Meaning(elem, "tt.clampf %x0, %low, %high, propagateNan = none : T", elem, numbers, 0, before)
        yield Meaning(elem, "tt.clampf %x0, %low, %high, propagateNan = all : T", elem, every, 0, before)


def _fused() -> Meanings:
    # The product of two f32 is exact in f64; the extended sum has 11 bits more, and is off by 2^-11 units at most.
    yield Meaning("f32", "math.fma %x0, %x1, %x2 : T", "f32", lambda a, b, c: a.astype(Wide) * b + c, 0.501)


def _function(opencl: str, operation: str, function: Callable[..., Any], count: int = 1) -> Meanings:
    """A function that a device may compute with an error; without a limit, it is exact or correctly rounded."""
    operands = ", ".join(f"%x{k}" for k in range(count))
    for elem in FLOATS:
        numpy = lambda *x: function(*(each.astype(Wide) for each in x[:count]))  # noqa: E731
        yield Meaning(elem, f"{operation} {operands} : T", elem, numpy, ULPS.get(opencl, 0.501))


def _rounded_away(x: Array) -> Array:
    whole = np.trunc(x)
    return np.where(np.isfinite(x), whole + np.copysign(np.abs(x - whole) >= 0.5, x), x)


def _erf(x: Array) -> Array:
    return np.array([math.erf(float(each)) for each in x], Wide)


def _bits() -> Meanings:
    for name in ("tt.bitcast", "arith.bitcast"):
        for elem, to in (("i32", "f32"), ("f32", "i32"), ("i64", "f64"), ("f64", "i64")):
            arrow = "->" if name == "tt.bitcast" else "to"
            yield Meaning(elem, f"{name} %x0 : T {arrow} T[{to}]", to, lambda a, b, c, to=to: a.view(DTYPES[to]))


def _bits_of(name: str) -> Meanings:
    return (each for each in _bits() if each.text.startswith(name))


def _widened() -> Meanings:
    for elem, to in (("f32", "f64"), ("f16", "f32"), ("f16", "f64")):
        yield Meaning(elem, f"arith.extf %x0 : T to T[{to}]", to, lambda a, b, c, to=to: a.astype(DTYPES[to]))


def _narrowed(name: str, arrow: str) -> Meanings:
    for elem, to in (("f32", "f16"), ("f64", "f32"))[: 2 if arrow == "to" else 1]:
        how = ", rounding = rtne" if arrow == "->" else ""
        yield Meaning(elem, f"{name} %x0{how} : T {arrow} T[{to}]", to, lambda a, b, c, to=to: a.astype(DTYPES[to]))


def _rounded() -> Meanings:
    after = ["%r = tile.round %x0 : T to T[f16]"]
    yield Meaning(
        "f32", "arith.extf %r : T[f16] to T", "f32", lambda a, b, c: a.astype(np.float16).astype(np.float32), 0, after
    )


def _pointers(text: str, before: Sequence[str] = ()) -> Meanings:
    """A pointer to the element of %x1 that is at the same place, by one way or another, and what is there."""
    lines = [*before, text]
    yield Meaning("i32", "tt.load %q : T[!tt.ptr<i32>]", "i32", lambda a, b, c: b, 0, lines)


_EXTERN = 'tt.extern_elementwise %x0 {libname = "", libpath = "", pure = true, symbol = "__nv_NAME"} : (T) -> T[TO]'


def _external() -> Meanings:
    for elem, letter in (("f32", "f"), ("f64", "")):
        text = _EXTERN.replace("NAME", f"exp10{letter}").replace("TO", elem)
        yield Meaning(elem, text, elem, lambda a, b, c: Wide(10) ** a.astype(Wide), ULPS["exp10"])
    text = _EXTERN.replace("NAME", "popc").replace("TO", "i32")
    yield Meaning("i32", text, "i32", lambda a, b, c: np.bitwise_count(unsigned(a)))


_INTEGER: dict[str, Callable[[Array, Array], Array]] = {
    "addi": np.add,
    "subi": np.subtract,
    "muli": np.multiply,
    "andi": np.bitwise_and,
    "ori": np.bitwise_or,
    "xori": np.bitwise_xor,
    "minsi": np.minimum,
    "maxsi": np.maximum,
}
_FLOAT: dict[str, Callable[[Array, Array], Array]] = {
    "addf": np.add,
    "subf": np.subtract,
    "mulf": np.multiply,
    "remf": np.fmod,
    "minnumf": np.fmin,
    "maxnumf": np.fmax,
    "minimumf": np.minimum,
    "maximumf": np.maximum,
}
# Name of the function in OpenCL and, where it differs, in MLIR's dialect math; and NumPy's.
_FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    **{name: getattr(np, name) for name in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt")},
    **{name: getattr(np, name) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "erf": _erf,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": _rounded_away,
}
MEANINGS: dict[str, Sequence[Meaning]] = {
    name: list(meanings)
    for name, meanings in {
        **{f"arith.{name}": _of_integers(f"arith.{name}", function) for name, function in _INTEGER.items()},
        "arith.minui": _of_unsigned("arith.minui", np.minimum),
        "arith.maxui": _of_unsigned("arith.maxui", np.maximum),
        "arith.shli": _shifted("arith.shli", np.left_shift),
        "arith.shrsi": _shifted("arith.shrsi", np.right_shift),
        "arith.shrui": _shifted("arith.shrui", lambda a, b: signed(unsigned(a) >> unsigned(b))),
        "arith.divsi": _divided("arith.divsi", _quotient, "s"),
        "arith.remsi": _divided("arith.remsi", lambda p, q: p - _quotient(p, q) * q, "s"),
        "arith.divui": _divided("arith.divui", lambda p, q: p // q, "u"),
        "arith.remui": _divided("arith.remui", lambda p, q: p % q, "u"),
        "math.absi": (Meaning(elem, "math.absi %x0 : T", elem, lambda a, b, c: np.abs(a)) for elem in INTEGERS),
        "tt.mulhiui": _upper_half(),
        "arith.cmpi": _integers_compared(),
        "arith.cmpf": _floats_compared(),
        "arith.select": _selected(),
        **{f"arith.{name}": _of_floats(f"arith.{name}", function) for name, function in _FLOAT.items()},
        "arith.divf": (
            Meaning(elem, "arith.divf %x0, %x1 : T", elem, lambda a, b, c: a.astype(Wide) / b, ULPS["division"])
            for elem in FLOATS
        ),
        "arith.negf": _of_floats("arith.negf", np.negative, 1),
        "math.absf": _of_floats("math.absf", np.abs, 1),
        "math.copysign": _of_floats("math.copysign", np.copysign),
        "tt.precise_sqrt": _of_floats("tt.precise_sqrt", np.sqrt, 1),
        "tt.precise_divf": _of_floats("tt.precise_divf", np.divide),
        "tt.clampf": _clamped(),
        "math.fma": _fused(),
        **{f"math.{name}": _function(name, f"math.{name}", function) for name, function in _FUNCTIONS.items()},
        "math.roundeven": _function("rint", "math.roundeven", np.rint),
        "math.powf": _function("pow", "math.powf", np.power, 2),
        "math.atan2": _function("atan2", "math.atan2", np.arctan2, 2),
        "tt.extern_elementwise": _external(),
        "arith.extsi": _extended("arith.extsi", signed),
        "arith.extui": _extended("arith.extui", unsigned),
        "arith.trunci": _truncated(),
        "arith.sitofp": _from_integers("arith.sitofp", signed),
        "arith.uitofp": _from_integers("arith.uitofp", unsigned),
        "arith.fptosi": _to_integers("arith.fptosi", -100),
        "arith.fptoui": _to_integers("arith.fptoui", 0),
        "arith.extf": _widened(),
        "arith.truncf": _narrowed("arith.truncf", "to"),
        "tt.fp_to_fp": _narrowed("tt.fp_to_fp", "->"),
        "tile.round": _rounded(),
        "arith.bitcast": _bits_of("arith"),
        "tt.bitcast": _bits_of("tt"),
        "tt.addptr": _pointers("%q = tt.addptr %s1, %i : T[!tt.ptr<i32>], T[i32]"),
        "tt.int_to_ptr": _pointers(
            "%q = tt.int_to_ptr %n : T[i64] -> T[!tt.ptr<i32>]",
            ["%n = tt.ptr_to_int %a1 : T[!tt.ptr<i32>] -> T[i64]"],
        ),
        "tt.ptr_to_int": _pointers(
            "%q = tt.int_to_ptr %m : T[i64] -> T[!tt.ptr<i32>]",
            [
                "%n = tt.ptr_to_int %s1 : T[!tt.ptr<i32>] -> T[i64]",
                "%four = arith.constant dense<4> : T[i64]",
                "%w = arith.extsi %i : T[i32] to T[i64]",
                "%o = arith.muli %w, %four : T[i64]",
                "%m = arith.addi %n, %o : T[i64]",
            ],
        ),
        "tile.distance": [
            Meaning(
                "i32",
                "tile.distance %a1 from %p1 : T[!tt.ptr<i32>], !tt.ptr<i32> -> T[i64]",
                "i64",
                lambda a, b, c: np.arange(len(a)) * 4,
            )
        ],
    }.items()
}


def values(elem: str) -> list[Array]:
    """Return three arrays: all pairs of special numbers, and drawn ones."""
    random, dtype = np.random.default_rng(len(elem)), DTYPES[elem]
    if elem[0] == "f":
        known = np.finfo(dtype)
        special = [
            0.0,
            -0.0,
            1,
            -1,
            1.5,
            -2.5,
            3,
            1e-3,
            known.max,
            -known.max,
            known.tiny,
            np.inf,
            -np.inf,
            np.nan,
            7,
            0.49,
        ]
        with np.errstate(all="ignore"):
            drawn = (random.standard_normal((3, 256)) * 2.0 ** random.integers(-12, 8, (3, 256))).astype(dtype)
            drawn[0, :16] = known.smallest_subnormal * random.integers(1, 1 << 20, 16)
    else:
        whole = np.iinfo(dtype)
        special = [0, 1, -1, 2, 3, -3, 5, 7, whole.max, whole.min, whole.max - 1, whole.min + 1, 64, -64, 100, -100]
        drawn = random.integers(whole.min, whole.max, (3, 256), dtype, endpoint=True)
    pairs = np.array(special, dtype)
    whole_pairs = np.repeat(pairs, 16), np.tile(pairs, 16), random.permutation(np.repeat(pairs, 16))
    return [np.concatenate([pair, more]) for pair, more in zip(whole_pairs, drawn, strict=True)]
