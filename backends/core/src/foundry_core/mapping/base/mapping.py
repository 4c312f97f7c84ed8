"""What a mapping provides, and what one that is derived from another may count on."""

from __future__ import annotations

from collections.abc import Mapping as Table
from typing import Protocol

from xdsl.ir import SSAValue

from ...dialects import tt
from .buffers import Buffer
from .emission import ScalarValue, Statement
from .mlir import Reg, Text
from .tiles import Tiles


class Mapping(Protocol):
    """How one kernel in structured form becomes code for a kind of device.

    What the grid counts is a program. Which invocations of a device execute one is for the mapping alone to say: one
    work-item, all work-items of a work-group, a tasklet, or invocations that each hold a part of every tile in their
    registers. So a register (Reg) is what one invocation has; where the elements of a tile are, and who computes which,
    is known to `tiles` (allocate, fill, at) and to `tiles.space`, which writes the loops over them and what lets
    invocations wait for each other.

    Attributes:
        function: the kernel.
        text: what has been written of it.
        tiles: its registers and buffers.
        statements, scalar_values: which function writes which operation (emission.py).
    """

    @property
    def function(self) -> tt.FuncOp: ...

    @property
    def text(self) -> Text: ...

    @property
    def tiles(self) -> Tiles: ...

    @property
    def statements(self) -> Table[type, Statement]: ...

    @property
    def scalar_values(self) -> Table[type, ScalarValue]: ...

    def write(self) -> str:
        """Return the MLIR of the kernel.

        Raises:
            UnsupportedOperation: an operation, or a type in it, that this mapping does not take.
            LoweringError: the kernel's tiles need more memory than the device has.
        """
        ...

    def parameter(self, argument: SSAValue) -> str:
        """Give an argument of the Triton kernel its register; return the parameter in MLIR's text."""
        ...

    def more_parameters(self) -> list[str]:
        """Return what the kernel takes after the parameters that it has in Triton. Asked once its body is written."""
        ...

    def program_id(self, axis: int) -> Reg:
        """Return which program of the grid this is along an axis (0 to 2), an i32."""
        ...

    def num_programs(self, axis: int) -> Reg:
        """Return how many programs the grid has along an axis (0 to 2), an i32."""
        ...

    def accumulate(self, op: tt.DotOp, a: Buffer, b: Buffer, c: Buffer) -> None:
        """Write c += a b for tiles (M, K), (K, N) and (M, N) in memory; b and c are row-major."""
        ...
