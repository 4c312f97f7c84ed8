"""Asking the LLVMs on both sides of the DPU's 12 whether they read a text: Debian has 13 and 14, and some have 11.

They let two things pass that 12 has no way with: later intrinsics, because to an LLVM that does not know one it is an
ordinary name, and addresses cast between spaces, which no DPU can do. Those are looked for here.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from ..errors import ToolError
from .intrinsics import KNOWN

MAJORS = (13, 14)
_WHERE_PRESENT = (11, 12)
_INTRINSIC = re.compile(r"@(llvm\.[\w.]+)\(")
_SUFFIX = re.compile(r"(\.(v\d+)?(p\d+)?(i\d+|f16|bf16|f32|f64))+$")


def check(ir: str, majors: Iterable[int] = MAJORS) -> None:
    """Have the llvm-as of each of these majors read the text, and of 11 and 12 where they are installed.

    Raises:
        ToolError: one refuses it (which, and why), one of `majors` is not installed, or the text has an intrinsic or
            a cast that LLVM 12 for the DPU lacks.
    """
    for name in sorted({hit[1] for hit in _INTRINSIC.finditer(ir)}):
        if not name.startswith("llvm.dpu.") and _SUFFIX.sub("", name) not in KNOWN:
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
    """The llvm-as of a major of LLVM, None if it is not installed."""
    path = Path(shutil.which(f"llvm-as-{major}") or f"/usr/lib/llvm-{major}/bin/llvm-as")
    return path if path.is_file() else None
