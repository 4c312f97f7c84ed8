"""Arithmetic on tiles of every type, with all special values."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from checking import FLOATS, INTEGERS, SIGNED, check, compute, operand
from foundry_core.ops.limits import ULPS

pytestmark = pytest.mark.values

# Triton computes quotients of f16 and bf16 in f32.
QUOTIENTS = ("f32", "f64")
BINARY: dict[str, np.ufunc] = {"a + b": np.add, "a - b": np.subtract, "a * b": np.multiply}
BITWISE: dict[str, np.ufunc] = {"a & b": np.bitwise_and, "a | b": np.bitwise_or, "a ^ b": np.bitwise_xor}


@pytest.mark.operation("{expression}")
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("expression", BINARY)
def test_float_arithmetic_is_rounded_once(expression: str, dtype: str) -> None:
    a, b = operand(FLOATS[dtype], 1), operand(FLOATS[dtype], 2)
    with np.errstate(all="ignore"):
        reference = BINARY[expression](a.astype(np.float64), b.astype(np.float64))
    check(compute(expression, FLOATS[dtype], a=a, b=b), reference)


@pytest.mark.operation("{expression}")
@pytest.mark.parametrize("dtype", QUOTIENTS)
@pytest.mark.parametrize(("expression", "ulp"), [("a / b", ULPS["division"]), ("tl.div_rn(a, b)", 0)])
def test_quotients(expression: str, ulp: float, dtype: str) -> None:
    """A plain quotient is as exact as OpenCL's, and so is the hardware's; div_rn is rounded once."""
    if "div_rn" in expression and dtype == "f64":
        expression = "a / b"
    a, b = operand(FLOATS[dtype], 1), operand(FLOATS[dtype], 2)
    if ulp:
        # OpenCL's bound holds only if results and operands are normal numbers.
        limit = 1e18
        a, b = (
            np.where(np.isfinite(x) & (np.abs(x) < limit) & (np.abs(x) > 1 / limit), x, 1).astype(x.dtype)
            for x in (a, b)
        )
    with np.errstate(all="ignore"):
        reference = a.astype(np.float64) / b.astype(np.float64)
    check(compute(expression, FLOATS[dtype], a=a, b=b), reference, ulp=ulp)


@pytest.mark.operation("{expression}")
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("expression", BINARY | BITWISE)
def test_integer_arithmetic_wraps_around(expression: str, dtype: str) -> None:
    a, b = operand(INTEGERS[dtype], 1), operand(INTEGERS[dtype], 2)
    with np.errstate(all="ignore"):
        reference = (BINARY | BITWISE)[expression](a, b)
    check(compute(expression, INTEGERS[dtype], a=a, b=b), reference)


@pytest.mark.operation("{expression}")
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("expression", ["a // b", "a % b"])
def test_integer_division_truncates_as_in_c(expression: str, dtype: str) -> None:
    a, b = operand(INTEGERS[dtype], 1), operand(INTEGERS[dtype], 2)
    b[b == 0] = 3
    if dtype in SIGNED:
        # The only quotient that the type cannot represent.
        b[(a == np.iinfo(a.dtype).min) & (b == -1)] = 2
    wide = [(int(x), int(y)) for x, y in zip(a, b, strict=True)]
    quotients = [abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) for x, y in wide]
    remainders = [x - quotient * y for (x, y), quotient in zip(wide, quotients, strict=True)]
    reference = np.array(quotients if "//" in expression else remainders, a.dtype)
    check(compute(expression, INTEGERS[dtype], a=a, b=b), reference)


def test_integer_division_by_zero_and_overflow_do_not_end_the_process() -> None:
    a, b = np.full(64, np.iinfo(np.int32).min, np.int32), np.zeros(64, np.int32)
    b[1::2] = -1
    out = compute("a // b", np.int32, a=a, b=b)
    out.check_fences("the output")
    assert np.all(out.array[1::2] == a[1::2])


@pytest.mark.operation("{expression}")
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("expression", ["a << b", "a >> b"])
def test_shifts_keep_the_sign_of_signed_numbers(expression: str, dtype: str) -> None:
    a, b = operand(INTEGERS[dtype], 1), operand(INTEGERS[dtype], 2)
    b = (b.astype(np.uint64) % (8 * b.itemsize)).astype(b.dtype)
    reference = a << b if "<<" in expression else a >> b
    check(compute(expression, INTEGERS[dtype], a=a, b=b), reference)


@pytest.mark.operation("~a, -a")
@pytest.mark.parametrize("dtype", INTEGERS)
def test_complement_and_negation(dtype: str) -> None:
    a = operand(INTEGERS[dtype], 1)
    with np.errstate(all="ignore"):
        check(compute("(~a) ^ (-a)", INTEGERS[dtype], a=a), ~a ^ (0 - a))


@pytest.mark.operation("+, -, *", type="i1")
def test_arithmetic_of_booleans_is_modulo_2() -> None:
    a, b = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    for expression, reference in (("a + b", a ^ b), ("a - b", a ^ b), ("a * b", a & b)):
        check(compute(f"({expression}).to(tl.int8)", np.int8, a=a, b=b), reference)


@pytest.mark.operation("tl.umulhi")
@pytest.mark.parametrize("dtype", ["u32", "u64", "i32", "i64"])
def test_umulhi_is_the_upper_half_of_the_product(dtype: str) -> None:
    a, b = operand(INTEGERS[dtype], 1), operand(INTEGERS[dtype], 2)
    bits = 8 * a.itemsize
    unsigned = np.dtype(f"u{a.itemsize}")
    halves = [(int(x) * int(y)) >> bits for x, y in zip(a.view(unsigned), b.view(unsigned), strict=True)]
    check(compute("tl.umulhi(a, b)", a.dtype, a=a, b=b), np.array(halves, np.uint64).astype(unsigned).view(a.dtype))


@pytest.mark.operation("tl.fma")
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_fma_is_rounded_once(dtype: str) -> None:
    """Use operands whose product needs all bits, so that an intermediate rounding would show."""
    kind: Any = FLOATS[dtype]
    a = operand(kind, 1, special=False)
    b = operand(kind, 2, special=False)
    c = (-(a.astype(np.float64) * b)).astype(kind)
    exact = [
        float(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))) for x, y, z in zip(a, b, c, strict=True)
    ]
    check(compute("tl.fma(a, b, c)", kind, a=a, b=b, c=c), np.array(exact))
