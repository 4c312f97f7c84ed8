"""Write an artifact: a folder that needs only the SDK and a C compiler to build and run a kernel.

    kernel.ll  wrapper.ll  triton_args.h  triton_args.c      the DPU program
    host_args.h  host_runner.c                               the host program
    meta.json                                                what they were generated from

meta.json has TritonPIM's keys (kernel, arg_count, out_indices, args, passed_args; num_dpus if the script sets it) and

    num_tasklets   tasklets to build with, and the most that kernel.ll has scratch memory for
    stack_size     bytes per tasklet
    block          how many elements apart the stores of neighbouring programs are, if that is one constant; the default
                   grid of host_runner.c is then ceil(n / block). null if --grid must be given
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import arguments
from .runner import Dpus, host_runner
from .script import ScriptError, default_dpus, kernel_ir
from .signature import LOG, Kernel, parse, tasklets
from .signature import facts as facts_of
from .wrapper import wrapper

# The symbols that dpu-legalize replaces.
_OPEN = re.compile(r"@__triton_(program_id|num_programs)\b")
# Of a kernel about which nothing is known. 11 tasklets fill the pipeline, every kind of DPU has 16. Their stacks are as
# large as the SDK's (bytes): tiles are elsewhere, dpu-legalize moves them to other WRAM.
_TASKLETS, _STACK_BYTES = 16, 1024


@dataclass(frozen=True)
class Artifact:
    """What an artifact was made from: the kernel, the indices of its results, the default number of DPUs."""

    kernel: Kernel
    outs: list[int]
    dpus: Dpus | None


def pack(script: Path, artifact: Path, *, outs: Collection[int] | None = None, kernel: str = "") -> Artifact:
    """Run a Triton script and write an artifact of its kernel.

    Args:
        script: accepts `--out PATH` and writes LLVM IR there.
        artifact: the folder to write; created if it does not exist.
        outs: indices of the arrays that are results; None for all that the kernel writes.
        kernel: its name; may be empty if the IR has only one.

    Raises:
        ScriptError: see script.kernel_ir and script.default_dpus; or an index in `outs` is not of an array it writes.
        SignatureError: see signature.parse.
    """
    ir = kernel_ir(script)
    signature = parse(ir, kernel)
    return write(ir, signature, artifact, outs=outs, dpus=default_dpus(script.read_text(), signature.name))


def write(ir: str, kernel: Kernel, artifact: Path, *, outs: Collection[int] | None, dpus: Dpus | None) -> Artifact:
    """Write the artifact of a kernel whose IR exists; see pack().

    Raises:
        ScriptError: dpu-legalize was not run on the IR, or the kernel prints or asserts; or see pack().
    """
    if hit := _OPEN.search(ir):
        raise ScriptError(
            f"the IR is as it was before dpu-legalize: it uses {hit[0]}, which no DPU program defines; "
            "unset TRITON_DPU_SKIP_LEGALIZE and pack again"
        )
    facts = facts_of(ir)
    if LOG in facts:
        raise ScriptError(
            f"the kernel {kernel.name} prints or asserts, and a C host program reads no log: leave out the prints, and "
            "compile without debug=True"
        )
    results = _outs(kernel, outs, facts)
    files = {
        "kernel.ll": ir,
        "wrapper.ll": wrapper(kernel),
        "triton_args.h": arguments.dpu_header(kernel),
        "triton_args.c": arguments.dpu_source(kernel, tasklets(ir)),
        "host_args.h": arguments.host_header(kernel),
        "host_runner.c": host_runner(kernel, outs=results, dpus=dpus, facts=facts),
        "meta.json": json.dumps(meta(kernel, ir, results, dpus), indent=2) + "\n",
    }
    artifact.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (artifact / name).write_text(text)
    return Artifact(kernel, results, dpus)


def meta(kernel: Kernel, ir: str, outs: Collection[int], dpus: Dpus | None) -> dict[str, Any]:
    """Return the contents of meta.json."""
    facts = facts_of(ir)
    return {
        "kernel": kernel.name,
        "arg_count": len(kernel.parameters),
        "out_indices": list(outs),
        **({"num_dpus": dpus.count} if dpus else {}),
        "args": [
            {
                "arg_index": parameter.index,
                "llvm_type": parameter.llvm_type,
                "is_ptr": parameter.is_pointer,
                "addrspace": parameter.addrspace,
                "passed": parameter.is_passed,
                **(
                    {"elem_type": parameter.element, "elem_bytes": parameter.element_bytes}
                    if parameter.is_pointer
                    else {"c_type": parameter.c_type}
                ),
            }
            for parameter in kernel.parameters
        ],
        "passed_args": [
            {
                "arg_index": parameter.index,
                "field_index": parameter.field,
                "kind": "ptr" if parameter.is_pointer else "scalar",
                "c_type": parameter.c_type,
                "offset": parameter.offset,
                **({"elem_bytes": parameter.element_bytes} if parameter.is_pointer else {}),
            }
            for parameter in kernel.host_parameters
        ],
        "num_tasklets": int(facts.get("num_tasklets") or tasklets(ir) or _TASKLETS),
        "stack_size": int(facts.get("stack_size") or _STACK_BYTES),
        "block": int(facts["block"]) if "block" in facts else None,
    }


def _outs(kernel: Kernel, outs: Collection[int] | None, facts: Mapping[str, str]) -> list[int]:
    """Return the indices of the result arrays. Check them if it is known which arrays the kernel writes."""
    arrays = [parameter.index for parameter in kernel.host_parameters if parameter.is_pointer]
    code = facts.get("reach")
    results = [i for i in arrays if code is None or f"writes({i}, " in code or f"writes_any({i})" in code]
    if outs is None:
        if code is None:
            raise ScriptError(f"the IR does not say which arrays are results: give --out-indices, of {arrays}")
        return results
    for index in outs:
        if index not in arrays:
            raise ScriptError(f"--out-indices {index}: the kernel {kernel.name} has no array there, but at {arrays}")
        if index not in results:
            raise ScriptError(f"--out-indices {index}: the kernel {kernel.name} does not write it; it writes {results}")
    return sorted(set(outs))
