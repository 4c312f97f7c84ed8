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


def type_text(type: Attribute) -> str:
    """Return a type in LLVM's syntax.

    Raises:
        LoweringError: LLVM 12 has no such type.
    """
    match type:
        case IntegerType():
            return f"i{type.width.data}"
        case llvm.LLVMVoidType():
            return "void"
        case llvm.LLVMPointerType():
            return pointer("i8", space(type))
        case llvm.LLVMArrayType():
            return f"[{type.size.data} x {type_text(type.type)}]"
        case llvm.LLVMStructType():
            return f"{{ {', '.join(type_text(part) for part in type.types)} }}" if type.types.data else "{}"
        case llvm.LLVMFunctionType():
            return function(type_text(type.output), [type_text(part) for part in type.inputs], type.is_variadic)
        case VectorType():
            if type.get_num_dims() != 1 or type.get_num_scalable_dims() or is_pointer(type.element_type):
                raise LoweringError(f"a vector {type}")
            return f"<{type.get_shape()[0]} x {type_text(type.element_type)}>"
    if is_float(type):
        return _FLOATS[type.name]
    raise LoweringError(f"the type {type}")


def pointer(pointee: str, space: int) -> str:
    return f"{pointee} addrspace({space})*" if space else f"{pointee}*"


def function(result: str, parameters: Sequence[str], variadic: bool = False) -> str:
    return f"{result} ({', '.join([*parameters, '...'] if variadic else parameters)})"


def is_float(type: Attribute) -> bool:
    return type.name in _FLOATS


def is_pointer(type: Attribute) -> bool:
    return isinstance(type, llvm.LLVMPointerType)


def space(type: Attribute) -> int:
    """Return a pointer's address space."""
    assert isinstance(type, llvm.LLVMPointerType)
    return type.addr_space.data if isinstance(type.addr_space, IntAttr) else 0


def suffix(type: Attribute) -> str:
    """Return the suffix of an overloaded intrinsic's name for this type: i32, v4f32, p255i8."""
    match type:
        case IntegerType():
            return type_text(type)
        case llvm.LLVMPointerType():
            return f"p{space(type)}i8"
        case VectorType():
            return f"v{type.get_shape()[0]}{suffix(type.element_type)}"
    if is_float(type):
        return type.name
    raise LoweringError(f"an intrinsic on {type}")


def member_type(type: Attribute, index: int = 0) -> Attribute:
    """Return the type of a member of an array, a vector or a struct."""
    match type:
        case llvm.LLVMArrayType():
            return type.type
        case VectorType():
            member: Attribute = type.element_type
            return member
        case llvm.LLVMStructType():
            return type.types.data[index]
    raise LoweringError(f"a member of {type}")
