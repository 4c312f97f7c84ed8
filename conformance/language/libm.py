"""The functions of libdevice and of foundry_core.functions: what each is in extended precision, and how to compare.

Tests of functions on the host, in images and as other processors share this table.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from foundry_core.ops.limits import ULPS

FLOATS: dict[str, Any] = {"f32": np.float32, "f64": np.float64}
# x86's extended precision has 64 bits of mantissa.
Wide = np.longdouble
INF, NAN = math.inf, math.nan
# pi in extended precision.
PI = Wide(math.pi) + Wide(1.2246467991473531772e-16)


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


def half_turns(quarters: int) -> Callable[[Any], Any]:
    """Return sin of pi x, `quarters` quarter turns further; the nearest quarter turn is removed exactly."""

    def turned(x: Any) -> Any:
        rest = np.fmod(x, Wide(2))
        nearest = np.rint(rest * 2)
        angle, k = (rest - nearest / 2) * PI, (np.where(np.isfinite(x), nearest, 0).astype(int) + quarters) % 4
        sine = np.where(k % 2 == 1, np.cos(angle), np.sin(angle)) * np.where(k < 2, 1, -1)
        # A zero has the sign of x; that of a cosine is positive.
        return np.where(sine == 0, 0 * x if quarters == 0 else 0, sine)

    return turned


def rounded_away(x: Any) -> Any:
    rest = np.abs(np.where(np.isfinite(x), x, 0)) % 1
    return np.copysign(np.abs(x) - rest + (rest >= 0.5), x)


# The allowed errors in ulp by OpenCL; 0 if a result is exact or correctly rounded. That of lgamma is of at least 1,
# because its zeros are at 1 and 2. erfinv's error is at most 1.2 times that of erf or erfc, and that of its arithmetic.
ERRORS = ULPS | {"rcbrt": 3, "rhypot": 5, "erfinv": 22}
# Each function of one number: its reference, and the range of arguments.
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
    "sinpi": (half_turns(0), -10, 10),
    "cospi": (half_turns(1), -10, 10),
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
    "round": (rounded_away, -100, 100),
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
    *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.0, 2.5, -2.5, 1e-3, 1e-20, -1e-20, 1.1754944e-38, 1e-40, -1e-40),
    *(1e-45, 8388607.5, 16777217.0, 1e10, -1e10, 3.4e38, INF, -INF, NAN),
]
# Larger arguments are left out: the reference's own argument reduction is valid up to 2^63.
LARGEST = {"sin": 1e18, "cos": 1e18, "tan": 1e18}
# Of two numbers: as above; the second argument is between both signs of the upper end.
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


def check(
    name: str,
    out: np.ndarray,
    reference: Any,
    bound: float,
    *args: np.ndarray,
    least: float = 0.0,
    signed: bool = True,
) -> None:
    """Check a bound in ulp (of `least` for smaller results), and infinities, NaN and signs of zeros exactly.

    Args:
        signed: whether zeros must have the reference's sign.
    """
    info = np.finfo(out.dtype)
    with np.errstate(all="ignore"):
        rounded = np.asarray(reference, Wide).astype(out.dtype)
        np.testing.assert_array_equal(np.isnan(out), np.isnan(rounded))
        size = np.maximum(np.maximum(np.abs(np.asarray(reference, Wide)), float(info.smallest_normal)), least)
        ulps = np.abs(out.astype(Wide) - reference) / np.exp2(np.floor(np.log2(size)) - info.nmant)
    # At the end of the range, the largest number and infinity are one ulp apart.
    finite = np.isfinite(rounded) & (np.abs(rounded) < info.max) & np.isfinite(out)
    edge = np.abs(np.asarray(reference, Wide)) >= float(info.max) * (1 - 4 * bound * float(info.eps))
    same = (out == rounded) | np.isnan(rounded)
    bad = np.where(finite, ulps > bound, ~(same | (edge & np.isfinite(reference) & (np.abs(out) > info.max * 0.99))))
    worst = int(np.argmax(np.where(finite, ulps, 0)))
    at = [arg[bad][:3] for arg in args]
    worst_at = [arg[worst] for arg in args]
    assert not bad.any(), f"{name}: {at} gives {out[bad][:3]}, not {rounded[bad][:3]}; {ulps[worst]} ulp at {worst_at}"
    zero = signed & (np.asarray(reference) == 0) & (out == 0)
    np.testing.assert_array_equal(np.signbit(out[zero]), np.signbit(rounded[zero]))


def check_opencl(name: str, out: np.ndarray, reference: Any, *args: np.ndarray) -> None:
    """Check a function within the error that OpenCL allows; the least error of lgamma is that of 1."""
    error = ERRORS.get(name, 0)
    # OpenCL specifies the sign of a zero of sinpi and cospi between two numbers; PoCL returns the opposite one.
    signed = not name.endswith("pi")
    check(name, out, reference, error + 0.5, *args, least=1.0 if name == "lgamma" else 0.0, signed=signed)
    if error == 0:
        np.testing.assert_array_equal(out, np.asarray(reference).astype(out.dtype), err_msg=name)


def drawn(low: float, high: float, dtype: Any, seed: int, count: int = 700) -> np.ndarray:
    return np.random.default_rng(seed).uniform(low, high, count).astype(dtype)
