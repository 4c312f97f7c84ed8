"""Functions of tl, and Bessel's of libdevice, within OpenCL's bounds on their error, with all special values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from checking import FLOATS, RELEASE, check, compute, operand
from foundry_core.ops.limits import ULPS

pytestmark = pytest.mark.values

# The range of operands, and the reference.
FUNCTIONS: dict[str, tuple[tuple[float, float], Any]] = {
    "exp": ((-87, 88), np.exp),
    "exp2": ((-125, 127), np.exp2),
    "log": ((1e-37, 1e38), np.log),
    "log2": ((1e-37, 1e38), np.log2),
    "sqrt": ((0, 1e30), np.sqrt),
    "rsqrt": ((1e-30, 1e30), lambda x: 1 / np.sqrt(x)),
    "sin": ((-100, 100), np.sin),
    "cos": ((-100, 100), np.cos),
    "erf": ((-4, 4), np.vectorize(math.erf)),
    "floor": ((-1e6, 1e6), np.floor),
    "ceil": ((-1e6, 1e6), np.ceil),
    "abs": ((-1e30, 1e30), np.abs),
    "sigmoid": ((-30, 80), lambda x: 1 / (1 + np.exp(-x))),
}
# 1 / (1 + exp(-x)): 3 ulp for exp, half an ulp for each sum, 2.5 ulp for the quotient.
ERRORS = ULPS | {"sigmoid": 7}


@pytest.mark.operation("tl.{name}")
@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_as_exact_as_opencl_promises(name: str, dtype: str) -> None:
    (low, high), reference = FUNCTIONS[name]
    random = np.random.default_rng(14)
    x = random.uniform(low, high, 600)
    if low > 0 and high / low > 1e6:
        x = np.exp(random.uniform(math.log(low), math.log(high), 600))
    x = np.clip(x, low, high).astype(FLOATS[dtype])
    # The reference is computed in f64, so for f64 it has an error as well.
    ulp = ERRORS.get(name, 0) + (dtype == "f64")
    check(compute(f"tl.{name}(a)", x.dtype, a=x), reference(x.astype(np.float64)), ulp=ulp)


# The values at the ends of the range that OpenCL C 3.0 and annex F of C require.
SPECIAL: dict[str, Any] = {
    "tl.exp": np.exp,
    "tl.exp2": np.exp2,
    "tl.log": np.log,
    "tl.log2": np.log2,
    "tl.sqrt": np.sqrt,
    "tl.floor": np.floor,
    "tl.ceil": np.ceil,
    "tl.abs": np.abs,
    "tl.sin": lambda x: np.where(np.isinf(x), np.nan, x),
    "tl.cos": lambda x: np.where(np.isfinite(x), 1.0, np.nan),
    "tl.erf": lambda x: np.where(np.isinf(x), np.copysign(1, x), x),
}


@pytest.mark.operation("{name}")
@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(name: str, dtype: str) -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], FLOATS[dtype])
    with np.errstate(all="ignore"):
        reference = SPECIAL[name](x.astype(np.float64))
    if name == "tl.erf":
        reference[np.isnan(x)] = np.nan
    check(compute(f"{name}(a)", x.dtype, a=x), reference)


@pytest.mark.operation("-tl.abs(a)")
@pytest.mark.parametrize("dtype", FLOATS)
def test_negation_and_absolute_value_change_the_sign_only(dtype: str) -> None:
    a = operand(FLOATS[dtype], 1)
    size = np.abs(a.astype(np.float64))
    # Until Triton 3.6, -x is 0 - x.
    check(compute("-tl.abs(a)", a.dtype, a=a), -size if RELEASE > (3, 6) else 0.0 - size)


@pytest.mark.operation("tl.sqrt_rn", type="f32")
def test_the_square_root_that_is_rounded_once() -> None:
    a = operand(np.float32, 1)
    with np.errstate(all="ignore"):
        check(compute("tl.sqrt_rn(a)", np.float32, a=a), np.sqrt(a.astype(np.float64)))


def averaged(function: Any, x: Any) -> Any:
    """Return the average of a function of x and an angle over a whole turn; for smooth ones, 512 angles are exact."""
    angle = np.arange(512) * (2 * np.pi / 512)
    return np.mean(function(x.astype(np.float64)[:, None], angle), axis=1)


@pytest.mark.operation("libdevice.jn(a, b)")
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_bessel_functions_of_any_order(dtype: str) -> None:
    """Compare j with Bessel's integral; y by the determinant of neighbouring orders, 2 / (pi x)."""
    random = np.random.default_rng(21)
    x, n = random.uniform(0.5, 60, 400).astype(FLOATS[dtype]), random.integers(0, 20, 400).astype(np.int32)
    j, further = (compute("libdevice.jn(a, b)", x.dtype, a=order, b=x).array.astype("d") for order in (n, n + 1))
    exact = averaged(lambda x, angle: np.cos(n[:, None] * angle - x * np.sin(angle)), x)
    eps = float(np.finfo(x.dtype).eps)
    np.testing.assert_allclose(j, exact, rtol=32 * eps, atol=32 * eps * np.sqrt(2 / (np.pi * 0.5)))
    y, next_y = (compute("libdevice.yn(a, b)", x.dtype, a=order, b=x).array.astype("d") for order in (n, n + 1))
    size = np.abs(further * y) + np.abs(j * next_y)
    wide = x.astype("d")
    assert np.all(np.abs(further * y - j * next_y - 2 / (np.pi * wide)) <= 100 * eps * (size + 2 / (np.pi * wide)))


@pytest.mark.operation("libdevice.{name}")
@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", ["j0", "j1", "cyl_bessel_i0", "cyl_bessel_i1"])
def test_bessel_functions(name: str, dtype: str) -> None:
    order, growing = int(name[-1]), name[0] == "c"
    x = np.random.default_rng(22).uniform(-60, 60, 400).astype(FLOATS[dtype])
    out = compute(f"libdevice.{name}(a)", x.dtype, a=x)
    if growing:
        exact = averaged(lambda x, angle: np.exp(x * np.cos(angle)) * np.cos(order * angle), x)
        # Where x is near 0, i1 is a small difference of large terms in the reference.
        np.testing.assert_allclose(out.array, exact, rtol=16 * float(np.finfo(x.dtype).eps), atol=1e-15)
        return
    exact = averaged(lambda x, angle: np.cos(order * angle - x * np.sin(angle)), x)
    np.testing.assert_allclose(out.array, exact, rtol=0, atol=10 * float(np.finfo(x.dtype).eps))


@pytest.mark.operation("libdevice.ll2float_{mode}")
@pytest.mark.parametrize("mode", ["rn", "rz", "rd", "ru"])
def test_integers_become_floats_in_each_rounding(mode: str) -> None:
    x = operand(np.int64, 1)
    near = x.astype(np.float32)
    # Python compares an integer with a float exactly.
    over, under = (
        np.array([sign * int(value) > sign * int(a) for value, a in zip(near, x, strict=True)]) for sign in (1, -1)
    )
    down, up = (np.nextafter(near, np.float32(end)) for end in (-np.inf, np.inf))
    below, above = np.where(over, down, near), np.where(under, up, near)
    expected = {"rn": near, "rd": below, "ru": above, "rz": np.where(x < 0, above, below)}[mode]
    check(compute(f"libdevice.ll2float_{mode}(a)", np.float32, a=x), expected)
