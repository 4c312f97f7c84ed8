"""Writes MLIR's types as LLVM 12 does. A pointer is i8*; code that knows a pointee calls `pointer(...)` itself."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    IntAttr,
    IntegerType,
    VectorType,
)
from xdsl.ir import Attribute

from ...errors import LoweringError

# MLIR's names of floats, which are also those in the suffix of an overloaded intrinsic, and LLVM's.
_FLOATS = {"f16": "half", "bf16": "bfloat", "f32": "float", "f64": "double"}


def text(of: Attribute) -> str:
    """Return a type in LLVM's syntax.

    Raises:
        LoweringError: LLVM 12 has no such type.
    """
    match of:
        case IntegerType():
            return f"i{of.width.data}"
        case llvm.LLVMVoidType():
            return "void"
        case llvm.LLVMPointerType():
            return pointer("i8", space(of))
        case llvm.LLVMArrayType():
            return f"[{of.size.data} x {text(of.type)}]"
        case llvm.LLVMStructType():
            return f"{{ {', '.join(text(part) for part in of.types)} }}" if of.types.data else "{}"
        case llvm.LLVMFunctionType():
            return function(text(of.output), [text(part) for part in of.inputs], of.is_variadic)
        case VectorType():
            if of.get_num_dims() != 1 or of.get_num_scalable_dims() or is_pointer(of.element_type):
                raise LoweringError(f"a vector {of}")
            return f"<{of.get_shape()[0]} x {text(of.element_type)}>"
    if is_float(of):
        return _FLOATS[of.name]
    raise LoweringError(f"the type {of}")


def pointer(pointee: str, space: int) -> str:
    return f"{pointee} addrspace({space})*" if space else f"{pointee}*"


def function(result: str, parameters: Sequence[str], variadic: bool = False) -> str:
    return f"{result} ({', '.join([*parameters, '...'] if variadic else parameters)})"


def is_float(of: Attribute) -> bool:
    return of.name in _FLOATS


def is_pointer(of: Attribute) -> bool:
    return isinstance(of, llvm.LLVMPointerType)


def space(of: Attribute) -> int:
    """Return a pointer's address space."""
    assert isinstance(of, llvm.LLVMPointerType)
    return of.addr_space.data if isinstance(of.addr_space, IntAttr) else 0


def suffix(of: Attribute) -> str:
    """Return the suffix of an overloaded intrinsic's name for this type: i32, v4f32, p255i8."""
    match of:
        case IntegerType():
            return text(of)
        case llvm.LLVMPointerType():
            return f"p{space(of)}i8"
        case VectorType():
            return f"v{of.get_shape()[0]}{suffix(of.element_type)}"
    if is_float(of):
        return of.name
    raise LoweringError(f"an intrinsic on {of}")


def element(of: Attribute, index: int = 0) -> Attribute:
    """Return the type of a member of an array, a vector or a struct."""
    match of:
        case llvm.LLVMArrayType():
            return of.type
        case VectorType():
            member: Attribute = of.element_type
            return member
        case llvm.LLVMStructType():
            return of.types.data[index]
    raise LoweringError(f"a member of {of}")
