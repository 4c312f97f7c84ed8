"""Replaces calls: of functions that Triton did not inline, those marked noinline, and of functions of libdevice.

No mapping has a call stack, and a call saves nothing where each operation on a tile is a loop. With the function's body
in place, the analysis of addresses can also follow pointers through it. So a mapping never meets a tt.call.

triton.language.extra.libdevice is CUDA's module for every backend (ProgramBackend.get_module_map). Its functions are
tt.extern_elementwise with the names of NVIDIA's libdevice: `__nv_expf` on f32 and `__nv_exp` on f64. A function that
has an operation of arith, math or tt becomes that operation here, for every mapping. The others stay as they are, and a
mapping supports or refuses them (ops/libdevice.py).
"""

from __future__ import annotations

from xdsl.builder import Builder
from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import CallSiteLoc, ModuleOp
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ..errors import unsupported
from ..ir import tt
from ..ops.elementwise import SYMBOLS
from .returns import replace_returns


def inline_calls(module: ModuleOp) -> ModuleOp:
    """Replace every call in a module of TTIR by the function's body, in place; delete the functions.

    Raises:
        UnsupportedOperation: a function calls itself, directly or through others; or it is not in the module.
    """
    functions = {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, tt.FuncOp)}
    done: set[str] = set()

    def visit(function: tt.FuncOp, around: tuple[str, ...]) -> None:
        name = function.sym_name.data
        if name in done:
            return
        for op in list(function.walk()):
            if isinstance(op, tt.CallOp):
                called = op.callee.root_reference.data
                if called in (*around, name):
                    raise unsupported(op, f"recursion: {called} calls itself, and a program has no stack for calls")
                if called not in functions:
                    raise unsupported(op, f"there is no function {called} in the module")
                visit(functions[called], (*around, name))
                _replace(op, functions[called])
        done.add(name)
        if not function.is_kernel:
            replace_returns(function)

    for function in functions.values():
        visit(function, ())
    for function in functions.values():
        if not function.is_kernel:
            Rewriter.erase_op(function)
    return module


def _replace(call: tt.CallOp, function: tt.FuncOp) -> None:
    body = function.body.block
    values: dict[SSAValue, SSAValue] = dict(zip(body.args, call.arguments, strict=True))
    here = Builder(InsertPoint.before(call))
    for op in body.ops:
        if isinstance(op, tt.ReturnOp):
            Rewriter.replace_op(call, [], [values.get(value, value) for value in op.values])
            return
        copy = here.insert(op.clone(values))
        for inner in copy.walk():
            # Errors name the place of the call, as for the functions that Triton inlined.
            inner.location = CallSiteLoc(inner.location, call.location)


def replace_functions(body: Block) -> None:
    """Rewrite the functions under a block that have an operation; leave the others."""
    for op in list(body.walk()):
        if isinstance(op, tt.ExternElementwiseOp) and op.symbol.data in SYMBOLS:
            kind = SYMBOLS[op.symbol.data]
            properties: dict[str, Attribute] = {}
            if "fastmath" in kind.get_irdl_definition().properties:  # type: ignore[attr-defined]
                properties["fastmath"] = FastMathFlagsAttr("none")
            replacement = kind.create(operands=op.srcs, result_types=[op.result.type], properties=properties)
            replacement.location = op.location
            Rewriter.replace_op(op, replacement)
