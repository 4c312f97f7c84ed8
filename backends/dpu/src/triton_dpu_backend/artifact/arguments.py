"""Write the C code around a kernel: the structs that carry arguments and grid, for the DPU and for the host.

triton_args.h   the structs, on the DPU
triton_args.c   their definitions, and all other symbols that a kernel's module and its wrapper leave undefined
host_args.h     the same structs, on the host
"""

from __future__ import annotations

from foundry_core.strings import c_string, llvm_text

from .signature import Kernel

# The symbols that a host writes before a launch.
ARGUMENTS = "DPU_INPUT_ARGUMENTS"
GRID = "DPU_GRID"

_STRUCTS = """\
{fields}
    uint64_t pad;
}} __attribute__((aligned(8))) {prefix}_input_arguments_t;

/* The grid, and which of its programs this DPU runs: `count` from `first` on, in linear order, x fastest. At most
   `tasklets` tasklets run them; 0 stands for all. */
typedef struct {{
    uint32_t x, y, z;
    uint32_t first, count;
    uint32_t tasklets;
}} __attribute__((aligned(8))) {prefix}_grid_t;

{checks}
"""

_DPU_HEADER = """\
/* What the host passes to the kernel. Generated from its signature; edits are lost. */
#ifndef TRITON_ARGS_H
#define TRITON_ARGS_H

#include <stddef.h>
#include <stdint.h>

/* Pointers are addresses in MRAM. */
typedef struct {{
{structs}
extern dpu_input_arguments_t DPU_INPUT_ARGUMENTS;
extern dpu_grid_t DPU_GRID;

#endif
"""

_DPU_SOURCE = """\
/* The part of the DPU program that the kernel and its wrapper use. This file is generated: edits are lost. */
#include <defs.h>
#include <mram.h>
#include <mutex.h>

#include "triton_args.h"

#ifndef NR_TASKLETS
#error "compile with -DNR_TASKLETS=n, and link with the same"
#endif
{most}
__host dpu_input_arguments_t DPU_INPUT_ARGUMENTS;
__host dpu_grid_t DPU_GRID;

/* Read by the kernel: the program that each tasklet is at, as x, y, z, and which slice of it; the size of the grid. */
uint32_t __triton_program[24][4];
uint32_t __triton_grid[3];
const uint32_t __triton_tasklets = NR_TASKLETS;

uint32_t __triton_slice(void) {{ return __triton_program[me()][3]; }}

/* Held while a part of an 8-byte word of MRAM is replaced: DMA moves whole ones. */
MUTEX_INIT(triton_mram);

void __triton_mram_lock(void) {{ mutex_lock(triton_mram); }}

void __triton_mram_unlock(void) {{ mutex_unlock(triton_mram); }}
"""

_MOST = """\
#if NR_TASKLETS > {tasklets}
#error "the kernel was legalised for {tasklets} tasklets, each with its own part of WRAM"
#endif
"""

_HOST_HEADER = """\
/* What the host passes to the kernel {name}, laid out as on the DPU. Generated from its signature; edits are lost. */
#ifndef HOST_ARGS_H
#define HOST_ARGS_H

#include <stddef.h>
#include <stdint.h>

/* Pointers are addresses in MRAM. */
typedef struct {{
{structs}
#endif
"""


def dpu_header(kernel: Kernel) -> str:
    """Return triton_args.h."""
    return _DPU_HEADER.format(structs=_structs(kernel, "dpu"))


def dpu_source(kernel: Kernel, tasklets: int | None = None) -> str:
    """Return triton_args.c.

    Args:
        kernel: the kernel.
        tasklets: the most that the kernel's IR has scratch memory for (see signature.tasklets); None: no limit.
    """
    most = "" if tasklets is None else _MOST.format(tasklets=tasklets)
    return _DPU_SOURCE.format(most=most)


def host_header(kernel: Kernel) -> str:
    """Return host_args.h."""
    return _HOST_HEADER.format(name=c_string(llvm_text(kernel.name, "replace")), structs=_structs(kernel, "host"))


def _structs(kernel: Kernel, prefix: str) -> str:
    checks = [
        f"_Static_assert(offsetof({prefix}_input_arguments_t, arg{parameter.index}) == {parameter.offset}, "
        f'"argument {parameter.index} has moved");'
        for parameter in kernel.host_parameters
    ]
    size = f'_Static_assert(sizeof({prefix}_input_arguments_t) == {kernel.arguments_bytes}, "the size has changed");'
    fields = [
        f"    {parameter.c_type} arg{parameter.index};"
        + (f" /* {parameter.element} elements */" if parameter.is_pointer else "")
        for parameter in kernel.host_parameters
    ]
    return _STRUCTS.format(fields="\n".join(fields), prefix=prefix, checks="\n".join([*checks, size]))
