"""Checks that neighbours of the DPU's LLVM 12 can read a text: 13 and 14, which Debian has, and 11 and 12 if installed.

These releases accept two things that LLVM 12 for the DPU cannot handle, so we check them here: later intrinsics,
because an unknown intrinsic is an ordinary name, and casts of addresses between spaces, which no DPU can do.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from ...errors import ToolError
from .intrinsics import KNOWN

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
    """Return the llvm-as of a major version of LLVM, None if it is not installed."""
    path = Path(shutil.which(f"llvm-as-{major}") or f"/usr/lib/llvm-{major}/bin/llvm-as")
    return path if path.is_file() else None
