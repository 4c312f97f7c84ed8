"""From MLIR's llvm dialect to LLVM IR with typed pointers, as LLVM 11 to 14 read it: what the DPU's LLVM 12 takes.

LLVM 22's mlir-translate prints opaque pointers, attributes and intrinsics that LLVM 12 does not know, so the text is
written here. The input is the generic form, which needs no parser of each operation's own syntax:

    mlir-opt --mlir-print-op-generic ... | to_typed_llvm(text, triple=..., datalayout=...)

A pointer in the llvm dialect does not say to what. In the output every pointer value is an i8* (i8 addrspace(N)*)
unless where it comes from says more: an alloca, a getelementptr and a global have pointers to their own type. Where
something else is wanted (a load of another type, a call, a phi) there is a bitcast just before.

A function's parameters get their types, and names that a reader will know, from two argument attributes that mlir-opt
carries along untouched:

    llvm.func @add(%0: !llvm.ptr<255> {foundry.elem = i32, foundry.name = "x"}, %1: i32 {foundry.name = "n"})
    define void @add(i32 addrspace(255)* %x, i32 %n)

A pointer without foundry.elem is an i8*. Calls cast to what the called function's own attributes say.

What changes on the way: poison is written undef (LLVM 11 lacks it, and undef is a refinement). Flags that only license
optimisations (nsw, nuw, exact, disjoint, nneg, fast-math) are dropped, and so are `inbounds` in address spaces other
than 0, where a pointer may wrap, hints (llvm.intr.assume, lifetime markers) and debug locations. Whatever has no table
entry is refused by name and, where the IR carries one, source line.
"""

from __future__ import annotations

from .check import check
from .writer import to_typed_llvm

__all__ = ["check", "to_typed_llvm"]
