"""The functions by name: that of OpenCL C and of the math dialect, where they have one."""

from __future__ import annotations

from . import error, exponential, gamma, logarithm, power, remainders, rounding, trigonometric
from .arithmetic import Function
from .directed import DIRECTED

# Functions of f32 whose method does not reach f64.
F32_ONLY = frozenset(
    ["sin", "cos", "tan", "sinpi", "cospi", "atan", "atan2", "asin", "acos", "fmod", "remainder", "tgamma", "lgamma"]
    + [f"fma_{mode}" for mode in ("rz", "rd", "ru")]
)
FUNCTIONS: dict[str, Function] = {
    function.__name__: function
    for function in (
        error.erf,
        error.erfc,
        error.erfcx,
        error.erfinv,
        error.erfcinv,
        error.normcdf,
        error.normcdfinv,
        exponential.exp,
        exponential.exp2,
        exponential.exp10,
        exponential.expm1,
        exponential.sinh,
        exponential.cosh,
        exponential.tanh,
        gamma.tgamma,
        gamma.lgamma,
        logarithm.log,
        logarithm.log1p,
        logarithm.log2,
        logarithm.log10,
        logarithm.acosh,
        logarithm.asinh,
        logarithm.atanh,
        power.pow,
        power.cbrt,
        power.rcbrt,
        power.hypot,
        power.norm3d,
        power.norm4d,
        power.rhypot,
        power.rnorm3d,
        power.rnorm4d,
        remainders.fmod,
        remainders.remainder,
        remainders.nextafter,
        remainders.ldexp,
        remainders.logb,
        remainders.fdim,
        remainders.pown,
        rounding.trunc,
        rounding.floor,
        rounding.ceil,
        rounding.round,
        rounding.rint,
        rounding.sqrt,
        rounding.rsqrt,
        rounding.copysign,
        trigonometric.sin,
        trigonometric.cos,
        trigonometric.tan,
        trigonometric.sinpi,
        trigonometric.cospi,
        trigonometric.atan,
        trigonometric.atan2,
        trigonometric.asin,
        trigonometric.acos,
    )
} | DIRECTED
