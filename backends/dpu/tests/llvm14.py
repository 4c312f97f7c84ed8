"""Run LLVM IR with typed pointers on this machine's processor, by the JIT of libLLVM 14 through its C interface."""

from __future__ import annotations

import ctypes
import functools
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint64, c_void_p
from typing import Any

LIBRARY = "libLLVM-14.so.1"
TRIPLE = "x86_64-unknown-linux-gnu"
DATALAYOUT = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"


@functools.cache
def _llvm() -> ctypes.CDLL:
    library = ctypes.CDLL(LIBRARY)
    library.LLVMContextCreate.restype = c_void_p
    library.LLVMCreateMemoryBufferWithMemoryRangeCopy.restype = c_void_p
    library.LLVMCreateMemoryBufferWithMemoryRangeCopy.argtypes = [c_char_p, c_size_t, c_char_p]
    library.LLVMParseIRInContext.argtypes = [c_void_p, c_void_p, POINTER(c_void_p), POINTER(c_char_p)]
    library.LLVMVerifyModule.argtypes = [c_void_p, c_int, POINTER(c_char_p)]
    library.LLVMCreateJITCompilerForModule.argtypes = [POINTER(c_void_p), c_void_p, c_int, POINTER(c_char_p)]
    library.LLVMGetFunctionAddress.restype = c_uint64
    library.LLVMGetFunctionAddress.argtypes = [c_void_p, c_char_p]
    for part in ("TargetInfo", "Target", "TargetMC", "AsmPrinter"):
        getattr(library, f"LLVMInitializeX86{part}")()
    library.LLVMLinkInMCJIT()
    return library


class Program:
    """The functions of a module, compiled. They live as long as the process."""

    def __init__(self, ir: str) -> None:
        library, data = _llvm(), ir.encode()
        buffer = library.LLVMCreateMemoryBufferWithMemoryRangeCopy(data, len(data), b"module")
        module, engine, said = c_void_p(), c_void_p(), c_char_p()
        if library.LLVMParseIRInContext(library.LLVMContextCreate(), buffer, byref(module), byref(said)):
            raise AssertionError((said.value or b"").decode() + "\n" + ir)
        if library.LLVMVerifyModule(module, 2, byref(said)):
            raise AssertionError((said.value or b"").decode() + "\n" + ir)
        if library.LLVMCreateJITCompilerForModule(byref(engine), module, 2, byref(said)):
            raise AssertionError((said.value or b"").decode())
        self._engine = engine

    def function(self, name: str, result: Any, *arguments: Any) -> Any:
        """Return a function by name. The types are ctypes' (None for void)."""
        address = _llvm().LLVMGetFunctionAddress(self._engine, name.encode())
        assert address, f"the module has no function {name}"
        return ctypes.CFUNCTYPE(result, *arguments)(address)
