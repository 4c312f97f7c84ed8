"""The functions of Triton's libdevice module, each against NumPy in extended precision, special values included."""

from __future__ import annotations

import importlib.util
import itertools
import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import triton
from foundry_core.errors import UnsupportedOperation
from foundry_core.tensor import Tensor

BLOCK = 256
ON_DPU = triton.runtime.driver.active.get_current_target().backend == "dpu"
FLOATS = {"f32": np.float32, "f64": np.float64}
# What references are computed in: x86's extended precision, 64 bits of mantissa.
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
    """One of Python's own functions, which NumPy does not have, in float64; OverflowError is an infinity."""

    def one(x: float) -> float:
        try:
            return function(x)
        except OverflowError:
            return INF
        except ValueError:
            return NAN

    return lambda x: np.vectorize(one, otypes=[np.float64])(np.asarray(x, np.float64)).astype(Wide)


def gamma(x: float) -> float:
    """C's tgamma: infinite at the zeros, NaN at negative integers and at minus infinity."""
    if x == -INF:
        return NAN
    return math.copysign(INF, x) if x == 0 else NAN if x < 0 and x == math.floor(x) else math.gamma(x)


def log_gamma(x: float) -> float:
    """C's lgamma: infinite at 0 and at negative integers."""
    return INF if x <= 0 and x == math.floor(x) else math.lgamma(x)


def inverse_erf(x: float) -> float:
    """By bisection on the floats: math.erf rises."""
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
    """sin or cos of pi * x, the multiples of 2 taken away first; `zero` is where between 0 and 1 it is 0."""

    def turned(x: Any) -> Any:
        rest = np.fmod(x, Wide(2))
        # pi in extended precision: what float64's leaves out is the second number.
        found = function(rest * (Wide(np.pi) + Wide(1.2246467991473531772e-16)))
        return np.where(np.abs(rest) % 1 == zero, 0, found)

    return turned


def away_from_zero(x: Any) -> Any:
    rest = np.where(np.isfinite(x), np.abs(x) % 1, 0)
    return np.copysign(np.abs(x) - rest + (rest >= 0.5), x)


# Name, reference, ulp, and from where to where arguments are drawn. The errors are what OpenCL C allows in single and,
# the same, in double precision (OpenCL C 3.0, section 7.4, "Relative Error as ULPs"); 0 where a result is exact or
# correctly rounded. lgamma is left open there: 16 ulp of 1 or more, its zeros being at 1 and 2. erfinv errs by what
# erf or erfc do, 16 ulp, times at most 1.2, and by its own arithmetic.
UNARY: dict[str, tuple[Callable[[Any], Any], float, float, float]] = {
    "exp": (np.exp, 3, -80, 80), "exp2": (np.exp2, 3, -120, 120), "expm1": (np.expm1, 3, -10, 80),
    "exp10": (lambda x: Wide(10) ** x, 3, -37, 37), "log": (np.log, 3, 1e-30, 1e30), "log2": (np.log2, 3, 1e-30, 1e30),
    "log10": (np.log10, 3, 1e-30, 1e30), "log1p": (np.log1p, 2, -0.999, 10), "sqrt": (np.sqrt, 3, 0, 1e30),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 2, 0, 1e3), "cbrt": (np.cbrt, 2, -1e3, 1e3),
    "rcbrt": (lambda x: 1 / np.cbrt(x), 3, -1e3, 1e3),
    "sin": (np.sin, 4, -1e3, 1e3), "cos": (np.cos, 4, -1e3, 1e3), "tan": (np.tan, 5, -1e3, 1e3),
    "sinpi": (half_turns(np.sin, 0.0), 4, -10, 10), "cospi": (half_turns(np.cos, 0.5), 4, -10, 10),
    "asin": (np.arcsin, 4, -1, 1), "acos": (np.arccos, 4, -1, 1), "atan": (np.arctan, 5, -20, 20),
    "sinh": (np.sinh, 4, -80, 80), "cosh": (np.cosh, 4, -80, 80), "tanh": (np.tanh, 5, -10, 10),
    "asinh": (np.arcsinh, 4, -1e3, 1e3), "acosh": (np.arccosh, 4, 1, 1e3), "atanh": (np.arctanh, 5, -1, 1),
    "erf": (exactly(math.erf), 16, -4, 4), "erfc": (exactly(math.erfc), 16, -4, 9),
    "erfinv": (exactly(inverse_erf), 22, -1, 1), "lgamma": (exactly(log_gamma), 16, -20, 100),
    "tgamma": (exactly(gamma), 16, -5, 30), "floor": (np.floor, 0, -100, 100), "ceil": (np.ceil, 0, -100, 100),
    "trunc": (np.trunc, 0, -100, 100), "rint": (np.rint, 0, -100, 100), "nearbyint": (np.rint, 0, -100, 100),
    "round": (away_from_zero, 0, -100, 100), "abs": (np.abs, 0, -100, 100), "logb": (np.vectorize(
        lambda x: NAN if x != x else INF if abs(x) == INF else -INF if x == 0 else Wide(np.frexp(x)[1] - 1),
        otypes=[Wide]), 0, -100, 100), "rcp_rn": (lambda x: 1 / x, 0, -100, 100),
}  # fmt: skip
SPECIAL = [
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.0, 2.5, -2.5, 1e-3, 1e-20, -1e-20, 1.1754944e-38, 1e-40, -1e-40, 1e-45,
    8388607.5, 16777217.0, 1e10, -1e10, 3.4e38, INF, -INF, NAN,
]  # fmt: skip
# Arguments of more than this are left out: the reference's own reduction ends at 2^63.
LARGEST = {"sin": 1e18, "cos": 1e18, "tan": 1e18}

BINARY: dict[str, tuple[Callable[[Any, Any], Any], float, float, float]] = {
    "atan2": (np.arctan2, 6, -4, 4), "pow": (np.power, 16, 0, 20), "hypot": (np.hypot, 4, -1e3, 1e3),
    "fmod": (np.fmod, 0, -1e3, 1e3), "copysign": (np.copysign, 0, -4, 4), "fdim": (
        lambda x, y: np.where(np.isnan(x) | np.isnan(y), NAN, np.where(x > y, x - y, 0)), 0, -4, 4),
    "remainder": (np.vectorize(lambda x, y: math.remainder(x, y) if y and abs(x) < INF else NAN, otypes=[float]), 0, -9, 9),
    "rhypot": (lambda x, y: 1 / np.hypot(x, y), 5, -1e3, 1e3), "div_rn": (np.divide, 0, -4, 4),
    "add_rn": (np.add, 0, -4, 4), "mul_rn": (np.multiply, 0, -4, 4), "sub_rn": (np.subtract, 0, -4, 4),
}  # fmt: skip
# Exact ones: what NumPy does in the type itself.
SAME = {"fmod", "copysign", "remainder", "add_rn", "mul_rn", "sub_rn", "div_rn", "rcp_rn"}
TERNARY = {"norm3d": 5.0, "rnorm3d": 6.0}
REFUSED = ["normcdf", "normcdfinv", "erfcx", "j0", "j1", "y0", "y1", "cyl_bessel_i0", "cyl_bessel_i1", "rsqrt_rn"]
TO_INTEGERS = ["llrint", "llround", "ilogb", "isnan", "isinf", "signbit"]
CONVERSIONS = [
    f"{source}2{target}_{mode}"
    for source, target, mode in itertools.product(("float", "double"), ("int", "uint", "ll", "ull"),
                                                  ("rn", "rz", "rd", "ru"))
]  # fmt: skip
OF_INTEGERS = {"clz": 1, "popc": 1, "ffs": 1, "brev": 1, "abs": 1, "mulhi": 2, "hadd": 2, "rhadd": 2, "mul24": 2, "sad": 3}
ARITY = {
    **dict.fromkeys([*UNARY, *REFUSED, *TO_INTEGERS, *CONVERSIONS, "finitef", "isfinited", "saturatef", "erfcinv"], 1),
    **dict.fromkeys(["float_as_int", "int_as_float", "double_as_longlong", "longlong_as_double", "double2hiint"], 1),
    **dict.fromkeys(["double2loint", "add_rz", "double2float_rn", "ll2float_rn", "uint2float_rn"], 1),
    **dict.fromkeys([*BINARY, "nextafter", "ldexp", "hiloint2double", "add_rz"], 2), **dict.fromkeys(TERNARY, 3),
    "fma": 3, **OF_INTEGERS,
}  # fmt: skip


@pytest.fixture(scope="session")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """A module with a kernel for each function: Triton reads a kernel's source from its file."""
    text = ["import triton\nimport triton.language as tl\nfrom triton.language.extra import libdevice\n"]
    for name, count in ARITY.items():
        letters = "xyz"[:count]
        loads = ", ".join(f"tl.load({letter} + i, mask=i < n)" for letter in letters)
        text.append(KERNEL.format(name=name, parameters=", ".join(letters), loads=loads))
    path = Path(tmp_path_factory.mktemp("libdevice"), "libdevice_kernels.py")
    path.write_text("\n".join(text))
    spec = importlib.util.spec_from_file_location("libdevice_kernels", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(kernels: ModuleType, name: str, out: np.ndarray, *arguments: np.ndarray) -> np.ndarray:
    """The function's results on arrays of one length, into a poisoned array."""
    out.view(np.uint8).fill(0x5A)
    tensors = [Tensor(np.ascontiguousarray(array)) for array in (*arguments, out)]
    getattr(kernels, name)[(triton.cdiv(out.size, BLOCK),)](*tensors, out.size, BLOCK=BLOCK)
    return out


def check(out: np.ndarray, reference: Any, error: float, *, least: float = 0.0, signed: bool = True) -> None:
    """Within some ulp of a reference; infinities, NaN and the signs of zeros as they are there."""
    info = ml_dtypes.finfo(out.dtype)
    with np.errstate(all="ignore"):
        rounded = np.asarray(reference).astype(out.dtype)
        size = np.maximum(np.maximum(np.abs(np.asarray(reference, Wide)), float(info.smallest_normal)), least)
        # Half an ulp for rounding the reference itself where it is not a number of the type.
        allowed = (error + 0.5) * np.exp2(np.floor(np.log2(size)) - info.nmant)
        near = np.abs(out.astype(Wide) - reference) <= allowed
    finite = np.isfinite(rounded)
    np.testing.assert_array_equal(np.isnan(out), np.isnan(rounded))
    if error == 0:
        np.testing.assert_array_equal(out, rounded)
    # At the end of the range an allowed error decides between the largest number and infinity.
    edge = ~finite & ~np.isnan(rounded) & np.isfinite(np.asarray(reference, np.float64)) & (np.abs(out) > float(info.max) / 2)
    np.testing.assert_array_equal(out[~finite & ~edge], rounded[~finite & ~edge])
    bad = finite & ~near
    assert not bad.any(), f"{np.count_nonzero(bad)}: {out[bad][:5]} for {rounded[bad][:5]}"
    # The sign of a zero between two numbers: OpenCL says which for sinpi and cospi, PoCL has the other.
    zero = signed & (rounded == 0) & (np.asarray(reference) == 0) & (out == 0)
    np.testing.assert_array_equal(np.signbit(out[zero]), np.signbit(rounded[zero]))


def drawn(low: float, high: float, dtype: Any, seed: int, count: int = 700) -> np.ndarray:
    return np.random.default_rng(seed).uniform(low, high, count).astype(dtype)


@pytest.mark.parametrize("type", FLOATS)
@pytest.mark.parametrize("name", UNARY)
def test_functions_are_as_exact_as_opencl_promises(kernels: ModuleType, name: str, type: str) -> None:
    function, error, low, high = UNARY[name]
    dtype = FLOATS[type]
    x = np.concatenate([drawn(low, high, dtype, 1), np.array(SPECIAL).astype(dtype)])
    x = x[~(np.abs(x) > LARGEST.get(name, INF)) | np.isinf(x)]
    with np.errstate(all="ignore"):
        reference = function(x if name in SAME else x.astype(Wide))
    out = run(kernels, name, np.empty_like(x), x)
    check(out, reference, error, least=1.0 if name == "lgamma" else 0.0, signed=not name.endswith("pi"))
