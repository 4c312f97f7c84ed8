"""The intrinsics of LLVM 12, and the llvm dialect's operations for them.

The names come from LLVM 12's language reference. An intrinsic that a later LLVM overloads on another type (powi, from
13 on) is missing, because no text of it is valid for both.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Intrinsic:
    """An intrinsic overloaded on its first operand's type; `flag` is the attribute for its last operand, an i1."""

    name: str
    flag: str = ""


_INTEGER = (
    "smax",
    "smin",
    "umax",
    "umin",
    "bswap",
    "bitreverse",
    "ctpop",
    "fshl",
    "fshr",
    "sadd.sat",
    "uadd.sat",
    "ssub.sat",
    "usub.sat",
    "sadd.with.overflow",
    "uadd.with.overflow",
    "ssub.with.overflow",
    "usub.with.overflow",
    "smul.with.overflow",
    "umul.with.overflow",
)
_FLOAT = (
    "fabs",
    "sqrt",
    "copysign",
    "minnum",
    "maxnum",
    "minimum",
    "maximum",
    "floor",
    "ceil",
    "trunc",
    "rint",
    "nearbyint",
    "round",
    "roundeven",
    "exp",
    "exp2",
    "log",
    "log2",
    "log10",
    "pow",
    "sin",
    "cos",
    "fma",
    "fmuladd",
)

# By the operation's name.
OVERLOADED = {
    **{f"llvm.intr.{name}": Intrinsic(f"llvm.{name}") for name in (*_INTEGER, *_FLOAT)},
    "llvm.intr.abs": Intrinsic("llvm.abs", "is_int_min_poison"),
    "llvm.intr.ctlz": Intrinsic("llvm.ctlz", "is_zero_poison"),
    "llvm.intr.cttz": Intrinsic("llvm.cttz", "is_zero_poison"),
}
PLAIN = {"llvm.intr.trap": "llvm.trap", "llvm.intr.debugtrap": "llvm.debugtrap"}
COPIES = {"llvm.intr.memcpy": "llvm.memcpy", "llvm.intr.memmove": "llvm.memmove"}
FILLS = {"llvm.intr.memset": "llvm.memset"}

# Hints to an optimizer, which do nothing.
HINTS = (
    "llvm.intr.assume",
    "llvm.intr.lifetime.start",
    "llvm.intr.lifetime.end",
    "llvm.intr.invariant.start",
    "llvm.intr.experimental.noalias.scope.decl",
    "llvm.intr.dbg.value",
    "llvm.intr.dbg.declare",
    "llvm.intr.dbg.label",
)

# Further intrinsics that dpu-legalize or an optimizer of LLVM 11 to 14 may add, or that C code uses.
_FURTHER = (
    "lifetime.start",
    "lifetime.end",
    "assume",
    "expect",
    "memset",
    "memcpy",
    "memmove",
    "memcpy.inline",
    "va_start",
    "va_end",
    "va_copy",
    "stacksave",
    "stackrestore",
    "frameaddress",
    "returnaddress",
    "prefetch",
    "objectsize",
    "is.constant",
    "experimental.noalias.scope.decl",
    "sshl.sat",
    "ushl.sat",
    "usub.sat",
    "canonicalize",
    "lrint",
    "llrint",
    "lround",
    "llround",
)
KNOWN = frozenset(
    [
        *(intrinsic.name for intrinsic in OVERLOADED.values()),
        *PLAIN.values(),
        *(f"llvm.{name}" for name in _FURTHER),
    ]
)
