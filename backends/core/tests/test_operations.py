"""Triton's operations after the lowering, each compared with NumPy, on the active driver's device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.ops.limits import ULPS
from foundry_core.tensor import Tensor
from results import last_place, poisoned

BLOCK = 256
N = 1000  # not a multiple of the block: the last program is masked
F16, BF16, F32, F64 = np.float16, ml_dtypes.bfloat16, np.float32, np.float64
FLOATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}


def numbers(dtype: Any, count: int = N, low: float = 0.1, high: float = 4.0, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.uniform(low, high, count).astype(dtype)


def integers(dtype: Any, count: int = N, seed: int = 0) -> np.ndarray:
    info = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(info.min, info.max, count, dtype=dtype, endpoint=True)


def launch(kernel: Any, *arrays: np.ndarray, **constants: object) -> None:
    kernel[(triton.cdiv(N, BLOCK),)](*(Tensor(a) for a in arrays), N, BLOCK=BLOCK, **constants)


@triton.jit
def unary(x, out, n, OP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    if OP == "exp":
        r = tl.exp(v)
    elif OP == "exp2":
        r = tl.exp2(v)
    elif OP == "log":
        r = tl.log(v)
    elif OP == "log2":
        r = tl.log2(v)
    elif OP == "sqrt":
        r = tl.sqrt(v)
    elif OP == "sqrt_rn":
        r = tl.sqrt_rn(v)
    elif OP == "rsqrt":
        r = tl.rsqrt(v)
    elif OP == "sin":
        r = tl.sin(v)
    elif OP == "cos":
        r = tl.cos(v)
    elif OP == "erf":
        r = tl.erf(v)
    elif OP == "floor":
        r = tl.floor(v)
    elif OP == "ceil":
        r = tl.ceil(v)
    elif OP == "abs":
        r = tl.abs(v)
    elif OP == "sigmoid":
        r = tl.sigmoid(v)
    else:
        tl.static_assert(OP == "neg")
        r = -v
    tl.store(out + i, r, mask=i < n)


def erf(x: np.ndarray) -> np.ndarray:
    import math

    return np.vectorize(math.erf)(x)


UNARY: dict[str, Callable[..., Any]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "sqrt": np.sqrt,
    "sqrt_rn": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "cos": np.cos,
    "erf": erf,
    "floor": np.floor,
    "ceil": np.ceil,
    "abs": np.abs,
    "neg": np.negative,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}
# 1 / (1 + exp(-x)): 3 ulp of exp, half an ulp each for the sum and the quotient.
ERRORS = ULPS | {"sigmoid": 4}


# For most of them, Triton's front end accepts only f32 and f64; for sqrt_rn only f32.
UNARY_CASES = [(name, "f32") for name in UNARY] + [(name, "f64") for name in UNARY if name != "sqrt_rn"]
UNARY_CASES += [(name, dtype) for name in ("abs", "neg") for dtype in ("f16", "bf16")]


@pytest.mark.parametrize(("name", "type"), UNARY_CASES)
def test_unary_functions_are_as_exact_as_opencl_promises(name: str, type: str) -> None:
    function, error = UNARY[name], ERRORS.get(name, 0)
    dtype = FLOATS[type]
    x, out = numbers(dtype, low=0.1), poisoned(N, dtype=dtype)
    launch(unary, x, out, OP=name)
    reference = function(x.astype(F64))
    # Half an ulp for rounding the reference itself if it is not a number of the type.
    allowed = (error + 0.5) * last_place(reference, dtype)
    assert np.all(np.abs(out.astype(F64) - reference) <= allowed)


@triton.jit
def binary(x, y, out, n, OP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n)
    b = tl.load(y + i, mask=i < n)
    if OP == "add":
        r = a + b
    elif OP == "sub":
        r = a - b
    elif OP == "mul":
        r = a * b
    elif OP == "div":
        r = a / b
    elif OP == "div_rn":
        r = tl.div_rn(a, b)
    elif OP == "umulhi":
        r = tl.umulhi(a, b)
    elif OP == "floordiv":
        r = a // b
    elif OP == "mod":
        r = a % b
    elif OP == "and":
        r = a & b
    elif OP == "or":
        r = a | b
    elif OP == "xor":
        r = a ^ b
    elif OP == "shl":
        r = a << (b & 7)
    elif OP == "shr":
        r = a >> (b & 7)
    elif OP == "minimum":
        r = tl.minimum(a, b)
    elif OP == "maximum":
        r = tl.maximum(a, b)
    elif OP == "minimum_nan":
        r = tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)
    elif OP == "maximum_nan":
        r = tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
    elif OP == "where":
        r = tl.where(a > b, a, b * 2)
    else:
        tl.static_assert(OP == "lt")
        r = a < b
    tl.store(out + i, r, mask=i < n)


FLOAT_BINARY: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "minimum": np.fmin,
    "maximum": np.fmax,
    "where": lambda a, b: np.where(a > b, a, b * 2),
}


# Triton computes quotients of f16 and bf16 in f32.
FLOAT_CASES = [(n, t) for n in FLOAT_BINARY for t in ("f16", "bf16", "f32", "f64") if (n, t[-2:]) != ("div", "16")]


@pytest.mark.parametrize(("name", "type"), FLOAT_CASES)
def test_float_arithmetic_is_correctly_rounded(name: str, type: str) -> None:
    dtype = FLOATS[type]
    x, y, out = numbers(dtype, seed=1, low=-4), numbers(dtype, seed=2, low=-4), poisoned(N, dtype=dtype)
    launch(binary, x, y, out, OP=name)
    with np.errstate(all="ignore"):
        # In f64, the operations on narrower types are exact except division; one rounding follows.
        reference = FLOAT_BINARY[name](x.astype(F64), y.astype(F64)).astype(dtype)
    np.testing.assert_array_equal(out, reference)


def test_div_rn_divides_the_first_by_the_second() -> None:
    x, y, out = numbers(F32, seed=1), numbers(F32, seed=2), poisoned(N, dtype=F32)
    launch(binary, x, y, out, OP="div_rn")
    np.testing.assert_array_equal(out, x / y)


def test_umulhi_is_the_upper_half_of_the_product() -> None:
    x, y, out = integers(np.uint32, seed=1), integers(np.uint32, seed=2), poisoned(N, dtype=np.uint32)
    launch(binary, x, y, out, OP="umulhi")
    np.testing.assert_array_equal(out, (x.astype(np.uint64) * y >> 32).astype(np.uint32))


INT_BINARY: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "shl": lambda a, b: a << (b & 7),
    "shr": lambda a, b: a >> (b & 7),
    "where": lambda a, b: np.where(a > b, a, b * 2),
}


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint32])
@pytest.mark.parametrize("name", INT_BINARY)
def test_integer_arithmetic_wraps_around(name: str, dtype: Any) -> None:
    x, y, out = integers(dtype, seed=1), integers(dtype, seed=2), poisoned(N, dtype=dtype)
    launch(binary, x, y, out, OP=name)
    with np.errstate(all="ignore"):
        reference = INT_BINARY[name](x, y).astype(dtype)
    np.testing.assert_array_equal(out, reference)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint32])
@pytest.mark.parametrize("name", ["floordiv", "mod"])
def test_integer_division_truncates_as_in_c(name: str, dtype: Any) -> None:
    x, y, out = integers(dtype, seed=1), integers(dtype, seed=2), poisoned(N, dtype=dtype)
    y[y == 0] = 3
    launch(binary, x, y, out, OP=name)
    a, b = x.astype(object), y.astype(object)
    quotient = np.array([abs(i) // abs(j) * (1 if (i < 0) == (j < 0) else -1) for i, j in zip(a, b, strict=True)])
    reference = quotient if name == "floordiv" else a - quotient * b
    np.testing.assert_array_equal(out, reference.astype(object).astype(dtype))


def test_dividing_by_zero_or_overflowing_does_not_kill_the_process() -> None:
    x, y, out = np.full(N, np.iinfo(np.int32).min, np.int32), np.zeros(N, np.int32), poisoned(N, dtype=np.int32)
    y[1::2] = -1
    launch(binary, x, y, out, OP="floordiv")
    assert np.all(out[1::2] == np.iinfo(np.int32).min)


@pytest.mark.parametrize("dtype", [F16, BF16, F32, F64], ids=["f16", "bf16", "f32", "f64"])
def test_min_and_max_treat_nan_as_asked(dtype: Any) -> None:
    x, y = numbers(dtype, seed=1), numbers(dtype, seed=2)
    x[::3], y[::5] = np.nan, np.nan
    for name, reference in (
        ("minimum", np.fmin),
        ("maximum", np.fmax),
        ("minimum_nan", np.minimum),
        ("maximum_nan", np.maximum),
    ):
        out = np.full(N, 77, dtype)
        launch(binary, x, y, out, OP=name)
        np.testing.assert_array_equal(out.astype(F64), reference(x.astype(F64), y.astype(F64)))


def test_comparison_stores_a_boolean() -> None:
    x, y, out = numbers(F32, seed=1), numbers(F32, seed=2), np.full(N, 77, np.int8)
    launch(binary, x, y, out, OP="lt")
    np.testing.assert_array_equal(out, (x < y).astype(np.int8))


@triton.jit
def comparisons(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n)
    b = tl.load(y + i, mask=i < n)
    tl.store(out + i, a < b, mask=i < n)
    tl.store(out + n + i, a <= b, mask=i < n)
    tl.store(out + 2 * n + i, a > b, mask=i < n)
    tl.store(out + 3 * n + i, a >= b, mask=i < n)
    tl.store(out + 4 * n + i, a == b, mask=i < n)
    tl.store(out + 5 * n + i, a != b, mask=i < n)


@pytest.mark.parametrize("type", FLOATS)
def test_comparisons_with_nan_are_false_but_for_unequal(type: str) -> None:
    special = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan])
    x, y = (np.resize(array.ravel(), N).astype(FLOATS[type]) for array in np.meshgrid(special, special))
    out = np.full((6, N), 77, np.int8)
    launch(comparisons, x, y, out)
    functions = (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal)
    np.testing.assert_array_equal(out, [function(x.astype(F64), y.astype(F64)) for function in functions])


@triton.jit
def compared_booleans(x, y, out, lesser, greater, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i)
    b = tl.load(y + i)
    tl.store(out + i, a < b)
    tl.store(out + BLOCK + i, a <= b)
    tl.store(out + 2 * BLOCK + i, a > b)
    tl.store(out + 3 * BLOCK + i, a >= b)
    tl.store(out + 4 * BLOCK + i, a == b)
    tl.store(out + 5 * BLOCK + i, a != b)
    p, q = tl.load(x + lesser), tl.load(x + greater)
    tl.store(out + 6 * BLOCK + 0, p < q)
    tl.store(out + 6 * BLOCK + 1, p <= q)
    tl.store(out + 6 * BLOCK + 2, p > q)
    tl.store(out + 6 * BLOCK + 3, p >= q)


@pytest.mark.parametrize("block", [4, 64])
def test_false_is_less_than_true(block: int) -> None:
    """The differential tests found that SPIR-V compares booleans differently (seed 200)."""
    x, y = (np.resize(np.array(each, bool), block) for each in ([0, 0, 1, 1], [0, 1, 0, 1]))
    out = np.full((7, block), 77, np.int8)
    compared_booleans[(1,)](Tensor(x), Tensor(y), Tensor(out), 0, 2, BLOCK=block)
    functions = (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal)
    np.testing.assert_array_equal(out[:6], [function(x, y) for function in functions])
    assert out[6].tolist() == [1, 1, 0, 0, *[77] * (block - 4)]


@triton.jit
def computed_booleans(x, y, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + i, (a + b).to(tl.int8))
    tl.store(out + BLOCK + i, (a - b).to(tl.int8))
    tl.store(out + 2 * BLOCK + i, (a * b).to(tl.int8))


def test_arithmetic_of_booleans_is_modulo_2() -> None:
    x, y = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    out = np.full((3, 4), 77, np.int8)
    computed_booleans[(1,)](Tensor(x), Tensor(y), Tensor(out), BLOCK=4)
    np.testing.assert_array_equal(out, [x ^ y, x ^ y, x & y])


@triton.jit
def clamped(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(out + i, tl.clamp(v, -1.0, 1.0), mask=i < n)
    tl.store(out + n + i, tl.clamp(v, -1.0, 1.0, propagate_nan=tl.PropagateNan.ALL), mask=i < n)


@pytest.mark.parametrize("type", ["f32", "f64"])
def test_clamp_keeps_nan_only_if_asked(type: str) -> None:
    """Otherwise the result is one of the limits. Triton does not specify which one."""
    x, out = numbers(FLOATS[type], low=-4), np.full((2, N), 77, FLOATS[type])
    x[::3] = np.nan
    launch(clamped, x, out)
    np.testing.assert_array_equal(out[1], np.clip(x, -1, 1))
    numbers_ = ~np.isnan(x)
    np.testing.assert_array_equal(out[0][numbers_], np.clip(x, -1, 1)[numbers_])
    assert np.isin(out[0][~numbers_], [-1, 1]).all()


@pytest.mark.parametrize("dtype", [np.int16, F16, BF16], ids=["i16", "f16", "bf16"])
def test_copying_keeps_every_bit_of_16_bit_types(dtype: Any) -> None:
    bits = np.arange(65536, dtype=np.uint16)
    out = np.full(65536, 0x1234, np.uint16)
    copy_all[(64,)](Tensor(bits.view(dtype)), Tensor(out.view(dtype)), BLOCK=1024)
    np.testing.assert_array_equal(out, bits)


@triton.jit
def copy_all(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i))


@pytest.mark.parametrize("name", ["exp", "exp2", "log", "log2"])
def test_functions_keep_their_precision_over_the_whole_range(name: str) -> None:
    """Checked where results are normal numbers. At the ends of the range, argument reduction has to be exact."""
    function, error = UNARY[name], ERRORS.get(name, 0)
    low, high = (-87.0, 88.0) if name == "exp" else (-125.0, 127.0) if name == "exp2" else (1e-37, 1e38)
    x, out = numbers(F32, low=low, high=high), poisoned(N, dtype=F32)
    launch(unary, x, out, OP=name)
    reference = function(x.astype(F64))
    assert np.all(np.abs(out.astype(F64) - reference) <= (error + 0.5) * last_place(reference, F32))


@triton.jit
def reverse_in_place(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.debug_barrier()
    tl.store(x + (n - 1 - i), v, mask=i < n)


def test_a_barrier_between_a_load_and_a_store_changes_nothing() -> None:
    x = np.arange(100, dtype=np.int32)
    reverse_in_place[(1,)](Tensor(x), 100, BLOCK=128)
    np.testing.assert_array_equal(x, np.arange(100)[::-1])
