"""Completes a kernel with functions that neither a DPU nor its SDK has, written in library.ll."""

from __future__ import annotations

import re
from importlib.resources import files

_INTRINSIC = re.compile(r"@llvm\.(floor|trunc|sqrt)\.f32\b")
_DECLARATION = re.compile(r"^declare [^\n]*@llvm\.(floor|trunc|sqrt)\.f32\([^\n]*\n", re.MULTILINE)


def complete(ir: str) -> str:
    """LLVM IR in which llvm.floor, llvm.trunc and llvm.sqrt on f32 are calls of functions that it has itself."""
    used = set(_INTRINSIC.findall(ir))
    if not used:
        return ir
    ir = _INTRINSIC.sub(r"@__triton_\1f", _DECLARATION.sub("", ir))
    library = (files(__package__) / "library.ll").read_text()
    functions = re.findall(r"^define .*? @__triton_(\w+)f\((.*?^}\n)", library, re.DOTALL | re.MULTILINE)
    wanted = [f"define internal float @__triton_{name}f({rest}" for name, rest in functions if name in used]
    return "\n".join([ir, *wanted])
