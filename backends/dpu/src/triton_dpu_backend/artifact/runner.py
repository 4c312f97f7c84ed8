"""Write the host program of an artifact: a table of the kernel's parameters in C, then common code."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib.resources import files

from foundry_core.strings import c_string, llvm_text

from ..counts import MOST_DPUS
from .signature import Kernel, Parameter

# The name of the DPU program's file, which is in the runner's folder.
PROGRAM = "kernel.dpu"
# The files of host_runner/, in their order in one translation unit.
_PARTS = ("state", "options", "arrays", "results")

_HEAD = """\
/* Host program of the Triton kernel {name}. Generated; edits are lost. scripts/container_artifact_run.sh runs it. */
#define _GNU_SOURCE
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

{library}
#define KERNEL {name}
#define DPU_PROGRAM "{program}"
#define DEFAULT_DPUS {num_dpus}
#define MOST_DPUS {most_dpus}
#define DEFAULT_DPUS_FROM {num_dpus_from}
/* Whether the number of programs follows from the arguments. */
#define HAS_BLOCK {has_block}

{table}

"""

_TABLE = """\
enum kind {{ INTERNAL, POINTER, INTEGER, FLOAT }};

/* The parameters of the kernel. `bytes` of a pointer are those of an element. */
static const struct parameter {{
    enum kind kind;
    const char *type;
    int bytes;
    int is_float;
    int is_out;
}} parameters[] = {{
{rows}
}};

#define COUNT {count}

/* The same for shards.c: how a parameter is passed, and where. */
static const struct packed_parameter passed[COUNT + 1] = {{
{passed}
}};
static const int sizes[COUNT + 1] = {{{sizes}}};

{reach}

static const struct packed_variant variant = {{
    .parameters = passed, .symbol = KERNEL, .argument_bytes = {argument_bytes}, .reach = reach,
}};

/* Whether programs have an effect on others while they run. */
#define IS_ATOMIC {is_atomic}"""

_REACH = """\
static void {name}(struct packed_reach *reach, const int64_t *argument, const int64_t *program, const int64_t *grid)
{{
    (void)reach, (void)argument, (void)program, (void)grid;
    /* What a loop carries may serve data only. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
{code}
#pragma GCC diagnostic pop
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
    head = _HEAD.format(
        name=c_string(llvm_text(kernel.name, "replace")),
        program=PROGRAM,
        num_dpus=dpus.count if dpus else 1,
        most_dpus=MOST_DPUS,
        num_dpus_from=c_string(f", from {dpus.source}" if dpus else ""),
        has_block=int("block" in facts),
        table=_table(kernel, outs=outs, facts=facts),
        library=library(),
    )
    folder = files(__package__).joinpath("host_runner")
    return "\n".join([head, *(folder.joinpath(f"{part}.c").read_text() for part in _PARTS)])


def _table(kernel: Kernel, *, outs: Collection[int], facts: Mapping[str, str]) -> str:
    """Return what the host program and shards.c know of a kernel: its parameters, and what its programs reach."""
    # A kernel of which nothing is known may write all of its outputs and read all other arrays.
    arrays = [parameter.index for parameter in kernel.host_parameters if parameter.is_pointer]
    everything = "\n".join(f"{'writes' if index in outs else 'reads'}_any({index});" for index in arrays)
    return _TABLE.format(
        rows="\n".join(_row(parameter, parameter.index in outs) for parameter in kernel.parameters),
        count=len(kernel.parameters),
        passed="\n".join(_passed(parameter) for parameter in kernel.parameters),
        sizes=", ".join([*(str(parameter.element_bytes) for parameter in kernel.parameters), "0"]),
        reach=_REACH.format(name="reach", code=textwrap.indent(facts.get("reach", everything), "    ")),
        argument_bytes=kernel.arguments_bytes,
        is_atomic=int("atomic" in facts),
    )


def library() -> str:
    """Return the C code that shards a launch and runs it, as one text.

    The files are read as files: the entry point's generator imports this module with nothing but Python's own library.
    """
    names = ("packed/foundry_packed.h", "packed/road.h", "footprint/spans.h", "packed/reach.h")
    return "\n".join([*(_text("foundry_core", name) for name in names), sources()])


def sources(*more: str) -> str:
    """Return runtime.c, shards.h, shards.c and `more` files of host/ as one text. It needs road.h."""
    host = f"{__package__.rpartition('.')[0]}.host"
    return "\n".join(_text(host, name) for name in ("runtime.c", "shards.h", "shards.c", *more))


def _text(package: str, name: str) -> str:
    """Return a file without its includes of this project's other files."""
    return re.sub(r'^#include ".*"\n', "", files(package).joinpath(name).read_text(), flags=re.MULTILINE)


def _row(parameter: Parameter, is_out: bool) -> str:
    if not parameter.is_passed:
        return '    {INTERNAL, "", 0, 0, 0},'
    type = parameter.element or parameter.llvm_type
    is_float = type in ("float", "double")
    kind = "POINTER" if parameter.is_pointer else "FLOAT" if is_float else "INTEGER"
    size = parameter.element_bytes if parameter.is_pointer else parameter.bytes
    return f'    {{{kind}, "{type}", {size}, {int(is_float)}, {int(is_out)}}},'


def _passed(parameter: Parameter) -> str:
    if not parameter.is_passed:
        return "    {.how = PACKED_CONSTANT},"
    return f"    {{.how = PACKED_{'POINTER' if parameter.is_pointer else 'NUMBER'}, .offset = {parameter.offset}}},"
