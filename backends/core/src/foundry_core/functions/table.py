"""The table of functions, by their names in OpenCL C and the math dialect if they exist there."""

from __future__ import annotations

from . import bessel, error, exponential, gamma, logarithm, power, remainders, rounding, trigonometric
from .arithmetic import Function
from .directed import DIRECTED, FROM_INTEGERS

# Functions of f32 only, because libdevice has them for no other type.
F32_ONLY = frozenset(["rsqrt_rn"])
# Functions of one number at a time: an argument decides how many steps they take.
ONE_BY_ONE = frozenset(["jn", "yn"])
_BY_MODULE = {
    bessel: "j0 j1 y0 y1 cyl_bessel_i0 cyl_bessel_i1 jn yn",
    error: "erf erfc erfcx erfinv erfcinv normcdf normcdfinv",
    exponential: "exp exp2 exp10 expm1 sinh cosh tanh",
    gamma: "tgamma lgamma",
    logarithm: "log log1p log2 log10 acosh asinh atanh",
    power: "pow cbrt rcbrt",
    remainders: "fmod remainder nextafter ldexp logb fdim pown",
    rounding: "trunc floor ceil round rint sqrt rsqrt copysign",
    trigonometric: "sin cos tan sinpi cospi atan atan2 asin acos",
}
FUNCTIONS: dict[str, Function] = {
    **{name: getattr(module, name) for module, names in _BY_MODULE.items() for name in names.split()},
    **dict.fromkeys(("hypot", "norm3d", "norm4d"), power.length),
    **dict.fromkeys(("rhypot", "rnorm3d", "rnorm4d"), power.inverse_length),
    **DIRECTED,
    **FROM_INTEGERS,
}
