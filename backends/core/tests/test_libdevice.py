"""The functions of Triton's libdevice module, each compared with NumPy in extended precision, with special values."""

from __future__ import annotations

import ast
import inspect
import itertools
import math
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl
from arrays import compute
from foundry_core.emit.mlir import Reg, Text
from foundry_core.errors import ToolError, UnsupportedOperation
from foundry_core.functions.directed import FROM_INTEGERS
from foundry_core.functions.table import F32_ONLY, FUNCTIONS
from foundry_core.mapping.base.vectors import VectorNumeric
from foundry_core.mapping.tasklet.numeric import TaskletNumeric
from foundry_core.ops.elementwise import ROWS, SYMBOLS
from foundry_core.ops.libdevice import NAMES
from foundry_core.ops.libdevice import call_libdevice as libdevice_call
from foundry_core.ops.limits import ULPS
from foundry_core.tensor import Tensor
from generated import imported
from image import ON_DPU
from results import check_same
from triton.language.extra import libdevice
from triton.language.extra.cuda import libdevice as libdevice_of_cuda

# backends/core/host/test_libdevice.py compares the bits on a DPU and on devices that take SPIR-V.
pytestmark = [pytest.mark.any_release, pytest.mark.values]

BLOCK = 256
FLOATS = {"f32": np.float32, "f64": np.float64}
# The type for references: x86's extended precision, with 64 bits of mantissa.
Wide = np.longdouble
INF, NAN = math.inf, math.nan

KERNEL = """
@triton.jit
def {name}({parameters}, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    result = libdevice.{name}({loads})
    tl.store(out + i, result, mask=i < n)
"""


def exactly(function: Callable[[float], float]) -> Callable[[Any], Any]:
    """Apply one of Python's functions that NumPy lacks, in float64; OverflowError becomes an infinity."""

    def one(x: float) -> float:
        try:
            return function(x)
        except OverflowError:
            return INF
        except ValueError:
            return NAN

    return lambda x: np.vectorize(one, otypes=[np.float64])(np.asarray(x, np.float64)).astype(Wide)


def gamma(x: float) -> float:
    """Compute C's tgamma: infinite at the zeros, NaN at negative integers and at minus infinity."""
    if x == -INF:
        return NAN
    return math.copysign(INF, x) if x == 0 else NAN if x < 0 and x == math.floor(x) else math.gamma(x)


def log_gamma(x: float) -> float:
    """Compute C's lgamma: infinite at 0 and at negative integers."""
    return INF if x <= 0 and x == math.floor(x) else math.lgamma(x)


def inverse_erf(x: float) -> float:
    """Compute the inverse by bisection on the floats, because math.erf is increasing."""
    if not abs(x) <= 1:
        return NAN
    if abs(x) == 1:
        return math.copysign(INF, x)
    size = abs(x)
    low, high = 0.0, 6.5
    for _ in range(1100):
        middle = low + (high - low) / 2
        if middle in (low, high):
            break
        rises = math.erf(middle) < size if size < 0.5 else math.erfc(middle) > 1 - size
        low, high = (middle, high) if rises else (low, middle)
    return math.copysign(high if size else 0.0, x)


def half_turns(function: Callable[[Any], Any], zero: float) -> Callable[[Any], Any]:
    """Return sin or cos of pi * x, after removing multiples of 2; `zero` is the x between 0 and 1 at which it is 0."""

    def turned(x: Any) -> Any:
        rest = np.fmod(x, Wide(2))
        # pi in extended precision: the second number is the part that float64 does not hold.
        found = function(rest * (Wide(np.pi) + Wide(1.2246467991473531772e-16)))
        return np.where(np.abs(rest) % 1 == zero, 0, found)

    return turned


def away_from_zero(x: Any) -> Any:
    rest = np.abs(np.where(np.isfinite(x), x, 0)) % 1
    return np.copysign(np.abs(x) - rest + (rest >= 0.5), x)


# The allowed errors in ulp; 0 if a result is exact or correctly rounded. That of lgamma is of at least 1, because its
# zeros are at 1 and 2. erfinv's error is at most 1.2 times that of erf or erfc, plus the error of its arithmetic.
ERRORS = ULPS | {"rcbrt": 3, "rhypot": 5, "erfinv": 22}
# Name, reference, and the range of arguments.
UNARY: dict[str, tuple[Callable[[Any], Any], float, float]] = {
    "exp": (np.exp, -80, 80),
    "exp2": (np.exp2, -120, 120),
    "expm1": (np.expm1, -10, 80),
    "exp10": (lambda x: Wide(10) ** x, -37, 37),
    "log": (np.log, 1e-30, 1e30),
    "log2": (np.log2, 1e-30, 1e30),
    "log10": (np.log10, 1e-30, 1e30),
    "log1p": (np.log1p, -0.999, 10),
    "sqrt": (np.sqrt, 0, 1e30),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 0, 1e3),
    "cbrt": (np.cbrt, -1e3, 1e3),
    "rcbrt": (lambda x: 1 / np.cbrt(x), -1e3, 1e3),
    "sin": (np.sin, -1e3, 1e3),
    "cos": (np.cos, -1e3, 1e3),
    "tan": (np.tan, -1e3, 1e3),
    "sinpi": (half_turns(np.sin, 0.0), -10, 10),
    "cospi": (half_turns(np.cos, 0.5), -10, 10),
    "asin": (np.arcsin, -1, 1),
    "acos": (np.arccos, -1, 1),
    "atan": (np.arctan, -20, 20),
    "sinh": (np.sinh, -80, 80),
    "cosh": (np.cosh, -80, 80),
    "tanh": (np.tanh, -10, 10),
    "asinh": (np.arcsinh, -1e3, 1e3),
    "acosh": (np.arccosh, 1, 1e3),
    "atanh": (np.arctanh, -1, 1),
    "erf": (exactly(math.erf), -4, 4),
    "erfc": (exactly(math.erfc), -4, 9),
    "erfinv": (exactly(inverse_erf), -1, 1),
    "lgamma": (exactly(log_gamma), -20, 100),
    "tgamma": (exactly(gamma), -5, 30),
    "floor": (np.floor, -100, 100),
    "ceil": (np.ceil, -100, 100),
    "trunc": (np.trunc, -100, 100),
    "rint": (np.rint, -100, 100),
    "nearbyint": (np.rint, -100, 100),
    "round": (away_from_zero, -100, 100),
    "abs": (np.abs, -100, 100),
    "logb": (
        np.vectorize(
            lambda x: NAN if x != x else INF if abs(x) == INF else -INF if x == 0 else Wide(np.frexp(x)[1] - 1),
            otypes=[Wide],
        ),
        -100,
        100,
    ),
    "rcp_rn": (lambda x: 1 / x, -100, 100),
}
SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    -1.5,
    2.0,
    2.5,
    -2.5,
    1e-3,
    1e-20,
    -1e-20,
    1.1754944e-38,
    1e-40,
    -1e-40,
    1e-45,
    8388607.5,
    16777217.0,
    1e10,
    -1e10,
    3.4e38,
    INF,
    -INF,
    NAN,
]
# Larger arguments are left out: the reference's own argument reduction is valid up to 2^63.
LARGEST = {"sin": 1e18, "cos": 1e18, "tan": 1e18}

BINARY: dict[str, tuple[Callable[[Any, Any], Any], float, float]] = {
    "atan2": (np.arctan2, -4, 4),
    "pow": (np.power, 0, 20),
    "hypot": (np.hypot, -1e3, 1e3),
    "fmod": (np.fmod, -1e3, 1e3),
    "copysign": (np.copysign, -4, 4),
    "fdim": (lambda x, y: np.where(np.isnan(x) | np.isnan(y), NAN, np.where(x > y, x - y, 0)), -4, 4),
    "remainder": (
        np.vectorize(lambda x, y: math.remainder(x, y) if y and abs(x) < INF else NAN, otypes=[float]),
        -9,
        9,
    ),
    "rhypot": (lambda x, y: 1 / np.hypot(x, y), -1e3, 1e3),
    "div_rn": (np.divide, -4, 4),
    "add_rn": (np.add, -4, 4),
    "mul_rn": (np.multiply, -4, 4),
    "sub_rn": (np.subtract, -4, 4),
}
# Exact functions: the reference is NumPy in the type itself.
SAME = {"fmod", "copysign", "remainder", "add_rn", "mul_rn", "sub_rn", "div_rn", "rcp_rn"}
TERNARY = {"norm3d": 5.0, "rnorm3d": 6.0}
BESSEL = ["j0", "j1", "y0", "y1", "cyl_bessel_i0", "cyl_bessel_i1"]
# Of names that differ in the source's type only, one each.
ROUNDED = ["int2float_rd", "uint2float_rz", "ull2float_ru", "ll2double_rd"]
TO_INTEGERS = ["llrint", "llround", "ilogb", "isnan", "isinf", "signbit"]
CONVERSIONS = [
    f"{source}2{target}_{mode}"
    for source, target, mode in itertools.product(
        ("float", "double"), ("int", "uint", "ll", "ull"), ("rn", "rz", "rd", "ru")
    )
]
# Functions that are basic arithmetic on every device, since OpenCL C has no such function.
WITHOUT_LIBRARY = {
    "rcbrt",
    "rhypot",
    "norm3d",
    "rnorm3d",
    "erfcx",
    "erfinv",
    "erfcinv",
    "normcdf",
    "normcdfinv",
    "rsqrt_rn",
    "jn",
    "yn",
    *BESSEL,
    *(f"{name}_{mode}" for name in ("add", "sub", "mul", "div", "rcp", "sqrt", "fma") for mode in ("rz", "rd", "ru")),
}
# Those of them that no other test runs.
BITS = [
    "erfcx",
    "normcdf",
    "normcdfinv",
    "add_rz",
    "sub_rd",
    "mul_rd",
    "div_ru",
    "rcp_rz",
    "sqrt_ru",
    "fma_rd",
    "rsqrt_rn",
    *BESSEL,
]
OF_INTEGERS = ["clz", "popc", "ffs", "brev", "mulhi", "hadd", "rhadd", "mul24", "sad"]
TESTED = [
    *(*UNARY, *BINARY, *TERNARY, *OF_INTEGERS, *TO_INTEGERS, *CONVERSIONS, *ROUNDED, *BITS),
    *("jn", "yn", "byte_perm", "rcp64h", "double2float_rz", "double2float_rd", "double2float_ru"),
    *("finitef", "isfinited", "saturatef", "erfcinv", "nextafter", "ldexp", "fma"),
    *("float_as_int", "int_as_float", "double_as_longlong", "longlong_as_double"),
    *("double2hiint", "double2loint", "hiloint2double", "double2float_rn", "ll2float_rn", "uint2float_rn"),
]
# Symbols that Triton calls by another name, or that are equivalent to a tested one.
SAME_AS = {"fabs": "abs", "scalbn": "ldexp", "powi": "pow", "norm4d": "norm3d", "rnorm4d": "rnorm3d", "pown": "pow"}
SAME_AS |= dict.fromkeys(FROM_INTEGERS, "int2float_rd")
SAME_AS |= {f"{name[:-1]}{mode}": name for name in BITS if name[-3:-1] == "_r" for mode in "zdu"}


def arity(name: str) -> int:
    """Return the number of arguments of one of Triton's functions, without those that the compiler adds."""
    parameters = inspect.signature(getattr(libdevice, name)).parameters
    return sum(not parameter.startswith("_") for parameter in parameters)


def test_every_function_that_is_lowered_is_tested() -> None:
    known = {name for row in ROWS for name in row.libdevice} | NAMES
    assert {SAME_AS.get(name, name) for name in known} - set(TESTED) == set()


@pytest.fixture(scope="session")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """Return a module with a kernel for each function."""
    text = ["import triton\nimport triton.language as tl\nfrom triton.language.extra import libdevice\n"]
    for name in TESTED:
        letters = "xyz"[: arity(name)]
        loads = ", ".join(f"tl.load({letter} + i, mask=i < n)" for letter in letters)
        text.append(KERNEL.format(name=name, parameters=", ".join(letters), loads=loads))
    return imported(tmp_path_factory.mktemp("libdevice") / "libdevice_kernels.py", "\n".join(text))


def run(kernels: ModuleType, name: str, out: np.ndarray, *arguments: np.ndarray) -> np.ndarray:
    """Return the function's results for arrays of one length, written into a poisoned array."""
    out.view(np.uint8).fill(0x5A)
    tensors = [Tensor(np.ascontiguousarray(array)) for array in (*arguments, out)]

    def launch() -> None:
        getattr(kernels, name)[(triton.cdiv(out.size, BLOCK),)](*tensors, out.size, BLOCK=BLOCK)

    launch()
    if name in FUNCTIONS and (ON_DPU or name in WITHOUT_LIBRARY):
        # Compared with NumPy's arithmetic, whose errors test_functions.py measures.
        own = "pown" if name == "pow" and arguments[1].dtype.kind == "i" else name
        # The kernel computes in the type of its arguments, and rounds when it stores.
        elem = "f64" if np.float64 in {array.dtype.type for array in (*arguments, out)} else "f32"
        with np.errstate(all="ignore"):
            expected = compute(own, elem, *arguments).astype(out.dtype)
        check_same(out, expected)
    return out


def check(out: np.ndarray, reference: Any, error: float, *, least: float = 0.0, signed: bool = True) -> None:
    """Check an error in ulp against a reference; infinities, NaN and the signs of zeros must be equal."""
    info = ml_dtypes.finfo(out.dtype)
    with np.errstate(all="ignore"):
        rounded = np.asarray(reference).astype(out.dtype)
        size = np.maximum(np.maximum(np.abs(np.asarray(reference, Wide)), float(info.smallest_normal)), least)
        # Half an ulp for rounding the reference itself if it is not a number of the type.
        allowed = (error + 0.5) * np.exp2(np.floor(np.log2(size)) - info.nmant)
        near = np.abs(out.astype(Wide) - reference) <= allowed
    finite = np.isfinite(rounded)
    np.testing.assert_array_equal(np.isnan(out), np.isnan(rounded))
    if error == 0:
        np.testing.assert_array_equal(out, rounded)
    # At the end of the range, the result may be the largest number or infinity, within the allowed error.
    with np.errstate(all="ignore"):
        edge = np.isinf(rounded) & np.isfinite(np.asarray(reference, Wide)) & (np.abs(out) > float(info.max) / 2)
    np.testing.assert_array_equal(out[~finite & ~edge], rounded[~finite & ~edge])
    bad = finite & ~near
    assert not bad.any(), f"{np.count_nonzero(bad)}: {out[bad][:5]} for {rounded[bad][:5]}"
    # The sign of a zero between two numbers: OpenCL specifies it for sinpi and cospi; PoCL returns the opposite one.
    zero = signed & (rounded == 0) & (np.asarray(reference) == 0) & (out == 0)
    np.testing.assert_array_equal(np.signbit(out[zero]), np.signbit(rounded[zero]))


def drawn(low: float, high: float, dtype: Any, seed: int, count: int = 700) -> np.ndarray:
    return np.random.default_rng(seed).uniform(low, high, count).astype(dtype)


@pytest.mark.parametrize("type", FLOATS)
@pytest.mark.parametrize("name", UNARY)
def test_functions_are_as_exact_as_opencl_promises(kernels: ModuleType, name: str, type: str) -> None:
    function, low, high = UNARY[name]
    dtype = FLOATS[type]
    x = np.concatenate([drawn(low, high, dtype, 1), np.array(SPECIAL).astype(dtype)])
    x = x[~(np.abs(x) > LARGEST.get(name, INF)) | np.isinf(x)]
    with np.errstate(all="ignore"):
        reference = function(x if name in SAME else x.astype(Wide))
    out = run(kernels, name, np.empty_like(x), x)
    check(out, reference, ERRORS.get(name, 0), least=1.0 if name == "lgamma" else 0.0, signed=not name.endswith("pi"))


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
def test_a_special_value_changes_nothing_beside_it(kernels: ModuleType, name: str, type: str) -> None:
    """PoCL's vector functions have branches that are taken for a whole vector, and some of them are wrong."""
    dtype, values = FLOATS[type], [value for value in [*SPECIAL, 1e-310, 5e-324, 1e300] if value != -1e-20]
    function, low, high = (UNARY | BINARY)[name]
    values = [value for value in values if not LARGEST.get(name, INF) < value < INF]
    x = np.concatenate([vectors_with(value, low, high, dtype) for value in values])
    arguments = [x, drawn(-high, high, dtype, 15, x.size)] if name == "pow" else [x]
    with np.errstate(all="ignore"):
        reference = function(*(argument.astype(Wide) for argument in arguments))
    out = run(kernels, name, np.empty_like(x), *arguments)
    check(out, reference, ERRORS[name], least=1.0 if name == "lgamma" else 0.0)


@pytest.mark.parametrize("name", ["exp", "rint", "erfc"])
def test_functions_of_numbers_wider_than_what_is_stored(kernels: ModuleType, name: str) -> None:
    """The number of lanes is chosen for the stored type. It is twice what a function accepts at a time."""
    x = drawn(-4, 4, np.float64, 16)
    function, _, _ = UNARY[name]
    check(run(kernels, name, np.empty(x.size, np.float32), x), function(x.astype(Wide)), ERRORS.get(name, 0))


@pytest.mark.parametrize("type", FLOATS)
def test_powers_with_whole_exponents(kernels: ModuleType, type: str) -> None:
    x, power = np.array([*itertools.product([*SPECIAL, 1e-310], [0, 1, -1, 2, 3, -3, 10, -20])], object).T
    x, power = x.astype(FLOATS[type]), power.astype(np.int32)
    with np.errstate(all="ignore"):
        reference = np.power(x.astype(Wide), power.astype(Wide))
    check(run(kernels, "pow", np.empty_like(x), x, power), reference, ULPS["pow"])


def pairs(low: float, high: float, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return random pairs, and all pairs of special values."""
    x, y = zip(*itertools.product(SPECIAL, SPECIAL), strict=True)
    return (
        np.concatenate([drawn(low, high, dtype, 2), np.array(x).astype(dtype)]),
        np.concatenate([drawn(-abs(high), high, dtype, 3), np.array(y).astype(dtype)]),
    )


@pytest.mark.parametrize("type", FLOATS)
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_arguments_are_as_exact_as_opencl_promises(kernels: ModuleType, name: str, type: str) -> None:
    function, low, high = BINARY[name]
    x, y = pairs(low, high, FLOATS[type])
    with np.errstate(all="ignore"):
        reference = function(x, y) if name in SAME else function(x.astype(Wide), y.astype(Wide))
    if name == "remainder":
        # math.remainder raises an error for an infinite first argument or a second argument of 0; C returns NaN.
        reference = reference.astype(x.dtype)
    check(run(kernels, name, np.empty_like(x), x, y), reference, ERRORS.get(name, 0))


@pytest.mark.parametrize("type", FLOATS)
@pytest.mark.parametrize("name", TERNARY)
def test_norms_neither_overflow_nor_vanish_on_the_way(kernels: ModuleType, name: str, type: str) -> None:
    dtype = FLOATS[type]
    scale = np.repeat(np.array([1e-25, 1.0, 1e25]), 100)
    x, y, z = ((drawn(-1, 1, np.float64, seed, 300) * scale).astype(dtype) for seed in (4, 5, 6))
    reference = np.sqrt(x.astype(Wide) ** 2 + y.astype(Wide) ** 2 + z.astype(Wide) ** 2)
    # Twice hypot's 4 ulp, of which the inner one counts in part; a division for the reciprocal.
    check(run(kernels, name, np.empty_like(x), x, y, z), reference if name == "norm3d" else 1 / reference, 9)


@pytest.mark.parametrize(
    ("name", "type"), [(name, type) for name in BITS for type in FLOATS if type == "f32" or name not in F32_ONLY]
)
def test_functions_that_opencl_does_not_have_give_the_bits_of_their_arithmetic(
    kernels: ModuleType, name: str, type: str
) -> None:
    """`run` compares them with NumPy's arithmetic; test_functions.py measures how exact that is."""
    arguments = [
        np.concatenate([np.array(SPECIAL), drawn(0, 1, np.float64, 17), drawn(-9, 9, np.float64, 18)])
    ] * arity(name)
    with np.errstate(all="ignore"):
        x = [argument.astype(FLOATS[type]) for argument in arguments]
    run(kernels, name, np.empty_like(x[0]), *x)


@pytest.mark.parametrize("type", FLOATS)
def test_fma_rounds_once(kernels: ModuleType, type: str) -> None:
    dtype = FLOATS[type]
    x, y = drawn(1, 2, dtype, 7), drawn(1, 2, dtype, 8)
    product = x * y
    out = run(kernels, "fma", np.empty_like(x), x, y, -product)
    # The rounding error of the product. Another rounding would make it 0.
    exact = np.array([float(error(a, b, p)) for a, b, p in zip(x, y, product, strict=True)])
    np.testing.assert_array_equal(out.astype(np.float64), exact)
    assert np.count_nonzero(out) > out.size // 2


def error(x: Any, y: Any, product: Any) -> Any:
    from fractions import Fraction

    return Fraction(float(x)) * Fraction(float(y)) - Fraction(float(product))


@pytest.mark.parametrize("type", FLOATS)
def test_nextafter_is_the_next_number(kernels: ModuleType, type: str) -> None:
    x, y = pairs(-4, 4, FLOATS[type])
    out = run(kernels, "nextafter", np.empty_like(x), x, y)
    np.testing.assert_array_equal(out, np.nextafter(x, y))


@pytest.mark.parametrize("type", FLOATS)
def test_ldexp_is_rounded_once_from_the_largest_to_the_smallest(kernels: ModuleType, type: str) -> None:
    dtype = FLOATS[type]
    powers = np.array([0, 1, -1, 24, -24, 127, -149, 1023, -1074, 2000, -3000], np.int32)
    x, power = np.repeat(np.array(SPECIAL), powers.size).astype(dtype), np.tile(powers, len(SPECIAL))
    out = run(kernels, "ldexp", np.empty_like(x), x, power)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(out, np.ldexp(x, power))


@pytest.mark.parametrize("type", FLOATS)
def test_the_inverse_of_erfc_reaches_where_erfc_is_small(kernels: ModuleType, type: str) -> None:
    """Apply erfc to the result in float64: a step of y by one ulp changes it by about 2 y^2 ulp."""
    dtype, least = FLOATS[type], 1e-30 if type == "f32" else 1e-290
    tails = np.concatenate([np.geomspace(least, 1, 300), np.linspace(1, 1.99, 100)]).astype(dtype)
    out = run(kernels, "erfcinv", np.empty_like(tails), tails)
    again = exactly(math.erfc)(out.astype(np.float64))
    allowed = (16 + 8 * (1 + 2 * out.astype(Wide) ** 2)) * tails * float(ml_dtypes.finfo(dtype).eps)
    assert np.all(np.abs(again - tails) <= allowed)
    edges = run(kernels, "erfcinv", np.empty(5, dtype), np.array([0, 2, -1, 3, NAN]).astype(dtype))
    np.testing.assert_array_equal(edges, [INF, -INF, NAN, NAN, NAN])


@pytest.mark.parametrize("type", FLOATS)
def test_questions_about_a_number_are_answered_with_1_or_0(kernels: ModuleType, type: str) -> None:
    x = np.array(SPECIAL).astype(FLOATS[type])
    finite = "finitef" if type == "f32" else "isfinited"
    for name, function in (("isnan", np.isnan), ("isinf", np.isinf), ("signbit", np.signbit), (finite, np.isfinite)):
        out = run(kernels, name, np.empty(x.size, np.int32), x)
        np.testing.assert_array_equal(out, function(x).astype(np.int32), err_msg=name)


def test_saturatef_keeps_a_number_between_0_and_1(kernels: ModuleType) -> None:
    x = np.array(SPECIAL, np.float32)
    out = run(kernels, "saturatef", np.empty_like(x), x)
    np.testing.assert_array_equal(out, np.where(np.isnan(x), 0, np.clip(x, 0, 1)))


@pytest.mark.parametrize("type", FLOATS)
def test_the_exponent_as_an_integer(kernels: ModuleType, type: str) -> None:
    x = np.concatenate([np.array(SPECIAL), drawn(-9, 9, np.float64, 9)]).astype(FLOATS[type])
    info = np.iinfo(np.int32)
    expected = [info.min if a == 0 or a != a else info.max if abs(a) == INF else math.frexp(a)[1] - 1 for a in x]
    np.testing.assert_array_equal(run(kernels, "ilogb", np.empty(x.size, np.int32), x), expected)


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
def test_conversions_to_integers_round_as_named_and_saturate(kernels: ModuleType, name: str) -> None:
    dtype = np.float32 if name.startswith("float") else np.float64
    target, rounding = name.split("2")[1].split("_") if "2" in name else ("ll", "")
    function = ROUNDINGS.get(rounding, np.rint if name == "llrint" else away_from_zero)
    edges = [2.0**31, -(2.0**31), 2.0**31 - 128, 2.0**32, 2.0**63, -(2.0**63), 2.0**64, 2147483647.5, 4294967295.5]
    x = np.concatenate([np.array(SPECIAL + edges), drawn(-100, 100, np.float64, 10)]).astype(dtype)
    kind = INTEGERS[target]
    expected = to_integers(function(x), kind)
    np.testing.assert_array_equal(run(kernels, name, np.empty(x.size, kind), x), expected)


@pytest.mark.parametrize(
    ("name", "source", "target"),
    [
        ("float_as_int", np.float32, np.int32),
        ("int_as_float", np.int32, np.float32),
        ("double_as_longlong", np.float64, np.int64),
        ("longlong_as_double", np.int64, np.float64),
    ],
)
def test_bits_are_kept(kernels: ModuleType, name: str, source: Any, target: Any) -> None:
    x = np.random.default_rng(11).integers(0, 256, 4000, np.uint8).view(source)
    out = run(kernels, name, np.empty(x.size, target), x)
    assert out.tobytes() == x.tobytes()


def test_halves_of_a_double(kernels: ModuleType) -> None:
    x = np.array(SPECIAL)
    upper, lower = (run(kernels, f"double2{half}int", np.empty(x.size, np.int32), x) for half in ("hi", "lo"))
    np.testing.assert_array_equal(lower, x.view(np.int32)[::2])
    np.testing.assert_array_equal(upper, x.view(np.int32)[1::2])
    assert run(kernels, "hiloint2double", np.empty_like(x), upper, lower).tobytes() == x.tobytes()


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("double2float_rn", np.float64),
        ("ll2float_rn", np.int64),
        ("uint2float_rn", np.uint32),
    ],
)
def test_conversions_to_f32_round_to_nearest(kernels: ModuleType, name: str, source: Any) -> None:
    if np.dtype(source).kind == "f":
        x = np.random.default_rng(12).standard_normal(1000)
    else:
        x = np.random.default_rng(12).integers(0, np.iinfo(source).max, 1000, source)
    np.testing.assert_array_equal(run(kernels, name, np.empty(1000, np.float32), x), x.astype(np.float32))


@pytest.mark.parametrize("name", ROUNDED)
def test_integers_become_floats_rounded_in_a_direction(kernels: ModuleType, name: str) -> None:
    """Compare with the same arithmetic in NumPy; test_functions.py compares that with exact numbers."""
    source, target, mode = re.split("[2_]", name)
    kind: Any = {"int": np.int32, "uint": np.uint32, "ll": np.int64, "ull": np.uint64}[source]
    info = np.iinfo(kind)
    edges = [0, 1, info.max, info.min, info.max // 2 + 1, (1 << 24) + 1, (1 << 25) - 1]
    x = np.concatenate([np.array(edges, kind), np.random.default_rng(20).integers(info.min, info.max, 500, kind)])
    elem = {"float": "f32", "double": "f64"}[target]
    expected = compute(f"{source}_{mode}", elem, x.view(f"i{x.itemsize}"))
    np.testing.assert_array_equal(run(kernels, name, np.empty_like(expected), x), expected)


@pytest.mark.parametrize("mode", ["rz", "rd", "ru"])
def test_f64_becomes_f32_rounded_in_a_direction(kernels: ModuleType, mode: str) -> None:
    tiny, most = 2.0**-149, float(np.finfo(np.float32).max)
    edges = [most, most * (1 + 1e-9), 1e300, tiny, tiny / 2, tiny * 1.5, 1e-300, 5e-324, 1 + 2.0**-30, 1.0, 2.0**-126]
    edges += [2.0**-126 * (1 - 1e-12), 0.0, INF, NAN]
    bits = np.random.default_rng(21).integers(0, 256, 8000, np.uint8).view(np.float64)
    with np.errstate(all="ignore"):
        small = bits / 2.0**500
    x = np.concatenate([np.array(edges), -np.array(edges), bits, small, drawn(-9, 9, np.float64, 22)])
    out = run(kernels, f"double2float_{mode}", np.empty(x.size, np.float32), x)
    with np.errstate(all="ignore"):
        near = x.astype(np.float32)
        below = np.where(near > x, np.nextafter(near, np.float32(-INF)), near)
        above = np.where(near < x, np.nextafter(near, np.float32(INF)), near)
    expected = {"rd": below, "ru": above, "rz": np.where(x > 0, below, above)}[mode]
    check_same(out, expected)


def test_bytes_are_chosen_by_the_digits_of_the_selector(kernels: ModuleType) -> None:
    random = np.random.default_rng(23)
    x, y, selector = (random.integers(-(2**31), 2**31, 600).astype(np.int32) for _ in range(3))
    selector[:2] = 0x3210, 0x7654
    numbers = np.concatenate([x.view(np.uint8).reshape(-1, 4), y.view(np.uint8).reshape(-1, 4)], axis=1)
    digits = np.stack([selector >> (4 * place) & 7 for place in range(4)], axis=1)
    expected = np.take_along_axis(numbers, digits, axis=1).copy().view(np.int32)[:, 0]
    np.testing.assert_array_equal(run(kernels, "byte_perm", np.empty_like(x), x, y, selector), expected)


def test_rcp64h_is_the_reciprocal_of_upper_halves(kernels: ModuleType) -> None:
    """Compare with PTX's rcp.approx.ftz.f64: subnormal numbers count as zeros."""
    x = np.array([1.0, 3.0, -7.5, 1 / 3, 0.0, -0.0, INF, -INF, NAN, 5e-324, -1e-310, 1e308, 2.0**-1022, 1e-5])
    out = run(kernels, "rcp64h", np.empty_like(x), x)
    upper = (x.view(np.int64) & -(1 << 32)).view(np.float64)
    with np.errstate(all="ignore"):
        exact = 1 / np.where(np.abs(x) < 2.0**-1022, np.copysign(0.0, x), upper)
    expected = (exact.view(np.int64) & -(1 << 32)).view(np.float64)
    expected = np.where(np.abs(exact) < 2.0**-1022, np.copysign(0.0, exact), expected)
    check_same(out, expected)


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
def test_functions_of_integers_are_exact(kernels: ModuleType, name: str, kind: Any) -> None:
    width, signed = np.iinfo(kind).bits, np.iinfo(kind).min < 0
    unsigned = np.dtype(f"u{np.dtype(kind).itemsize}")
    edges = [0, 1, 2, (1 << width) - 1, 1 << (width - 1), (1 << (width - 1)) - 1, 0xFFFFFF, 0x800000]
    random = np.random.default_rng(13)
    arguments = [
        np.concatenate([np.array(column, unsigned), random.integers(0, 1 << (width - 1), 300).astype(unsigned)])
        for column in zip(*itertools.product(edges, repeat=arity(name)), strict=True)
    ]
    result = np.int32 if name in ("clz", "popc", "ffs") else kind
    out = run(kernels, name, np.empty(arguments[0].size, result), *(a.view(kind) for a in arguments))
    function = reference_of_integers(name, width, signed)
    expected = [function(*(int(a) for a in row)) for row in zip(*arguments, strict=True)]
    bits = np.iinfo(result).bits
    got = out.view(np.dtype(f"u{np.dtype(result).itemsize}"))
    np.testing.assert_array_equal(got, np.array([e % (1 << bits) for e in expected], np.uint64).astype(got.dtype))


def symbols() -> dict[str, tuple[str, ...]]:
    """Return the types of the arguments of every symbol that a function of Triton's module calls, from its source."""
    found: dict[str, tuple[str, ...]] = {}
    for node in ast.walk(ast.parse(inspect.getsource(libdevice_of_cuda))):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                words = re.findall("'([a-z0-9_]+)'", ast.unparse(value), re.IGNORECASE)
                types = re.findall("'([a-z0-9]+)'", ast.unparse(key))  # type: ignore[arg-type]
                assert types and words[0].startswith("__nv_")
                found[words[0]] = tuple(types)
    return found


def test_every_function_of_triton_is_lowered() -> None:
    elements = {"fp32": "f32", "fp64": "f64"} | {
        f"{sign}int{bits}": f"i{bits}" for sign in ("", "u") for bits in (32, 64)
    }
    missing = set()
    for symbol, types in symbols().items():
        numeric = (TaskletNumeric if ON_DPU else VectorNumeric)(Text())
        arguments = [Reg(f"%a{place}", elements[type]) for place, type in enumerate(types)]
        if symbol not in SYMBOLS and libdevice_call(numeric, symbol, arguments) is None:
            missing.add(symbol)
    assert len(symbols()) > 300
    assert missing == set()


@triton.jit
def unheard_of(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, nothing(tl.load(x + i)))


@tl.core.extern
def nothing(x: Any, _semantic: Any = None) -> Any:
    single = tl.core.dtype("fp32")
    symbols = {(single,): ("__nv_nothingf", single)}
    return tl.core.extern_elementwise("", "", [x], symbols, is_pure=True, _semantic=_semantic)


def test_unknown_libdevice_function_is_refused_by_name_and_line() -> None:
    x = Tensor(np.ones(BLOCK, np.float32))
    with pytest.raises(UnsupportedOperation, match=r"tt.extern_elementwise at .*\.py:\d+ .*__nv_nothingf") as caught:
        unheard_of[(1,)](x, x, BLOCK, BLOCK=BLOCK)
    assert caught.value.place.endswith(f"test_libdevice.py:{unheard_of.starting_line_number + 3}")


@pytest.mark.parametrize("type", FLOATS)
@pytest.mark.parametrize("name", ["jn", "yn"])
def test_bessel_functions_of_any_order_give_the_bits_of_their_arithmetic(
    kernels: ModuleType, name: str, type: str
) -> None:
    random = np.random.default_rng(24)
    with np.errstate(all="ignore"):
        x = np.concatenate([np.array(SPECIAL), random.uniform(-2, 60, 300), random.uniform(0, 4, 100)]).astype(
            FLOATS[type]
        )
    n = random.integers(-12, 40, x.size).astype(np.int32)
    if ON_DPU and type == "f64":
        with pytest.raises(ToolError, match="does not fit into IRAM"):
            run(kernels, name, np.empty_like(x), n, x)
        return
    run(kernels, name, np.empty_like(x), n, x)
