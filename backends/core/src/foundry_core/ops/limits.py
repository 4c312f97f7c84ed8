"""The error that OpenCL C 3.0 allows a function in single precision, in units in the last place; tests use this table.

From section 7.4, "Relative Error as ULPs", full profile. We ask for the same in double precision. Functions that are
not listed are exact or correctly rounded.
"""

from __future__ import annotations

# OpenCL leaves lgamma open.
ULPS = {
    **dict.fromkeys(("cbrt", "log1p", "rsqrt"), 2.0),
    "division": 2.5,
    **dict.fromkeys(("exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "sqrt"), 3.0),
    **dict.fromkeys(("acos", "acosh", "asin", "asinh", "cos", "cosh", "cospi", "hypot", "sin", "sinh", "sinpi"), 4.0),
    **dict.fromkeys(("atan", "atanh", "tan", "tanh"), 5.0),
    "atan2": 6.0,
    **dict.fromkeys(("erf", "erfc", "lgamma", "pow", "tgamma"), 16.0),
}
