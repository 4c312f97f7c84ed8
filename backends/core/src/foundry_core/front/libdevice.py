"""Functions of Triton's libdevice module that are operations of arith, math or tt, as those operations.

triton.language.extra.libdevice is CUDA's module whatever the backend is (ProgramBackend.get_module_map): its functions
are tt.extern_elementwise with the names that NVIDIA's libdevice has, `__nv_expf` on f32 and `__nv_exp` on f64. What is
an operation becomes that operation here, for every mapping; what is none stays as it is, and a mapping takes it or
refuses it (workitem/libdevice.py).
"""

from __future__ import annotations

from xdsl.dialects import arith, math
from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.ir import Attribute, Block, Operation
from xdsl.rewriter import Rewriter

from ..dialects import tt
from ..dialects.arith import RemFOp, SIToFPOp, UIToFPOp

# By the name of the function on f64; on f32 it ends in an f.
_FUNCTIONS: dict[str, type[Operation]] = {
    "fabs": math.AbsFOp,
    "floor": math.FloorOp,
    "ceil": math.CeilOp,
    "trunc": math.TruncOp,
    "round": math.RoundOp,
    "rint": math.RoundEvenOp,
    "nearbyint": math.RoundEvenOp,
    "exp": math.ExpOp,
    "exp2": math.Exp2Op,
    "expm1": math.ExpM1Op,
    "log": math.LogOp,
    "log2": math.Log2Op,
    "log10": math.Log10Op,
    "log1p": math.Log1pOp,
    "sqrt": math.SqrtOp,
    "rsqrt": math.RsqrtOp,
    "cbrt": math.CbrtOp,
    "sin": math.SinOp,
    "cos": math.CosOp,
    "tan": math.TanOp,
    "asin": math.AsinOp,
    "acos": math.AcosOp,
    "atan": math.AtanOp,
    "atan2": math.Atan2Op,
    "sinh": math.SinhOp,
    "cosh": math.CoshOp,
    "tanh": math.TanhOp,
    "asinh": math.AsinhOp,
    "acosh": math.AcoshOp,
    "atanh": math.AtanhOp,
    "erf": math.ErfOp,
    "pow": math.PowFOp,
    "copysign": math.CopySignOp,
    "fma": math.FmaOp,
}
# By the whole name. The fast variants may be inexact and need not be.
_SYMBOLS: dict[str, type[Operation]] = {
    **{f"__nv_{name}": operation for name, operation in _FUNCTIONS.items()},
    **{f"__nv_{name}f": operation for name, operation in _FUNCTIONS.items()},
    "__nv_fmod": RemFOp,
    "__nv_fmodf": RemFOp,
    "__nv_fast_sinf": math.SinOp,
    "__nv_fast_cosf": math.CosOp,
    "__nv_fast_tanf": math.TanOp,
    "__nv_fast_tanhf": math.TanhOp,
    "__nv_fast_expf": math.ExpOp,
    "__nv_fast_logf": math.LogOp,
    "__nv_fast_log2f": math.Log2Op,
    "__nv_fast_log10f": math.Log10Op,
    "__nv_fast_powf": math.PowFOp,
    "__nv_fast_fdividef": arith.DivfOp,
    "__nv_fadd_rn": arith.AddfOp,
    "__nv_dadd_rn": arith.AddfOp,
    "__nv_fsub_rn": arith.SubfOp,
    "__nv_dsub_rn": arith.SubfOp,
    "__nv_fmul_rn": arith.MulfOp,
    "__nv_dmul_rn": arith.MulfOp,
    "__nv_fdiv_rn": tt.PreciseDivFOp,
    "__nv_ddiv_rn": tt.PreciseDivFOp,
    "__nv_fmaf_rn": math.FmaOp,
    "__nv_fma_rn": math.FmaOp,
    "__nv_fsqrt_rn": tt.PreciseSqrtOp,
    "__nv_dsqrt_rn": tt.PreciseSqrtOp,
    "__nv_abs": math.AbsIOp,
    "__nv_llabs": math.AbsIOp,
    "__nv_umulhi": tt.MulhiUIOp,
    "__nv_umul64hi": tt.MulhiUIOp,
    "__nv_double2float_rn": arith.TruncFOp,
    "__nv_int2float_rn": SIToFPOp,
    "__nv_ll2float_rn": SIToFPOp,
    "__nv_int2double_rn": SIToFPOp,
    "__nv_ll2double_rn": SIToFPOp,
    "__nv_uint2float_rn": UIToFPOp,
    "__nv_ull2float_rn": UIToFPOp,
    "__nv_uint2double_rn": UIToFPOp,
    "__nv_ull2double_rn": UIToFPOp,
    "__nv_float_as_int": tt.BitcastOp,
    "__nv_float_as_uint": tt.BitcastOp,
    "__nv_int_as_float": tt.BitcastOp,
    "__nv_uint_as_float": tt.BitcastOp,
    "__nv_double_as_longlong": tt.BitcastOp,
    "__nv_longlong_as_double": tt.BitcastOp,
}


def replace_functions(body: Block) -> None:
    """Rewrite the functions under a block that are operations; others stay."""
    for op in list(body.walk()):
        if isinstance(op, tt.ExternElementwiseOp) and op.symbol.data in _SYMBOLS:
            Rewriter.replace_op(op, _operation(op, _SYMBOLS[op.symbol.data]))


def _operation(op: tt.ExternElementwiseOp, kind: type[Operation]) -> Operation:
    properties: dict[str, Attribute] = {}
    if "fastmath" in kind.get_irdl_definition().properties:  # type: ignore[attr-defined]
        properties["fastmath"] = FastMathFlagsAttr("none")
    made = kind.create(operands=op.srcs, result_types=[op.result.type], properties=properties)
    made.location = op.location
    return made
