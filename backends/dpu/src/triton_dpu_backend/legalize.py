"""Run dpu-legalize, which replaces what a kernel leaves open (ids, copies of any length, large allocas) by DPU code.

The pass needs an LLVM `opt` that contains it and reads typed pointers. UPMEM_OPT names one, for instance a build of
the UPMEM fork. The default is the `opt` on PATH, which in the image is LLVM 14's with the pass as a plugin.

Environment:
    UPMEM_OPT: path of the `opt` to use.
    TRITON_DPU_SKIP_LEGALIZE=1: leave the kernel as it is. Its IR can be inspected and legalised by hand; a DPU program
        cannot be linked from it.
    TRITON_DPU_FORCE_LEGALIZE=1: accepted because scripts set it. A failure of opt is an error even without it. It may
        not be combined with TRITON_DPU_SKIP_LEGALIZE=1.
    TRITON_DPU_VERBOSE=1: print on standard error which opt is used.
"""

from __future__ import annotations

import os
import subprocess
import sys

from foundry_core.codegen.programs import locate
from foundry_core.errors import ToolError


def is_skipped() -> bool:
    """Return whether kernels are left as they are, without legalisation."""
    return os.environ.get("TRITON_DPU_SKIP_LEGALIZE") == "1"


def legalize(ir: str, num_tasklets: int) -> str:
    """Return the kernel after dpu-legalize.

    Args:
        ir: typed-pointer LLVM IR as foundry_core.codegen.typed writes it.
        num_tasklets: how many tasklets need scratch memory.

    Raises:
        ToolError: there is no opt, or it refused the kernel.
    """
    if is_skipped():
        if os.environ.get("TRITON_DPU_FORCE_LEGALIZE") == "1":
            raise ToolError("TRITON_DPU_SKIP_LEGALIZE and TRITON_DPU_FORCE_LEGALIZE contradict each other; unset one")
        return ir
    opt = os.environ.get("UPMEM_OPT") or locate("opt")
    if opt is None:
        what = "there is no opt with dpu-legalize on PATH"
        raise ToolError(f"{what}; set UPMEM_OPT to one (or TRITON_DPU_SKIP_LEGALIZE=1)")
    if os.environ.get("TRITON_DPU_VERBOSE") == "1":
        print(f"[dpu_legalize] using opt: {opt}", file=sys.stderr)
    command = [str(opt), "-dpu-legalize", f"-dpu-nr-tasklets={num_tasklets}", "-S", "-", "-o", "-"]
    try:
        done = subprocess.run(command, input=ir, capture_output=True, text=True, check=False)
    except OSError as error:
        raise ToolError(f"UPMEM_OPT={opt} cannot be run: {error.strerror}") from error
    advice = "unset UPMEM_OPT to use the installed opt, or set it to one with the pass"
    if "'-dpu-legalize'" in done.stderr:  # LLVM's message for an unknown option
        raise ToolError(f"UPMEM_OPT={opt} has no pass dpu-legalize; {advice}")
    if done.returncode != 0:
        output = done.stderr.strip()[-4000:] or f"it gave no reason, as LLVM's opt does; {advice}"
        raise ToolError(f"{' '.join(command)} failed with exit status {done.returncode}:\n{output}")
    if "\ndefine " not in done.stdout:
        raise ToolError(f"UPMEM_OPT={opt} succeeded and wrote no kernel, so it is not LLVM's opt; {advice}")
    return done.stdout
