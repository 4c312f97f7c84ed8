"""From TTGIR to SPIR-V."""

from __future__ import annotations

from typing import NamedTuple

from ...front.libdevice import replace_functions
from ...front.returns import replace_returns
from ...front.structured import kernel
from ...front.writes import written
from ...parse import parse
from ...pipeline import deep_expressions
from . import dot, exchange, memory  # noqa: F401  they register how operations are written
from .program import Program
from .target import SimtTarget


class Simt(NamedTuple):
    """A kernel as SPIR-V.

    Attributes:
        module: the binary.
        offsets: where each argument is in the block of arguments, in bytes.
        argument_bytes: size of that block.
        written: the numbers of the arguments that the kernel may store through.
        local_bytes: workgroup memory that it uses.
    """

    module: bytes
    offsets: list[int]
    argument_bytes: int
    written: list[int]
    local_bytes: int


def lower(ttgir: str, target: SimtTarget) -> Simt:
    """Translate one kernel.

    Raises:
        UnsupportedOperation: names the operation and its source line.
        LoweringError: the kernel needs more than the device has.
    """
    with deep_expressions():
        module = parse(ttgir)
        stored = written(module)
        function = kernel(module)
        replace_returns(function)
        replace_functions(function.body.block)
        program = Program(function, target)
        binary = program.write()
    group = program.group
    return Simt(binary, group.argument_offsets, group.argument_bytes, stored, group.local_bytes)
