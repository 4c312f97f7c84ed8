"""--convert-dpu-to-llvm: converts the dialect's operations to calls of LLVM intrinsics and of the DPU's runtime.

| operation | llvm dialect |
|---|---|
| dpu.tid | call @llvm.dpu.tid.i32 |
| dpu.ldma, dpu.ldma_unchecked | call @llvm.dpu.ldma(wram, mram, bytes) |
| dpu.sdma, dpu.sdma_unchecked | call @llvm.dpu.sdma(wram, mram, bytes) |
| dpu.mem_reset | call @mem_reset |
| dpu.barrier_wait | call @barrier_wait(address of the barrier) |
| dpu.input_args | address of the global |

The conversion declares what it calls or addresses, unless the module already does. PASSES then convert the other
dialects that such programs use, if present, to the llvm dialect, with a DPU's 32-bit addresses.
"""

from __future__ import annotations

from collections.abc import Sequence

from foundry_core.codegen.typed.body import name_of
from foundry_core.errors import LoweringError
from xdsl.context import Context
from xdsl.dialects.builtin import (
    DenseArrayBase,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    i32,
    i64,
)
from xdsl.dialects.llvm import LLVMFunctionType, LLVMVoidType
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.parser import Parser
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from .operations import ARGUMENTS, BARRIER, WRAM, BarrierWaitOp, Dma, InputArgsOp, MemResetOp, TidOp

# mlir-opt's passes with their options, in the order in which they run.
PASSES = {
    "convert-scf-to-cf": "",
    "convert-arith-to-llvm": "index-bitwidth=32",
    "convert-func-to-llvm": "index-bitwidth=32",
    "convert-cf-to-llvm": "index-bitwidth=32",
    "finalize-memref-to-llvm": "index-bitwidth=32",
    "reconcile-unrealized-casts": "",
}

# The SDK's headers give a __host variable this alignment, for transfers. They specify none for a barrier.
_HOST_ALIGNMENT, _BARRIER_ALIGNMENT = 8, 1


def convert(module: ModuleOp, context: Context) -> None:
    """Convert the operations of the dpu dialect in a module; leave the others unchanged.

    Raises:
        LoweringError: a symbol that the conversion needs exists in the module, but is another kind of operation.
    """
    llvm = LLVMDialect(module, context)
    lowerings: tuple[type[Lowering], ...] = (LowerTid, LowerDma, LowerMemReset, LowerBarrierWait, LowerInputArgs)
    patterns: list[RewritePattern] = [lowering(llvm) for lowering in lowerings]
    PatternRewriteWalker(GreedyRewritePatternApplier(patterns), apply_recursively=False).rewrite_module(module)


class LLVMDialect:
    """Builds operations of the llvm dialect by name, as codegen.typed reads them; tracks the module's symbols."""

    def __init__(self, module: ModuleOp, context: Context) -> None:
        self._top, self._context = module.body.block, context
        # Declarations are inserted before the module's first operation.
        self._first = next(iter(self._top.ops))
        self._symbols: dict[str, Operation] = {}
        for op in self._top.ops:
            name = {**op.attributes, **op.properties}.get("sym_name")
            if isinstance(name, StringAttr):
                self._symbols[name.data] = op

    def call(self, name: str, operands: Sequence[SSAValue], result: Attribute | None = None) -> Operation:
        """Return a call of a function; declare the function if the module does not."""
        of = LLVMFunctionType([value.type for value in operands], result or LLVMVoidType())
        self._declare(name, "llvm.func", {"function_type": of})
        properties: dict[str, Attribute] = {
            "callee": SymbolRefAttr(name),
            "op_bundle_sizes": DenseArrayBase.from_list(i32, []),
            "operandSegmentSizes": DenseArrayBase.from_list(i32, [len(operands), 0]),
        }
        return self._made("llvm.call", operands, [result] if result else [], properties)

    def address(self, name: str, alignment: int) -> Operation:
        """Return the address of a global; declare it as an external byte if the module does not."""
        properties: dict[str, Attribute] = {
            "global_type": IntegerType(8),
            "addr_space": IntegerAttr(0, i32),
            "alignment": IntegerAttr(alignment, i64),
        }
        self._declare(name, "llvm.mlir.global", properties)
        return self._made("llvm.mlir.addressof", [], [WRAM], {"global_name": SymbolRefAttr(name)})

    def _declare(self, name: str, kind: str, properties: dict[str, Attribute]) -> None:
        if name not in self._symbols:
            linkage = Parser(self._context, "#llvm.linkage<external>").parse_attribute()
            properties |= {"sym_name": StringAttr(name), "linkage": linkage}
            self._symbols[name] = self._made(kind, [], [], properties, [Region()])
            self._top.insert_op_before(self._symbols[name], self._first)
        elif name_of(self._symbols[name]) != kind:
            raise LoweringError(f"@{name} is an operation {name_of(self._symbols[name])}, where {kind} is needed")

    def _made(
        self,
        name: str,
        operands: Sequence[SSAValue],
        results: Sequence[Attribute],
        properties: dict[str, Attribute],
        regions: Sequence[Region] = (),
    ) -> Operation:
        kind = self._context.get_op(name)
        return kind.create(operands=operands, result_types=results, properties=properties, regions=regions)


class Lowering(RewritePattern):
    """A pattern that builds operations of the llvm dialect."""

    def __init__(self, llvm: LLVMDialect) -> None:
        self.llvm = llvm

    @staticmethod
    def replace(op: Operation, rewriter: PatternRewriter, *new: Operation) -> None:
        """Replace an operation by others; the results of the last one replace its results, if it has any."""
        for one in new:
            one.location = op.location
        rewriter.replace_op(op, new, new[-1].results if op.results else [])


class LowerTid(Lowering):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: TidOp, rewriter: PatternRewriter) -> None:
        self.replace(op, rewriter, self.llvm.call("llvm.dpu.tid.i32", [], i32))


class LowerDma(Lowering):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: Dma, rewriter: PatternRewriter) -> None:
        name = "llvm." + op.name.removesuffix("_unchecked")
        self.replace(op, rewriter, self.llvm.call(name, [op.wram, op.mram, op.bytes]))


class LowerMemReset(Lowering):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: MemResetOp, rewriter: PatternRewriter) -> None:
        # The function returns the start of the heap, which nobody uses here.
        self.replace(op, rewriter, self.llvm.call("mem_reset", [], WRAM))


class LowerBarrierWait(Lowering):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: BarrierWaitOp, rewriter: PatternRewriter) -> None:
        barrier = self.llvm.address(op.sym.data if op.sym else BARRIER, _BARRIER_ALIGNMENT)
        self.replace(op, rewriter, barrier, self.llvm.call("barrier_wait", barrier.results))


class LowerInputArgs(Lowering):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: InputArgsOp, rewriter: PatternRewriter) -> None:
        self.replace(op, rewriter, self.llvm.address(op.sym.data if op.sym else ARGUMENTS, _HOST_ALIGNMENT))
