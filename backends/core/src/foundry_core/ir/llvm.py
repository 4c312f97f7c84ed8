"""The operations of MLIR's llvm dialect that appear in TTIR."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Dialect
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, traits_def

from .effects import OrderingEffect


@irdl_op_definition
class AssumeOp(IRDLOperation):
    """A condition that the author promises (tl.assume)."""

    name = "llvm.intr.assume"
    condition = operand_def(IntegerType(1))
    traits = traits_def(OrderingEffect())
    assembly_format = "$condition attr-dict `:` type($condition)"


LLVM = Dialect("llvm", [AssumeOp])
