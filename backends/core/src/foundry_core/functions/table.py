"""The table of functions, by their names in OpenCL C and the math dialect if they exist there."""

from __future__ import annotations

from . import bessel, error, exponential, gamma, logarithm, power, remainders, rounding, trigonometric
from .arithmetic import Function
from .directed import DIRECTED, FROM_INTEGERS

# Functions of f32 only, because libdevice has them for no other type.
F32_ONLY = frozenset(["rsqrt_rn"])
# Functions of one number at a time: an argument decides how many steps they take.
ONE_BY_ONE = frozenset(["jn", "yn"])
FUNCTIONS: dict[str, Function] = (
    {
        function.__name__: function
        for function in (
            bessel.j0,
            bessel.j1,
            bessel.y0,
            bessel.y1,
            bessel.cyl_bessel_i0,
            bessel.cyl_bessel_i1,
            bessel.jn,
            bessel.yn,
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
    }
    | DIRECTED
    | FROM_INTEGERS
)
