"""The operations of the dpu dialect, and checks that find errors before they are faults on the machine.

| operation | meaning |
|---|---|
| `%r = dpu.tid : i32` | number of this tasklet, from 0 |
| `dpu.ldma %wram, %mram, %bytes : !llvm.ptr, !llvm.ptr<255>, i32` | copy from MRAM to WRAM by DMA |
| `dpu.sdma %wram, %mram, %bytes : !llvm.ptr, !llvm.ptr<255>, i32` | copy from WRAM to MRAM by DMA |
| `dpu.ldma_unchecked`, `dpu.sdma_unchecked` | the same, without a check of the size |
| `dpu.mem_reset` | free everything that mem_alloc returned; one tasklet calls it, and a barrier must follow |
| `dpu.barrier_wait {sym = "dpu_barrier"}` | wait for all tasklets; C defines BARRIER_INIT(dpu_barrier, NR_TASKLETS) |
| `%r = dpu.input_args {sym = "DPU_INPUT_ARGUMENTS"} : !llvm.ptr` | the arguments that the host has written |

A DMA moves 8 to 2048 bytes, a multiple of 8, between addresses that are multiples of 8 (UPMEM SDK, "Memory
management"). The checked operations refuse any other constant size. A size computed at run time is not checked: with a
wrong size, some machines fault, and others move something else.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntAttr, IntegerAttr, StringAttr, i32
from xdsl.dialects.llvm import LLVMPointerType
from xdsl.ir import Attribute, Block, Dialect, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, opt_attr_def, result_def
from xdsl.utils.exceptions import VerifyException

WRAM = LLVMPointerType()
MRAM = LLVMPointerType(IntAttr(255))
DMA_LEAST, DMA_MOST, DMA_GRANULE = 8, 2048, 8
ARGUMENTS, BARRIER = "DPU_INPUT_ARGUMENTS", "dpu_barrier"


def constant(value: SSAValue) -> int | None:
    """Return the number if a constant of any dialect defines the value, else None."""
    op = value.owner
    attribute = op.properties.get("value") if not isinstance(op, Block) else None
    return attribute.value.data if isinstance(attribute, IntegerAttr) else None


def _is(value: SSAValue, what: str, wanted: Attribute) -> None:
    if value.type != wanted:
        raise VerifyException(f"{what} must be {wanted}, but is {value.type}")


@irdl_op_definition
class TidOp(IRDLOperation):
    name = "dpu.tid"
    result = result_def()

    def verify_(self) -> None:
        _is(self.result, "the result", i32)


class Dma(IRDLOperation):
    """A copy between WRAM and MRAM; the order of operands is the same in both directions."""

    wram = operand_def()
    mram = operand_def()
    bytes = operand_def()

    def verify_(self) -> None:
        _is(self.wram, "the address in WRAM (operand #0)", WRAM)
        _is(self.mram, "the address in MRAM (operand #1)", MRAM)
        _is(self.bytes, "the size (operand #2)", i32)


class CheckedDma(Dma):
    """A copy whose size is checked if it is constant."""

    def verify_(self) -> None:
        super().verify_()
        size = constant(self.bytes)
        if size is None:
            return
        if size % DMA_GRANULE:
            raise VerifyException(f"a DMA moves a multiple of {DMA_GRANULE} bytes, not {size}")
        if not DMA_LEAST <= size <= DMA_MOST:
            raise VerifyException(f"a DMA moves {DMA_LEAST} to {DMA_MOST} bytes, not {size}")


@irdl_op_definition
class LdmaOp(CheckedDma):
    name = "dpu.ldma"


@irdl_op_definition
class SdmaOp(CheckedDma):
    name = "dpu.sdma"


@irdl_op_definition
class LdmaUncheckedOp(Dma):
    name = "dpu.ldma_unchecked"


@irdl_op_definition
class SdmaUncheckedOp(Dma):
    name = "dpu.sdma_unchecked"


@irdl_op_definition
class MemResetOp(IRDLOperation):
    name = "dpu.mem_reset"


@irdl_op_definition
class BarrierWaitOp(IRDLOperation):
    name = "dpu.barrier_wait"
    sym = opt_attr_def(StringAttr)


@irdl_op_definition
class InputArgsOp(IRDLOperation):
    name = "dpu.input_args"
    result = result_def()
    sym = opt_attr_def(StringAttr)

    def verify_(self) -> None:
        _is(self.result, "the result", WRAM)


OPERATIONS: tuple[type[IRDLOperation], ...] = (
    TidOp,
    LdmaOp,
    SdmaOp,
    LdmaUncheckedOp,
    SdmaUncheckedOp,
    MemResetOp,
    BarrierWaitOp,
    InputArgsOp,
)
DPU = Dialect("dpu", list(OPERATIONS))
