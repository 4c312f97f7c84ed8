"""Translates MLIR's llvm dialect to LLVM IR with typed pointers, which LLVM 11 to 14 read.

The DPU's compiler is LLVM 12.

LLVM 22's mlir-translate prints opaque pointers, attributes and intrinsics that LLVM 12 does not know, so we write the
text here. The input is MLIR's generic form, which needs no parser for each operation's syntax:

    mlir-opt --mlir-print-op-generic ... | write_typed_llvm(text, triple=..., datalayout=...)

A pointer in the llvm dialect has no pointee type. In the output every pointer value is an i8* (i8 addrspace(N)*) unless
its origin says more: an alloca, a getelementptr and a global have pointers to their own type. If a use needs another
type (a load of another type, a call, a phi), a bitcast precedes it.

Two argument attributes, which mlir-opt passes on unchanged, give a function's parameters their types and readable
names:

    llvm.func @add(%0: !llvm.ptr<255> {foundry.elem = i32, foundry.name = "x"}, %1: i32 {foundry.name = "n"})
    define void @add(i32 addrspace(255)* %x, i32 %n)

A pointer without foundry.elem is an i8*. Calls cast to the types of the called function's own attributes.

Changes to the program: poison is written as undef (LLVM 11 lacks poison, and undef is a refinement). We drop flags that
only permit optimizations (nsw, nuw, exact, disjoint, nneg, fast-math), `inbounds` in address spaces other than 0, where
a pointer may wrap, hints (llvm.intr.assume, lifetime markers) and debug locations. An operation without a table entry
is refused by name and, if the IR has one, source line.
"""

from __future__ import annotations

from .check import check_text
from .writer import write_typed_llvm

__all__ = ["check_text", "write_typed_llvm"]
