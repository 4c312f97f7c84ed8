"""The interface that a mapping implements, and that mappings derived from it can rely on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from ...emit.mlir import Reg, Text
from ...ir import tt
from .buffers import Buffer
from .tiles import Tiles


@dataclass(frozen=True)
class Part:
    """The ends of a product's part: of the rows and columns of c, and of the terms of each element."""

    rows: Reg
    columns: Reg
    depth: Reg


class Mapping(ABC):
    """How one kernel in structured form becomes code for a kind of device.

    The grid counts programs. The mapping alone decides which invocations of a device execute one program: one
    work-item, all work-items of a work-group, a tasklet, or invocations that each hold a part of every tile in their
    registers. So a register (Reg) belongs to one invocation. `tiles` (allocate, fill, evaluate) knows where the
    elements of a tile are and which invocation computes which elements. `tiles.space` writes the loops over them and
    the synchronization between invocations.

    Attributes:
        function: the kernel.
        text: the MLIR text written so far.
        tiles: the kernel's registers and buffers.
    """

    function: tt.FuncOp
    text: Text
    tiles: Tiles

    @abstractmethod
    def write(self) -> str:
        """Return the MLIR of the kernel.

        Raises:
            UnsupportedOperation: an operation, or a type in it, that this mapping does not support.
            LoweringError: the kernel's tiles need more memory than the device has.
        """

    @abstractmethod
    def parameter(self, argument: SSAValue) -> str:
        """Assign a register to an argument of the Triton kernel; return the parameter as MLIR text."""

    @abstractmethod
    def more_parameters(self) -> list[str]:
        """Return the parameters that follow those of the Triton kernel. Called after the body is written."""

    @abstractmethod
    def write_operations(self, operations: Iterable[Operation]) -> None:
        """Write some operations of a block, in their order."""

    @abstractmethod
    def buffer_of(self, value: SSAValue, op: Operation, ends: Sequence[Reg] | None = None) -> Buffer:
        """Return a tile's buffer; evaluate the tile, up to some ends (Tiles.fill), into a new one if it has none."""

    @abstractmethod
    def writable_buffer(self, value: SSAValue, op: Operation) -> Buffer:
        """Return a row-major buffer of a tile that may be overwritten: its own buffer if this is the only use."""

    @abstractmethod
    def program_id(self, axis: int) -> Reg:
        """Return the index of this program in the grid along an axis (0 to 2), an i32."""

    @abstractmethod
    def num_programs(self, axis: int) -> Reg:
        """Return the number of programs in the grid along an axis (0 to 2), an i32."""

    @abstractmethod
    def log(self) -> Reg:
        """Return a pointer to the launch's log (foundry_core/log.py), which becomes the kernel's last parameter."""

    @abstractmethod
    def accumulate(self, op: Operation, a: Buffer, b: Buffer, c: Buffer, part: Part) -> None:
        """Write c += a b, for a part of it, for tiles (M, K), (K, N) and (M, N) in memory; b and c are row-major."""
