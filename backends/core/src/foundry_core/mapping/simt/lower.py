"""From TTGIR to SPIR-V."""

from __future__ import annotations

import re
from typing import NamedTuple

from ...front.assertions import end_failed_programs
from ...front.calls import inline
from ...front.libdevice import replace_functions
from ...front.records import replace_prints
from ...front.returns import replace_returns
from ...front.structured import kernel
from ...front.writes import written
from ...log import Site
from ...parse import parse
from ...pipeline import deep_expressions
from . import atomic, dot, exchange, memory, pieces, record, scaled, scan  # noqa: F401  they register how operations are written
from .program import Program
from .target import SimtTarget


class Simt(NamedTuple):
    """A kernel as SPIR-V.

    Attributes:
        module: the binary.
        offsets: where each argument, and for Vulkan each table and what ShaderWorkgroup adds, is in the
            block of arguments, in bytes.
        tables: how many tables the kernel takes: the launch's log, if there are sites, and 16 bytes that can always be
            read, if it loads under a mask.
        argument_bytes: size of that block, a multiple of 4, as Vulkan wants it.
        written: the numbers of the arguments that the kernel may store through.
        local_bytes: workgroup memory that it uses.
        sites: the places that write to the launch's log, by number.
    """

    module: bytes
    offsets: list[int]
    tables: int
    argument_bytes: int
    written: list[int]
    local_bytes: int
    sites: list[Site]


# The shape of the allocation that a tile in workgroup memory is a part of.
_ALLOCATED = re.compile(r"(#\w+, #\w+(?:, mutable)?), [0-9x]+>")
_OF_PRODUCT = re.compile(r"ttg\.dot_op<\{opIdx = 0, parent = (#\w+)\}>")


def balanced(ttgir: str, target: SimtTarget) -> str:
    """Give the layouts of products lanes and warps in both dimensions.

    Triton lines up lanes along a row. In a square, they need fewer elements of workgroup memory together: on an H200,
    4096^3 in f32, 46 TFLOP/s instead of 41 (a hand-written shader).
    """
    if target.warp_size != 32 or target.warps < 2:
        return ttgir
    for name in set(_OF_PRODUCT.findall(ttgir)):
        ttgir = re.sub(
            rf"^({name} = #ttg\.blocked<.*)threadsPerWarp = \[2, 16\], warpsPerCTA = \[{target.warps}, 1\]",
            rf"\1threadsPerWarp = [4, 8], warpsPerCTA = [{target.warps // 2}, 2]",
            ttgir,
            flags=re.MULTILINE,
        )
    return ttgir


def lower(ttgir: str, target: SimtTarget, *, named: bool = False) -> Simt:
    """Translate one kernel.

    Args:
        named: whether registers have the names of values, for a person who reads the module.

    Raises:
        UnsupportedOperation: names the operation and its source line.
        LoweringError: the kernel needs more than the device has.
    """
    with deep_expressions():
        # Triton leaves calls of functions with several returns in the function of a scan or a reduction.
        module = inline(parse(_ALLOCATED.sub(r"\1>", balanced(ttgir, target))))
        stored = written(module)
        sites = replace_prints(module)
        function = kernel(module)
        replace_returns(function)
        replace_functions(function.body.block)
        end_failed_programs(function)
        program = Program(function, target, named=named)
        binary = program.write()
    group = program.group
    size = -(-group.argument_bytes // 4) * 4
    return Simt(binary, group.argument_offsets, group.tables, size, stored, group.local_bytes, sites)
