"""KERNEL_cmd_gen.so: LLVM IR that writes the tensor core's commands for a launch, compiled by llc and a linker.

    size_t get_matmul_num(void), get_dma_num(void);
    bool generate_matmul_command(size_t index, const size_t grid[3], PARAMETERS, int gx, int gy, int gz,
                                 const size_t *SHAPE_OF_EACH_TENSOR_PARAMETER..., int8_t *out);
    bool generate_dma_command(size_t index, PARAMETERS, int gx, int gy, int gz, SHAPES..., int8_t *out);

A kernel that takes foundry_core's log (see its log.py) has one function more, ours and not the vendor's, whose result
is the kernel's sites as JSON:

    const char *get_log_sites(void);

How the arguments follow each other is our reading of the vendor's interface. Pointers are passed as pointers (and not
looked at), i1 and i8 as a byte, f16 and bf16 as the 16 bits that they have, other scalars as C's types; `grid` and gx,
gy, gz say the same. Command `index` of program (x, y, z) goes to out + 256 * (x + gx * (y + gy * z)); false, with
nothing written, if there is no such command, or if grid and gx, gy, gz differ.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from foundry_core.codegen.programs import locate
from foundry_core.log import Site
from foundry_core.scalars import PASSED
from foundry_core.strings import llvm_string

from .bridge import COMMAND_BYTES

_WORDS = COMMAND_BYTES // 4
_TRIPLE = "x86_64-unknown-linux-gnu"
# What a parameter is in LLVM IR; see the top.
_PASSED = {"ptr": "ptr"} | {row.mlir: row.llvm for row in PASSED.values()}


class CommandsError(Exception):
    """The library cannot be made."""


def source(parameters: Sequence[str], matmuls: Sequence[bytes], fields: Mapping[str, int]) -> str:
    """Return the library's LLVM IR.

    Args:
        parameters: of the kernel, see Lowered.
        matmuls: a command template each, 256 bytes.
        fields: where "grid", "program" and "checksum" start in a command, in bytes. Not looked at without templates.
    """
    if not matmuls:
        return _counts(0) + _NONE.format(name="generate_matmul_command") + _NONE.format(name="generate_dma_command")
    templates = [
        [int.from_bytes(template[at : at + 4], "little") for at in range(0, COMMAND_BYTES, 4)] for template in matmuls
    ]
    passed = [f"{_PASSED[parameter]} %p{index}" for index, parameter in enumerate(parameters)]
    passed += ["i32 %gx", "i32 %gy", "i32 %gz"]
    passed += [f"ptr %s{index}" for index, parameter in enumerate(parameters) if parameter == "ptr"]
    inserted, last = [], "%template"
    for field, values in (("grid", "%gx %gy %gz"), ("program", "%x %y %z"), ("checksum", "%sum")):
        for axis, value in enumerate(values.split()):
            vector = f"%{field}_{axis}_set"
            word = fields[field] // 4 + axis
            inserted.append(f"  {vector} = insertelement <{_WORDS} x i32> {last}, i32 {value}, i32 {word}")
            last = vector
    return (
        _counts(len(templates))
        + _MATMUL.format(
            count=len(templates),
            words=_WORDS,
            bytes=COMMAND_BYTES,
            templates=", ".join(
                f"<{_WORDS} x i32> <{', '.join(f'i32 {word}' for word in template)}>" for template in templates
            ),
            sums=", ".join(f"i32 {sum(template) % (1 << 32)}" for template in templates),
            parameters=", ".join(passed),
            inserted="\n".join(inserted),
            command=last,
        )
        + _NONE.format(name="generate_dma_command")
    )


def sites_source(sites: Sequence[Site]) -> str:
    """Return the LLVM IR of get_log_sites; empty for a kernel that takes no log."""
    if not sites:
        return ""
    text = json.dumps([asdict(site) for site in sites]).encode() + b"\0"
    return _SITES.format(bytes=len(text), text=llvm_string(text))


def compile(source: str, scratch: Path) -> bytes:
    """Return the shared library that LLVM IR makes.

    Args:
        source: its text.
        scratch: an empty folder.

    Raises:
        CommandsError: a tool is missing or failed.
    """
    # That llc is of the right LLVM is checked by the lowering, which runs the same.
    llc, linker = locate("llc"), shutil.which("ld") or shutil.which("ld.lld")
    if llc is None or linker is None:
        missing = "llc" if llc is None else "ld (or ld.lld)"
        raise CommandsError(f"{missing} is not on PATH; making the command library needs it")
    compiled, linked = str(scratch / "commands.o"), str(scratch / "commands.so")
    _run([str(llc), f"-mtriple={_TRIPLE}", "-O2", "-relocation-model=pic", "-filetype=obj", "-o", compiled], source)
    # The library needs no other (-z defs), and the same kernel gives the same bytes: no build ID, no names.
    _run([linker, "-shared", "-z", "defs", "-z", "noexecstack", "--build-id=none", "-s", "-o", linked, compiled])
    return Path(linked).read_bytes()


def _run(command: Sequence[str], text: str = "") -> None:
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
    if done.returncode != 0:
        output = done.stderr.decode(errors="replace").strip()[-4000:]
        raise CommandsError(f"{' '.join(command)} failed with exit status {done.returncode}:\n{output}")


def _counts(matmuls: int) -> str:
    return f"define i64 @get_matmul_num() {{\n  ret i64 {matmuls}\n}}\ndefine i64 @get_dma_num() {{\n  ret i64 0\n}}\n"


# Without commands, every index is refused and no other argument is read, so the arguments after it are not declared
# (in x86-64's calling convention the caller removes them).
_NONE = """\
define zeroext i1 @{name}(i64 %index) {{
  ret i1 false
}}
"""

_SITES = """\
@log_sites = private unnamed_addr constant [{bytes} x i8] c{text}
define ptr @get_log_sites() {{
  ret ptr @log_sites
}}
"""

# One loop over all programs, x fastest. The sum of a template's words is known; a program adds its own six.
_MATMUL = """\
@templates = private unnamed_addr constant [{count} x <{words} x i32>] [{templates}]
@sums = private unnamed_addr constant [{count} x i32] [{sums}]

define zeroext i1 @generate_matmul_command(i64 %index, ptr %grid, {parameters}, ptr %out) {{
  %known = icmp ult i64 %index, {count}
  br i1 %known, label %compare, label %refuse

compare:
  %gx_long = sext i32 %gx to i64
  %gy_long = sext i32 %gy to i64
  %gz_long = sext i32 %gz to i64
  %grid_y_at = getelementptr i64, ptr %grid, i64 1
  %grid_z_at = getelementptr i64, ptr %grid, i64 2
  %grid_x = load i64, ptr %grid
  %grid_y = load i64, ptr %grid_y_at
  %grid_z = load i64, ptr %grid_z_at
  %same_x = icmp eq i64 %grid_x, %gx_long
  %same_y = icmp eq i64 %grid_y, %gy_long
  %same_z = icmp eq i64 %grid_z, %gz_long
  %same_xy = and i1 %same_x, %same_y
  %same = and i1 %same_xy, %same_z
  %least_xy = call i32 @llvm.smin.i32(i32 %gx, i32 %gy)
  %least = call i32 @llvm.smin.i32(i32 %least_xy, i32 %gz)
  %natural = icmp sge i32 %least, 0
  %good = and i1 %same, %natural
  br i1 %good, label %prepare, label %refuse

refuse:
  ret i1 false

prepare:
  %template_at = getelementptr [{count} x <{words} x i32>], ptr @templates, i64 0, i64 %index
  %template = load <{words} x i32>, ptr %template_at
  %sum_at = getelementptr [{count} x i32], ptr @sums, i64 0, i64 %index
  %sum_template = load i32, ptr %sum_at
  %grid_xy = add i32 %gx, %gy
  %grid_xyz = add i32 %grid_xy, %gz
  %sum_grid = add i32 %sum_template, %grid_xyz
  %empty = icmp eq i32 %least, 0
  br i1 %empty, label %done, label %program

program:
  %x = phi i32 [ 0, %prepare ], [ %x_after, %program ]
  %y = phi i32 [ 0, %prepare ], [ %y_after, %program ]
  %z = phi i32 [ 0, %prepare ], [ %z_next, %program ]
  %at = phi ptr [ %out, %prepare ], [ %at_next, %program ]
  %program_xy = add i32 %x, %y
  %program_xyz = add i32 %program_xy, %z
  %sum = add i32 %sum_grid, %program_xyz
{inserted}
  store <{words} x i32> {command}, ptr %at, align 1
  %at_next = getelementptr i8, ptr %at, i64 {bytes}
  %x_next = add i32 %x, 1
  %x_ends = icmp eq i32 %x_next, %gx
  %x_after = select i1 %x_ends, i32 0, i32 %x_next
  %y_step = zext i1 %x_ends to i32
  %y_next = add i32 %y, %y_step
  %y_ends = icmp eq i32 %y_next, %gy
  %y_after = select i1 %y_ends, i32 0, i32 %y_next
  %z_step = zext i1 %y_ends to i32
  %z_next = add i32 %z, %z_step
  %all = icmp eq i32 %z_next, %gz
  br i1 %all, label %done, label %program

done:
  ret i1 true
}}
declare i32 @llvm.smin.i32(i32, i32)
"""
