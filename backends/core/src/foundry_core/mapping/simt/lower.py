"""From TTGIR to SPIR-V."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from xdsl.ir import BlockArgument

from ...analysis.axes import LaunchHope
from ...errors import TooLarge
from ...front.assertions import end_failed_programs
from ...front.calls import inline_calls, replace_functions
from ...front.records import replace_prints
from ...front.returns import replace_returns
from ...front.structured import kernel
from ...front.sums import widen_sums
from ...front.writes import WriteSet, write_set
from ...ir.depth import deep_expressions
from ...ir.parse import parse
from ...log import Site
from . import statements  # noqa: F401  it registers how operations are written
from .ahead import load_ahead
from .program import SimtProgram
from .slices import slice_large_tiles
from .steps import divide_products
from .target import SimtTarget


class Simt(NamedTuple):
    """A kernel as SPIR-V.

    Attributes:
        module: the binary.
        offsets: where each argument, and for Vulkan each table and what ShaderWorkgroup adds, is in the
            block of arguments, in bytes.
        tables: how many tables the kernel takes: the launch's log, if there are sites, and 16 bytes that can always be
            read, if it loads under a mask.
        argument_bytes: size of that block; for Vulkan a multiple of 4, as it wants it.
        writes: the arguments that the kernel may write through.
        local_bytes: workgroup memory that it uses.
        sites: the places that write to the launch's log, by number.
        parts: how many products along K are made of each that workgroup memory does not hold.
        is_ahead: whether a loop loads two iterations ahead.
        hopes: what must hold of arguments for a launch to take the second of two variants of the kernel; None if there
            is one variant.
    """

    module: bytes
    offsets: list[int]
    tables: int
    argument_bytes: int
    writes: WriteSet
    local_bytes: int
    sites: list[Site]
    parts: int = 1
    is_ahead: bool = False
    hopes: Sequence[LaunchHope] | None = None


# How many parts of a product are tried.
_PARTS = (2, 4, 8)
# The shape of the allocation that a tile in workgroup memory is a part of.
_ALLOCATED = re.compile(r"(#\w+, #\w+(?:, mutable)?), [0-9x]+>")
# The left operand of a product, and the type of its result.
_PRODUCT = re.compile(
    r"tt\.dot .*: tensor<[0-9x]+x(?P<elem>\w+), #ttg\.dot_op<\{opIdx = 0, parent = (?P<layout>#\w+)\}>> .*"
    r"-> tensor<(?P<rows>\d+)x(?P<columns>\d+)x\w+, (?P=layout)>"
)
_BLOCK = (
    r"sizePerThread = \[(\d+), (\d+)\], threadsPerWarp = \[\d+, \d+\], warpsPerCTA = \[\d+, \d+\], order = \[1, 0\]"
)


def balance_layouts(ttgir: str, target: SimtTarget) -> str:
    """Give the layouts of products lanes and warps in both dimensions, so that an invocation has a square.

    Triton lines up lanes along a row. In a square, invocations need fewer elements of both operands: on an H200, 4096^3
    in f32, 46 TFLOP/s instead of 41 (a hand-written shader).
    """
    cooperative = {fragment.factor for fragment in target.fragments}
    products = {found["layout"]: found for found in _PRODUCT.finditer(ttgir) if found["elem"] not in cooperative}
    for name, found in products.items():
        rows, columns = int(found["rows"]), int(found["columns"])

        def square(layout: re.Match[str], rows: int = rows, columns: int = columns) -> str:
            height, width = int(layout[2]), int(layout[3])
            lanes = _square(target.warp_size, rows // height, columns // width, 1, 1)
            warps = _square(target.warps, rows // height, columns // width, *lanes)
            return (
                f"{layout[1]}sizePerThread = [{height}, {width}], threadsPerWarp = [{lanes[0]}, {lanes[1]}], "
                f"warpsPerCTA = [{warps[0]}, {warps[1]}], order = [1, 0]"
            )

        ttgir = re.sub(rf"^({name} = #ttg\.blocked<.*){_BLOCK}", square, ttgir, flags=re.MULTILINE)
    return ttgir


def _square(count: int, rows: int, columns: int, height: int, width: int) -> tuple[int, int]:
    """Divide a power of two into a number of rows and one of columns, so that the whole is most like a square.

    Args:
        rows, columns: how many there are at most.
        height, width: how many of the product's rows and columns each of them has.
    """
    pairs = [(count >> bit, 1 << bit) for bit in range(count.bit_length())]
    fitting = [pair for pair in pairs if pair[0] * height <= rows and pair[1] * width <= columns]
    return min(fitting or pairs, key=lambda pair: (abs(math.log2(pair[0] * height / (pair[1] * width))), pair[0]))


def lower_to_fit(lower: Callable[[int], Simt]) -> Simt:
    """Translate a kernel, with as few parts of each product along K as workgroup memory asks for.

    Args:
        lower: translates it with so many parts.

    Raises:
        TooLarge: the refusal without parts, if nothing helps.
    """
    try:
        return lower(1)
    except TooLarge as refused:
        for parts in _PARTS if refused.resource == "workgroup memory" else ():
            with suppress(TooLarge):
                return lower(parts)
        raise


def lower_simt(
    ttgir: str, target: SimtTarget, *, named: bool = False, check: bool = False, parts: int = 1, ahead: bool = False
) -> Simt:
    """Translate one kernel.

    Args:
        check: whether it checks its accesses (foundry_core.checked).
        named: whether registers have the names of values, for a person who reads the module.
        parts: see Simt.
        ahead: whether loops whose products are small may load two iterations ahead.

    Raises:
        UnsupportedOperation: names the operation and its source line.
        LoweringError: the kernel needs more than the device has.
    """
    with deep_expressions():
        # Triton leaves calls of functions with several returns in the function of a scan or a reduction.
        module = inline_calls(parse(_ALLOCATED.sub(r"\1>", balance_layouts(ttgir, target))))
        stored = write_set(module)
        sites = replace_prints(module)
        function = kernel(module)
        replace_returns(function)
        replace_functions(function.body.block)
        if check:
            from ...checked.instrument import instrument

            instrument(function, sites)
        end_failed_programs(function)
        widen_sums(function.body.block)
        is_ahead = ahead and load_ahead(function, target)
        if parts > 1:
            divide_products(module, parts)
        if target.compiles_slowly:
            slice_large_tiles(module)
        program = SimtProgram(function, target, named=named)
        binary = program.write()
    group = program.group
    return Simt(
        binary,
        group.argument_offsets,
        group.tables,
        group.argument_bytes,
        stored,
        group.local_bytes,
        sites,
        parts,
        is_ahead,
        None
        if program.hopes is None
        else [
            LaunchHope(hope.kind, hope.value.index, hope.of)
            for hope in program.hopes
            if isinstance(hope.value, BlockArgument)
        ],
    )
