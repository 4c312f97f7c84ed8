"""LLVM 12's intrinsics, as the llvm dialect has them.

The names are those of LLVM 12's language reference. Where a later LLVM overloads one on another type (powi, from 13 on)
it is left out: no text of it is read the same on both sides.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Intrinsic:
    """An intrinsic overloaded on its first operand's type; `flag` is an attribute that is its last, i1 operand."""

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

# They say something to an optimiser and do nothing.
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

# Those that dpu-legalize or an optimiser of LLVM 11 to 14 may bring in besides, and those that C brings.
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
