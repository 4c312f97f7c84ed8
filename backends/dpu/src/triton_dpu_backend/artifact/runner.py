"""Write the host program of an artifact: a table of the kernel's parameters in C, then common code."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib.resources import files

from foundry_core.strings import c_string, llvm_text

from ..counts import MOST_DPUS
from .signature import Kernel, Parameter

# The name of the DPU program's file, which is in the runner's folder.
PROGRAM = "kernel.dpu"
# The files of host_runner/, in their order in one translation unit.
_PARTS = ("state", "reach", "options", "arrays", "planning", "dpus", "results")

_HEAD = """\
/* Host program of the Triton kernel {name}. Generated; edits are lost. scripts/container_artifact_run.sh runs it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <dpu.h>

#include "host_args.h"

#define KERNEL {name}
#define DPU_PROGRAM "{program}"
#define DEFAULT_DPUS {num_dpus}
#define MOST_DPUS {most_dpus}
#define DEFAULT_DPUS_FROM {num_dpus_from}
/* Whether the number of programs follows from the arguments. */
#define HAS_BLOCK {has_block}
/* Whether programs have an effect on others while they run. */
#define IS_ATOMIC {is_atomic}

enum kind {{ INTERNAL, POINTER, INTEGER, FLOAT }};

/* Of the kernel, in order. `bytes` of a pointer are those of an element; `offset` is in the struct of arguments. */
static const struct parameter {{
    enum kind kind;
    const char *type;
    int bytes;
    int is_float;
    int is_out;
    size_t offset;
}} parameters[] = {{
{parameters}
}};

"""

_REACH = """\
static void reach(const int64_t *program, const int64_t *grid)
{{
{code}
}}"""


@dataclass(frozen=True)
class Dpus:
    """The default number of DPUs of a launch, and what set it."""

    count: int
    source: str


def host_runner(kernel: Kernel, *, outs: Collection[int], dpus: Dpus | None, facts: Mapping[str, str]) -> str:
    """Return the host program of a kernel.

    Args:
        kernel: its signature.
        outs: indices of the arrays that are results.
        dpus: the default; one DPU if None.
        facts: what the compiler stored about it (signature.facts). Without `reach`, each DPU gets all of each array.
    """
    # A kernel of which nothing is known may write all of its outputs and read all other arrays.
    arrays = [parameter.index for parameter in kernel.host_parameters if parameter.is_pointer]
    everything = "\n".join(f"{'writes' if index in outs else 'reads'}_any({index});" for index in arrays)
    code = facts.get("reach", everything)
    head = _HEAD.format(
        name=c_string(llvm_text(kernel.name, "replace")),
        program=PROGRAM,
        num_dpus=dpus.count if dpus else 1,
        most_dpus=MOST_DPUS,
        num_dpus_from=c_string(f", from {dpus.source}" if dpus else ""),
        has_block=int("block" in facts),
        is_atomic=int("atomic" in facts),
        parameters="\n".join(_row(parameter, parameter.index in outs) for parameter in kernel.parameters),
    )
    folder = files(__package__).joinpath("host_runner")
    common = "\n".join(folder.joinpath(f"{part}.c").read_text() for part in _PARTS)
    indented = "\n".join(f"    {line}" for line in code.splitlines())
    # Read as a file: the entry point's generator imports this module with nothing but Python's own library.
    spans = files("foundry_core").joinpath("footprint", "spans.h").read_text()
    return head + common.replace("SPANS\n", spans, 1).replace("REACH\n", _REACH.format(code=indented) + "\n", 1)


def _row(parameter: Parameter, is_out: bool) -> str:
    if not parameter.is_passed:
        return '    {INTERNAL, "", 0, 0, 0, 0},'
    type = parameter.element or parameter.llvm_type
    is_float = type in ("float", "double")
    kind = "POINTER" if parameter.is_pointer else "FLOAT" if is_float else "INTEGER"
    size = parameter.element_bytes if parameter.is_pointer else parameter.bytes
    return f'    {{{kind}, "{type}", {size}, {int(is_float)}, {int(is_out)}, {parameter.offset}}},'
