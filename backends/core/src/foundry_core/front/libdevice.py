"""Rewrites functions of Triton's libdevice module to the operations of arith, math or tt that compute them.

triton.language.extra.libdevice is CUDA's module for every backend (ProgramBackend.get_module_map). Its functions are
tt.extern_elementwise with the names of NVIDIA's libdevice: `__nv_expf` on f32 and `__nv_exp` on f64. A function that
has an operation becomes that operation here, for every mapping. The others stay as they are, and a mapping supports or
refuses them (ops/libdevice.py).
"""

from __future__ import annotations

from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.ir import Attribute, Block, Operation
from xdsl.rewriter import Rewriter

from ..ir import tt
from ..ops.elementwise import SYMBOLS


def replace_functions(body: Block) -> None:
    """Rewrite the functions under a block that have an operation; leave the others."""
    for op in list(body.walk()):
        if isinstance(op, tt.ExternElementwiseOp) and op.symbol.data in SYMBOLS:
            Rewriter.replace_op(op, _operation(op, SYMBOLS[op.symbol.data]))


def _operation(op: tt.ExternElementwiseOp, kind: type[Operation]) -> Operation:
    properties: dict[str, Attribute] = {}
    if "fastmath" in kind.get_irdl_definition().properties:  # type: ignore[attr-defined]
        properties["fastmath"] = FastMathFlagsAttr("none")
    made = kind.create(operands=op.srcs, result_types=[op.result.type], properties=properties)
    made.location = op.location
    return made
