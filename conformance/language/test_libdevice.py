"""The functions of Triton's libdevice module, each compared with NumPy in extended precision, with special values."""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import libm
import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from checking import Array, bounds, check, compute
from foundry_core.functions.directed import FROM_INTEGERS
from foundry_core.functions.table import FUNCTIONS
from foundry_core.ops.elementwise import ROWS
from foundry_core.ops.libdevice import NAMES
from libm import (
    BINARY,
    ERRORS,
    FLOATS,
    INF,
    LARGEST,
    NAN,
    SAME,
    SPECIAL,
    UNARY,
    Wide,
    check_opencl,
    drawn,
    exactly,
    rounded_away,
)

pytestmark = pytest.mark.values

TO_INTEGERS = ["llrint", "llround", "ilogb", "isnan", "isinf", "signbit"]
CONVERSIONS = [
    f"{source}2{target}_{mode}"
    for source, target, mode in itertools.product(
        ("float", "double"), ("int", "uint", "ll", "ull"), ("rn", "rz", "rd", "ru")
    )
]
OF_INTEGERS = ["clz", "popc", "ffs", "brev", "mulhi", "hadd", "rhadd", "mul24", "sad"]
TESTED = [
    *(*UNARY, *BINARY, *FUNCTIONS, *OF_INTEGERS, *TO_INTEGERS, *CONVERSIONS),
    *("byte_perm", "rcp64h", "double2float_rz", "double2float_rd", "double2float_ru"),
    *("finitef", "isfinited", "saturatef", "nextafter", "ldexp", "fma"),
    *("float_as_int", "int_as_float", "double_as_longlong", "longlong_as_double"),
    *("double2hiint", "double2loint", "hiloint2double", "double2float_rn", "ll2float_rn", "uint2float_rn"),
]
# Symbols that Triton calls by another name, or that are equivalent to a tested one.
SAME_AS = {"fabs": "abs", "scalbn": "ldexp", "powi": "pow"} | dict.fromkeys(FROM_INTEGERS, "ll2float_rn")


def test_every_function_that_is_lowered_is_tested() -> None:
    """On the host, those of FUNCTIONS (backends/core/host/tests/test_libdevice.py); here the others."""
    known = {name for row in ROWS for name in row.libdevice} | NAMES
    assert {SAME_AS.get(name, name) for name in known} - set(TESTED) == set()


def call(name: str, dtype: npt.DTypeLike, *arguments: Array) -> Array:
    """Return the results of a function for arrays of one length."""
    operands = dict(zip("abc", arguments, strict=False))
    out = compute(f"libdevice.{name}({', '.join(operands)})", dtype, **operands)
    out.check_fences("the output")
    return out.array


def near(name: str, out: Array, reference: Array, *arguments: Array) -> None:
    bounds.append(ERRORS.get(name, 0) + 0.5)
    check_opencl(name, out, reference, *arguments)


@pytest.mark.operation("libdevice.{name}", type="{type}")
@pytest.mark.parametrize("type", FLOATS)
@pytest.mark.parametrize("name", UNARY)
def test_functions_are_as_exact_as_opencl_promises(name: str, type: str) -> None:
    function, low, high = UNARY[name]
    dtype = FLOATS[type]
    x = np.concatenate([drawn(low, high, dtype, 1), np.array(SPECIAL).astype(dtype)])
    if low > 0 and high / low > 1e6:
        # Each power of two as often as another.
        x = np.concatenate([x, np.exp(drawn(math.log(low), math.log(high), np.float64, 24)).astype(dtype)])
    x = x[~(np.abs(x) > LARGEST.get(name, INF)) | np.isinf(x)]
    with np.errstate(all="ignore"):
        reference = function(x if name in SAME else x.astype(Wide))
    out = call(name, x.dtype, x)
    near(name, out, reference, x)


def vectors_with(value: float, low: float, high: float, dtype: Any) -> np.ndarray:
    """Return vectors of 16 random numbers, in which some places have a given value instead."""
    x = drawn(low, high, np.float64, 14, 96).reshape(6, 16)
    places: Any
    for row, places in zip(x, ([0], [15], slice(4, 8), slice(8, 16), slice(1, None, 2), slice(None)), strict=True):
        row[places] = value
    with np.errstate(all="ignore"):
        return x.ravel().astype(dtype)


@pytest.mark.parametrize("type", FLOATS)
@pytest.mark.parametrize("name", ["exp", "log", "log2", "sin", "cos", "tan", "cbrt", "atan", "tanh", "lgamma", "pow"])
def test_a_special_value_changes_nothing_beside_it(name: str, type: str) -> None:
    """PoCL's vector functions have branches that are taken for a whole vector, and some of them are wrong."""
    dtype, values = FLOATS[type], [value for value in [*SPECIAL, 1e-310, 5e-324, 1e300] if value != -1e-20]
    function, low, high = (UNARY | BINARY)[name]
    values = [value for value in values if not LARGEST.get(name, INF) < value < INF]
    x = np.concatenate([vectors_with(value, low, high, dtype) for value in values])
    arguments = [x, drawn(-high, high, dtype, 15, x.size)] if name == "pow" else [x]
    with np.errstate(all="ignore"):
        reference = function(*(argument.astype(Wide) for argument in arguments))
    out = call(name, x.dtype, *arguments)
    near(name, out, reference, *arguments)


@pytest.mark.parametrize("name", ["exp", "rint", "erfc"])
def test_functions_of_numbers_wider_than_what_is_stored(name: str) -> None:
    """The number of lanes is chosen for the stored type. It is twice what a function accepts at a time."""
    x = drawn(-4, 4, np.float64, 16)
    function, _, _ = UNARY[name]
    near(name, call(name, np.float32, x), function(x.astype(Wide)), x)


@pytest.mark.operation("libdevice.pow", type="{type}")
@pytest.mark.operation("libdevice", type="{type}")
@pytest.mark.parametrize("type", FLOATS)
def test_powers_with_whole_exponents(type: str) -> None:
    x, power = np.array([*itertools.product([*SPECIAL, 1e-310], [0, 1, -1, 2, 3, -3, 10, -20])], object).T
    x, power = x.astype(FLOATS[type]), power.astype(np.int32)
    with np.errstate(all="ignore"):
        reference = np.power(x.astype(Wide), power.astype(Wide))
    near("pow", call("pow", x.dtype, x, power), reference, x)


def pairs(low: float, high: float, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return random pairs, and all pairs of special values."""
    x, y = zip(*itertools.product(SPECIAL, SPECIAL), strict=True)
    return (
        np.concatenate([drawn(low, high, dtype, 2), np.array(x).astype(dtype)]),
        np.concatenate([drawn(-abs(high), high, dtype, 3), np.array(y).astype(dtype)]),
    )


@pytest.mark.operation("libdevice.{name}", type="{type}")
@pytest.mark.parametrize("type", FLOATS)
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_arguments_are_as_exact_as_opencl_promises(name: str, type: str) -> None:
    function, low, high = BINARY[name]
    x, y = pairs(low, high, FLOATS[type])
    with np.errstate(all="ignore"):
        reference = function(x, y) if name in SAME else function(x.astype(Wide), y.astype(Wide))
    if name == "remainder":
        # math.remainder raises an error for an infinite first argument or a second argument of 0; C returns NaN.
        reference = reference.astype(x.dtype)
    near(name, call(name, x.dtype, x, y), reference, x, y)


@pytest.mark.parametrize("type", FLOATS)
@pytest.mark.parametrize("name", ["norm3d", "rnorm3d"])
def test_norms_neither_overflow_nor_vanish_on_the_way(name: str, type: str) -> None:
    dtype = FLOATS[type]
    scale = np.repeat(np.array([1e-25, 1.0, 1e25]), 100)
    x, y, z = ((drawn(-1, 1, np.float64, seed, 300) * scale).astype(dtype) for seed in (4, 5, 6))
    reference = np.sqrt(x.astype(Wide) ** 2 + y.astype(Wide) ** 2 + z.astype(Wide) ** 2)
    # Twice hypot's 4 ulp, of which the inner one counts in part; a division for the reciprocal.
    libm.check(name, call(name, x.dtype, x, y, z), reference if name == "norm3d" else 1 / reference, 9.5, x, y, z)


@pytest.mark.operation("libdevice.fma", type="{type}")
@pytest.mark.operation("libdevice", type="{type}")
@pytest.mark.parametrize("type", FLOATS)
def test_fma_rounds_once(type: str) -> None:
    dtype = FLOATS[type]
    x, y = drawn(1, 2, dtype, 7), drawn(1, 2, dtype, 8)
    product = x * y
    out = call("fma", x.dtype, x, y, -product)
    # The rounding error of the product. Another rounding would make it 0.
    exact = np.array([float(error(a, b, p)) for a, b, p in zip(x, y, product, strict=True)])
    np.testing.assert_array_equal(out.astype(np.float64), exact)
    assert np.count_nonzero(out) > out.size // 2


def error(x: Any, y: Any, product: Any) -> Any:

    return Fraction(float(x)) * Fraction(float(y)) - Fraction(float(product))


@pytest.mark.operation("libdevice.nextafter", type="{type}")
@pytest.mark.operation("libdevice", type="{type}")
@pytest.mark.parametrize("type", FLOATS)
def test_nextafter_is_the_next_number(type: str) -> None:
    x, y = pairs(-4, 4, FLOATS[type])
    out = call("nextafter", x.dtype, x, y)
    np.testing.assert_array_equal(out, np.nextafter(x, y))


@pytest.mark.operation("libdevice.ldexp", type="{type}")
@pytest.mark.operation("libdevice", type="{type}")
@pytest.mark.parametrize("type", FLOATS)
def test_ldexp_is_rounded_once_from_the_largest_to_the_smallest(type: str) -> None:
    dtype = FLOATS[type]
    powers = np.array([0, 1, -1, 24, -24, 127, -149, 1023, -1074, 2000, -3000], np.int32)
    x, power = np.repeat(np.array(SPECIAL), powers.size).astype(dtype), np.tile(powers, len(SPECIAL))
    out = call("ldexp", x.dtype, x, power)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(out, np.ldexp(x, power))


@pytest.mark.operation("libdevice.erfcinv", type="{type}")
@pytest.mark.operation("libdevice", type="{type}")
@pytest.mark.parametrize("type", FLOATS)
def test_the_inverse_of_erfc_reaches_where_erfc_is_small(type: str) -> None:
    """Apply erfc to the result in float64: a step of y by one ulp changes it by about 2 y^2 ulp."""
    dtype, least = FLOATS[type], 1e-30 if type == "f32" else 1e-290
    tails = np.concatenate([np.geomspace(least, 1, 300), np.linspace(1, 1.99, 100)]).astype(dtype)
    out = call("erfcinv", tails.dtype, tails)
    again = exactly(math.erfc)(out.astype(np.float64))
    allowed = (16 + 8 * (1 + 2 * out.astype(Wide) ** 2)) * tails * float(ml_dtypes.finfo(dtype).eps)
    assert np.all(np.abs(again - tails) <= allowed)
    edges = call("erfcinv", dtype, np.array([0, 2, -1, 3, NAN]).astype(dtype))
    np.testing.assert_array_equal(edges, [INF, -INF, NAN, NAN, NAN])


@pytest.mark.operation("libdevice", type="{type}")
@pytest.mark.parametrize("type", FLOATS)
def test_questions_about_a_number_are_answered_with_1_or_0(type: str) -> None:
    x = np.array(SPECIAL).astype(FLOATS[type])
    finite = "finitef" if type == "f32" else "isfinited"
    for name, function in (("isnan", np.isnan), ("isinf", np.isinf), ("signbit", np.signbit), (finite, np.isfinite)):
        out = call(name, np.int32, x)
        np.testing.assert_array_equal(out, function(x).astype(np.int32), err_msg=name)


def test_saturatef_keeps_a_number_between_0_and_1() -> None:
    x = np.array(SPECIAL, np.float32)
    out = call("saturatef", x.dtype, x)
    np.testing.assert_array_equal(out, np.where(np.isnan(x), 0, np.clip(x, 0, 1)))


@pytest.mark.operation("libdevice", type="{type}")
@pytest.mark.parametrize("type", FLOATS)
def test_the_exponent_as_an_integer(type: str) -> None:
    x = np.concatenate([np.array(SPECIAL), drawn(-9, 9, np.float64, 9)]).astype(FLOATS[type])
    info = np.iinfo(np.int32)
    expected = [info.min if a == 0 or a != a else info.max if abs(a) == INF else math.frexp(a)[1] - 1 for a in x]
    np.testing.assert_array_equal(call("ilogb", np.int32, x), expected)


ROUNDINGS: dict[str, Callable[[Any], Any]] = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}


INTEGERS = {"int": np.int32, "uint": np.uint32, "ll": np.int64, "ull": np.uint64}


def to_integers(x: np.ndarray, kind: Any) -> np.ndarray:
    """Convert whole numbers to integers: beyond the range the nearest one, NaN to 0."""
    info = np.iinfo(kind)
    return np.array(
        [
            0 if a != a else int(min(max(a, info.min), info.max)) if abs(a) < INF else info.max if a > 0 else info.min
            for a in x.astype(object)
        ],
        object,
    ).astype(kind)


@pytest.mark.parametrize("name", [*CONVERSIONS, "llrint", "llround"])
def test_conversions_to_integers_round_as_named_and_saturate(name: str) -> None:
    dtype = np.float32 if name.startswith("float") else np.float64
    target, rounding = name.split("2")[1].split("_") if "2" in name else ("ll", "")
    function = ROUNDINGS.get(rounding, np.rint if name == "llrint" else rounded_away)
    edges = [2.0**31, -(2.0**31), 2.0**31 - 128, 2.0**32, 2.0**63, -(2.0**63), 2.0**64, 2147483647.5, 4294967295.5]
    x = np.concatenate([np.array(SPECIAL + edges), drawn(-100, 100, np.float64, 10)]).astype(dtype)
    kind = INTEGERS[target]
    expected = to_integers(function(x), kind)
    np.testing.assert_array_equal(call(name, kind, x), expected)


@pytest.mark.parametrize(
    ("name", "source", "target"),
    [
        ("float_as_int", np.float32, np.int32),
        ("int_as_float", np.int32, np.float32),
        ("double_as_longlong", np.float64, np.int64),
        ("longlong_as_double", np.int64, np.float64),
    ],
)
def test_bits_are_kept(name: str, source: Any, target: Any) -> None:
    x = np.random.default_rng(11).integers(0, 256, 4000, np.uint8).view(source)
    out = call(name, target, x)
    assert out.tobytes() == x.tobytes()


def test_halves_of_a_double() -> None:
    x = np.array(SPECIAL)
    upper, lower = (call(f"double2{half}int", np.int32, x) for half in ("hi", "lo"))
    np.testing.assert_array_equal(lower, x.view(np.int32)[::2])
    np.testing.assert_array_equal(upper, x.view(np.int32)[1::2])
    assert call("hiloint2double", x.dtype, upper, lower).tobytes() == x.tobytes()


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("double2float_rn", np.float64),
        ("ll2float_rn", np.int64),
        ("uint2float_rn", np.uint32),
    ],
)
def test_conversions_to_f32_round_to_nearest(name: str, source: Any) -> None:
    if np.dtype(source).kind == "f":
        x = np.random.default_rng(12).standard_normal(1000)
    else:
        x = np.random.default_rng(12).integers(0, np.iinfo(source).max, 1000, source)
    np.testing.assert_array_equal(call(name, np.float32, x), x.astype(np.float32))


@pytest.mark.parametrize("mode", ["rz", "rd", "ru"])
def test_f64_becomes_f32_rounded_in_a_direction(mode: str) -> None:
    tiny, most = 2.0**-149, float(np.finfo(np.float32).max)
    edges = [most, most * (1 + 1e-9), 1e300, tiny, tiny / 2, tiny * 1.5, 1e-300, 5e-324, 1 + 2.0**-30, 1.0, 2.0**-126]
    edges += [2.0**-126 * (1 - 1e-12), 0.0, INF, NAN]
    bits = np.random.default_rng(21).integers(0, 256, 8000, np.uint8).view(np.float64)
    with np.errstate(all="ignore"):
        small = bits / 2.0**500
    x = np.concatenate([np.array(edges), -np.array(edges), bits, small, drawn(-9, 9, np.float64, 22)])
    out = call(f"double2float_{mode}", np.float32, x)
    with np.errstate(all="ignore"):
        near = x.astype(np.float32)
        below = np.where(near > x, np.nextafter(near, np.float32(-INF)), near)
        above = np.where(near < x, np.nextafter(near, np.float32(INF)), near)
    expected = {"rd": below, "ru": above, "rz": np.where(x > 0, below, above)}[mode]
    check(out, expected)


def test_bytes_are_chosen_by_the_digits_of_the_selector() -> None:
    random = np.random.default_rng(23)
    x, y, selector = (random.integers(-(2**31), 2**31, 600).astype(np.int32) for _ in range(3))
    selector[:2] = 0x3210, 0x7654
    numbers = np.concatenate([x.view(np.uint8).reshape(-1, 4), y.view(np.uint8).reshape(-1, 4)], axis=1)
    digits = np.stack([selector >> (4 * place) & 7 for place in range(4)], axis=1)
    expected = np.take_along_axis(numbers, digits, axis=1).copy().view(np.int32)[:, 0]
    np.testing.assert_array_equal(call("byte_perm", x.dtype, x, y, selector), expected)


def test_rcp64h_is_the_reciprocal_of_upper_halves() -> None:
    """Compare with PTX's rcp.approx.ftz.f64: subnormal numbers count as zeros."""
    x = np.array([1.0, 3.0, -7.5, 1 / 3, 0.0, -0.0, INF, -INF, NAN, 5e-324, -1e-310, 1e308, 2.0**-1022, 1e-5])
    out = call("rcp64h", x.dtype, x)
    upper = (x.view(np.int64) & -(1 << 32)).view(np.float64)
    with np.errstate(all="ignore"):
        exact = 1 / np.where(np.abs(x) < 2.0**-1022, np.copysign(0.0, x), upper)
    expected = (exact.view(np.int64) & -(1 << 32)).view(np.float64)
    expected = np.where(np.abs(exact) < 2.0**-1022, np.copysign(0.0, exact), expected)
    check(out, expected)


def reference_of_integers(name: str, width: int, signed: bool) -> Callable[..., int]:
    """Return a function on Python's integers, applied to the unsigned bits of the arguments."""

    def number(bits: int) -> int:
        return bits - (1 << width) if signed and bits >> (width - 1) else bits

    def low_24(bits: int) -> int:
        low = bits & 0xFFFFFF
        return low - (1 << 24) if signed and low >> 23 else low

    functions: dict[str, Callable[..., int]] = {
        "clz": lambda x: width - x.bit_length(),
        "popc": lambda x: x.bit_count(),
        "ffs": lambda x: (x & -x).bit_length(),
        "brev": lambda x: int(f"{x:0{width}b}"[::-1], 2),
        "mulhi": lambda x, y: number(x) * number(y) >> width,
        "hadd": lambda x, y: (number(x) + number(y)) >> 1,
        "rhadd": lambda x, y: (number(x) + number(y) + 1) >> 1,
        "mul24": lambda x, y: low_24(x) * low_24(y),
        "sad": lambda x, y, z: abs(number(x) - number(y)) + z,
    }
    return functions[name]


INTEGER_CASES = [
    *((name, kind) for name in ("clz", "popc", "ffs", "brev") for kind in (np.int32, np.int64)),
    *(("mulhi", kind) for kind in (np.int32, np.uint32, np.int64, np.uint64)),
    *((name, kind) for name in ("hadd", "rhadd", "mul24") for kind in (np.int32, np.uint32)),
    ("sad", np.uint32),
]


@pytest.mark.parametrize(("name", "kind"), INTEGER_CASES)
def test_functions_of_integers_are_exact(name: str, kind: Any) -> None:
    width, signed = np.iinfo(kind).bits, np.iinfo(kind).min < 0
    function = reference_of_integers(name, width, signed)
    count = len(inspect.signature(function).parameters)
    unsigned = np.dtype(f"u{np.dtype(kind).itemsize}")
    edges = [0, 1, 2, (1 << width) - 1, 1 << (width - 1), (1 << (width - 1)) - 1, 0xFFFFFF, 0x800000]
    random = np.random.default_rng(13)
    arguments = [
        np.concatenate([np.array(column, unsigned), random.integers(0, 1 << (width - 1), 300).astype(unsigned)])
        for column in zip(*itertools.product(edges, repeat=count), strict=True)
    ]
    result = np.int32 if name in ("clz", "popc", "ffs") else kind
    out = call(name, result, *(a.view(kind) for a in arguments))
    expected = [function(*(int(a) for a in row)) for row in zip(*arguments, strict=True)]
    bits = np.iinfo(result).bits
    got = out.view(np.dtype(f"u{np.dtype(result).itemsize}"))
    np.testing.assert_array_equal(got, np.array([e % (1 << bits) for e in expected], np.uint64).astype(got.dtype))
