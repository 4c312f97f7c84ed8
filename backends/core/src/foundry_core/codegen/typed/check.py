"""The intrinsics of LLVM 12, and the check that its neighbours read a text: 13 and 14, and 11 and 12 if installed.

The names come from LLVM 12's language reference. An intrinsic that a later LLVM overloads on another type (powi, from
13 on) is missing, because no text of it is valid for both.

Debian has LLVM 13 and 14. These releases accept two things that LLVM 12 for the DPU cannot handle, so we check them
here: later intrinsics, because an unknown intrinsic is an ordinary name, and casts of addresses between spaces, which
no DPU can do.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from ...errors import ToolError


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# Intrinsics overloaded on the type of their first operand. The llvm dialect has them as llvm.intr.NAME.
OVERLOADED = _names("""
    smax smin umax umin abs bswap bitreverse ctpop ctlz cttz fshl fshr sadd.sat uadd.sat ssub.sat usub.sat
    sadd.with.overflow uadd.with.overflow ssub.with.overflow usub.with.overflow smul.with.overflow umul.with.overflow
    fabs sqrt copysign minnum maxnum minimum maximum floor ceil trunc rint nearbyint round roundeven exp exp2 log log2
    log10 pow sin cos fma fmuladd
""")
# Those with an i1 after the operands, and the attribute for it.
FLAGS = {"abs": "is_int_min_poison", "ctlz": "is_zero_poison", "cttz": "is_zero_poison"}
# Intrinsics without operands.
PLAIN = ("trap", "debugtrap")
# Further intrinsics that dpu-legalize or an optimizer of LLVM 11 to 14 may add, or that C code uses.
_FURTHER = _names("""
    lifetime.start lifetime.end assume expect memset memcpy memmove memcpy.inline va_start va_end va_copy stacksave
    stackrestore frameaddress returnaddress prefetch objectsize is.constant experimental.noalias.scope.decl sshl.sat
    ushl.sat usub.sat canonicalize lrint llrint lround llround
""")
_KNOWN = frozenset(f"llvm.{name}" for name in (*OVERLOADED, *PLAIN, *_FURTHER))

MAJORS = (13, 14)
_WHERE_PRESENT = (11, 12)
_INTRINSIC = re.compile(r"@(llvm\.[\w.]+)\(")
_SUFFIX = re.compile(r"(\.(v\d+)?(p\d+)?(i\d+|f16|bf16|f32|f64))+$")


def check_text(ir: str, majors: Iterable[int] = MAJORS) -> None:
    """Read the text with llvm-as of each of these major versions, and of 11 and 12 if installed.

    Raises:
        ToolError: an llvm-as refuses the text (the message names it and the reason), one of `majors` is not installed,
            or the text has an intrinsic or a cast that LLVM 12 for the DPU lacks.
    """
    for name in sorted({hit[1] for hit in _INTRINSIC.finditer(ir)}):
        if not name.startswith("llvm.dpu.") and _SUFFIX.sub("", name) not in _KNOWN:
            raise ToolError(f"LLVM 12 has no intrinsic @{name}")
    if re.search(r"\baddrspacecast\b", ir):
        raise ToolError("the IR casts between address spaces, which a DPU cannot do: MRAM is reached by copies")
    wanted = tuple(majors)
    for major in (*wanted, *(extra for extra in _WHERE_PRESENT if extra not in wanted and assembler(extra))):
        program = assembler(major)
        if program is None:
            raise ToolError(f"llvm-as-{major} is not on PATH, nor is there a /usr/lib/llvm-{major}/bin/llvm-as")
        done = subprocess.run([program, "-disable-output", "-"], input=ir, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ToolError(f"llvm-as of LLVM {major} refuses the IR:\n{done.stderr.strip()[-4000:]}")


def assembler(major: int) -> Path | None:
    """Return the llvm-as of a major version of LLVM, None if it is not installed."""
    path = Path(shutil.which(f"llvm-as-{major}") or f"/usr/lib/llvm-{major}/bin/llvm-as")
    return path if path.is_file() else None
