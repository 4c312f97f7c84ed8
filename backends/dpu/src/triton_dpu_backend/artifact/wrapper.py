"""Write the entry point of a DPU program in LLVM IR: every tasklet runs the kernel for its share of the programs.

The host writes the whole grid into DPU_GRID, and which of its programs, counted in linear order (x fastest), this DPU
runs. Each program has as many slices as the kernel was split into, most often one. With n tasklets, tasklet t runs the
slices t, t + n, t + 2n, ... of all slices of these programs, one after the other. The host may ask for fewer tasklets
than the DPU program has, so that all of them have equally much to do.
"""

from __future__ import annotations

from .signature import Kernel, Parameter

TRIPLE = "dpu-upmem-dpurte"
DATALAYOUT = "e-m:e-p:32:32-i1:8:32-i8:8:32-i16:16:32-i32:32:32-i64:64:64-n32"

# The part of the module that does not depend on the kernel. Program ids are read from __triton_program, one row per
# tasklet: x, y, z, and the number of the slice. All tasklets write the same values into __triton_grid, each before it
# reads them, so no barrier is needed. If there are more tasklets than triton_args.c was compiled for, the additional
# ones do nothing.
_MODULE = """\
; Entry point of every tasklet: runs @{name} for its share of the programs that DPU_GRID gives this DPU.
; Generated from the signature of @{name}; edits are lost.
target datalayout = "{datalayout}"
target triple = "{triple}"

%arguments = type {{ {fields} }}

@DPU_INPUT_ARGUMENTS = external global %arguments, align 8
@DPU_GRID = external global [6 x i32], align 8
@__triton_grid = external global [3 x i32], align 4
@__triton_program = external global [24 x [4 x i32]], align 4
@__triton_tasklets = external constant i32, align 4

declare i32 @llvm.dpu.tid.i32()
declare void @{symbol}({types})

define i32 @main() {{
entry:
  %tasklet = call i32 @llvm.dpu.tid.i32()
  %built = load i32, i32* @__triton_tasklets, align 4
  %columns = load i32, i32* getelementptr inbounds ([6 x i32], [6 x i32]* @DPU_GRID, i32 0, i32 0), align 8
  %rows = load i32, i32* getelementptr inbounds ([6 x i32], [6 x i32]* @DPU_GRID, i32 0, i32 1), align 4
  %planes = load i32, i32* getelementptr inbounds ([6 x i32], [6 x i32]* @DPU_GRID, i32 0, i32 2), align 8
  %first = load i32, i32* getelementptr inbounds ([6 x i32], [6 x i32]* @DPU_GRID, i32 0, i32 3), align 4
  %programs = load i32, i32* getelementptr inbounds ([6 x i32], [6 x i32]* @DPU_GRID, i32 0, i32 4), align 8
  %asked = load i32, i32* getelementptr inbounds ([6 x i32], [6 x i32]* @DPU_GRID, i32 0, i32 5), align 4
  %asked.less = add i32 %asked, -1
  %is.fewer = icmp ult i32 %asked.less, %built
  %tasklets = select i1 %is.fewer, i32 %asked, i32 %built
  %count = shl i32 %programs, {shift}
  store i32 %columns, i32* getelementptr inbounds ([3 x i32], [3 x i32]* @__triton_grid, i32 0, i32 0), align 4
  store i32 %rows, i32* getelementptr inbounds ([3 x i32], [3 x i32]* @__triton_grid, i32 0, i32 1), align 4
  store i32 %planes, i32* getelementptr inbounds ([3 x i32], [3 x i32]* @__triton_grid, i32 0, i32 2), align 4
  %at.x = getelementptr inbounds [24 x [4 x i32]], [24 x [4 x i32]]* @__triton_program, i32 0, i32 %tasklet, i32 0
  %at.y = getelementptr inbounds [24 x [4 x i32]], [24 x [4 x i32]]* @__triton_program, i32 0, i32 %tasklet, i32 1
  %at.z = getelementptr inbounds [24 x [4 x i32]], [24 x [4 x i32]]* @__triton_program, i32 0, i32 %tasklet, i32 2
  %at.slice = getelementptr inbounds [24 x [4 x i32]], [24 x [4 x i32]]* @__triton_program, i32 0, i32 %tasklet, i32 3
{loads}
  %others = or i32 %rows, %planes
  %is.line = icmp eq i32 %others, 1
  %takes.part = icmp ult i32 %tasklet, %tasklets
  br i1 %takes.part, label %next, label %done

next:
  %turn = phi i32 [ %tasklet, %entry ], [ %turn.after, %run ]
  %is.ours = icmp ult i32 %turn, %count
  br i1 %is.ours, label %locate, label %done

locate:
  %turn.program = lshr i32 %turn, {shift}
  %slice = and i32 %turn, {last}
  %linear = add i32 %first, %turn.program
  br i1 %is.line, label %run, label %divide

divide:
  %line = udiv i32 %linear, %columns
  %x.of.line = urem i32 %linear, %columns
  %z.of.line = udiv i32 %line, %rows
  %y.of.line = urem i32 %line, %rows
  br label %run

run:
  %x = phi i32 [ %linear, %locate ], [ %x.of.line, %divide ]
  %y = phi i32 [ 0, %locate ], [ %y.of.line, %divide ]
  %z = phi i32 [ 0, %locate ], [ %z.of.line, %divide ]
  store i32 %x, i32* %at.x, align 4
  store i32 %y, i32* %at.y, align 4
  store i32 %z, i32* %at.z, align 4
  store i32 %slice, i32* %at.slice, align 4
  call void @{symbol}({values})
  %turn.after = add i32 %turn, %tasklets
  br label %next

done:
  ret i32 0
}}
"""


def wrapper(kernel: Kernel) -> str:
    """Return the module with the entry point `main` that calls a kernel, as typed-pointer IR for LLVM 11 to 14.

    It is linked with the kernel's own module and with triton_args.c, which defines the globals that it uses.
    """
    fields = [_field(parameter) for parameter in kernel.host_parameters] + ["i64"]
    loads = [line for parameter in kernel.host_parameters for line in _load(parameter)]
    values = [
        f"{parameter.llvm_type} {f'%arg{parameter.index}' if parameter.is_passed else 'null'}"
        for parameter in kernel.parameters
    ]
    # As IR writes a function's name after the @.
    is_plain = kernel.name.isascii() and kernel.name.replace("_", "").replace(".", "").isalnum()
    return _MODULE.format(
        name=kernel.name,
        symbol=kernel.name if is_plain else f'"{kernel.name}"',
        shift=kernel.parts.bit_length() - 1,
        last=kernel.parts - 1,
        datalayout=DATALAYOUT,
        triple=TRIPLE,
        fields=", ".join(fields),
        types=", ".join(parameter.llvm_type for parameter in kernel.parameters),
        loads="\n".join(loads),
        values=", ".join(values),
    )


def _field(parameter: Parameter) -> str:
    return "i32" if parameter.is_pointer else parameter.llvm_type


def _load(parameter: Parameter) -> list[str]:
    """Return the instructions that read one argument. With this datalayout, C and LLVM lay out the struct equally."""
    type, value = _field(parameter), f"%arg{parameter.index}"
    field = f"getelementptr inbounds (%arguments, %arguments* @DPU_INPUT_ARGUMENTS, i32 0, i32 {parameter.field})"
    load = f"load {type}, {type}* {field}, align {parameter.bytes}"
    if not parameter.is_pointer:
        return [f"  {value} = {load}"]
    return [f"  {value}.address = {load}", f"  {value} = inttoptr i32 {value}.address to {parameter.llvm_type}"]
