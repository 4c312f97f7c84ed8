"""The text of codegen.typed means what the MLIR did: LLVM 14 runs it on this processor, compared with NumPy.

All MLIR goes through mlir-opt 22 first, as a kernel does. The llvm-as of 13 and of 14 read each text.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from ctypes import (
    POINTER,
    byref,
    c_char_p,
    c_double,
    c_float,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint8,
    c_uint64,
    c_void_p,
)
from typing import Any

import numpy as np
import pytest
from foundry_core.codegen.pipeline import DPU_DATALAYOUT, DPU_TRIPLE
from foundry_core.codegen.tools import mlir_to_llvm_dialect
from foundry_core.codegen.typed import check_text, write_typed_llvm

# These tests use no kernel of Triton's.
pytestmark = pytest.mark.any_release

N = 257
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
    """The functions of a module, compiled by the JIT of libLLVM 14. They live as long as the process."""

    def __init__(self, ir: str) -> None:
        library, data = _llvm(), ir.encode()
        buffer = library.LLVMCreateMemoryBufferWithMemoryRangeCopy(data, len(data), b"module")
        module, engine, message = c_void_p(), c_void_p(), c_char_p()
        if library.LLVMParseIRInContext(library.LLVMContextCreate(), buffer, byref(module), byref(message)):
            raise AssertionError((message.value or b"").decode() + "\n" + ir)
        if library.LLVMVerifyModule(module, 2, byref(message)):
            raise AssertionError((message.value or b"").decode() + "\n" + ir)
        if library.LLVMCreateJITCompilerForModule(byref(engine), module, 2, byref(message)):
            raise AssertionError((message.value or b"").decode())
        self._engine = engine

    def function(self, name: str, result: Any, *arguments: Any) -> Any:
        """Return a function by name. The types are ctypes' (None for void)."""
        address = _llvm().LLVMGetFunctionAddress(self._engine, name.encode())
        assert address, f"the module has no function {name}"
        return ctypes.CFUNCTYPE(result, *arguments)(address)


def compiled(mlir: str) -> Program:
    ir = write_typed_llvm(mlir_to_llvm_dialect(mlir), triple=TRIPLE, datalayout=DATALAYOUT)
    check_text(ir)
    return Program(ir)


def elementwise(line: str, operands: list[np.ndarray], result: Any, kinds: list[str], kind: str) -> np.ndarray:
    """Return the results of a line of MLIR that computes %r from %a, %b, %c, for all elements of the operands."""
    names = "abc"[: len(operands)]
    loads = "\n".join(
        f"%p{name} = llvm.getelementptr %{name}s[%i] : (!llvm.ptr, i64) -> !llvm.ptr, {of}\n"
        f"%{name} = llvm.load %p{name} : !llvm.ptr -> {of}"
        for name, of in zip(names, kinds, strict=True)
    )
    parameters = ", ".join(f"%{name}s: !llvm.ptr" for name in names)
    stored, narrow = ("%w", "%w = arith.extui %r : i1 to i8") if kind == "i1" else ("%r", "")
    of = "i8" if kind == "i1" else kind
    program = compiled(f"""
      llvm.func @f({parameters}, %out: !llvm.ptr, %n: i64) {{
        %zero = arith.constant 0 : i64
        %one = arith.constant 1 : i64
        scf.for %i = %zero to %n step %one : i64 {{
          {loads}
          {line}
          {narrow}
          %po = llvm.getelementptr %out[%i] : (!llvm.ptr, i64) -> !llvm.ptr, {of}
          llvm.store {stored}, %po : {of}, !llvm.ptr
        }}
        llvm.return
      }}""")
    out = np.full(operands[0].shape, 0xA5, np.uint8).repeat(np.dtype(result).itemsize).view(result)
    arrays = [*operands, out]
    function = program.function("f", None, *[c_void_p] * len(arrays), c_int64)
    function(*(array.ctypes.data for array in arrays), out.size)
    return out


def bits(array: np.ndarray) -> np.ndarray:
    return array.view(f"u{array.dtype.itemsize}")


def integers(width: int, seed: int) -> np.ndarray:
    info = np.iinfo(f"i{width // 8}")
    edges = [info.min, info.min + 1, -1, 0, 1, 2, info.max]
    numbers = np.random.default_rng(seed).integers(info.min, info.max, N, info.dtype, endpoint=True)
    numbers[: len(edges)] = edges
    return np.random.default_rng(seed + 1).permutation(numbers)


def floats(dtype: Any, seed: int) -> np.ndarray:
    numbers = np.random.default_rng(seed).normal(0, 100, N).astype(dtype)
    edges = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, np.finfo(dtype).tiny / 4, np.finfo(dtype).max]
    numbers[: len(edges)] = edges
    return np.random.default_rng(seed + 1).permutation(numbers)


BINARY: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "andi": lambda a, b: a & b,
    "ori": lambda a, b: a | b,
    "xori": lambda a, b: a ^ b,
    "maxsi": np.maximum,
    "minsi": np.minimum,
    "maxui": lambda a, b: np.maximum(bits(a), bits(b)).view(a.dtype),
    "minui": lambda a, b: np.minimum(bits(a), bits(b)).view(a.dtype),
}


@pytest.mark.parametrize("width", [8, 16, 32, 64])
@pytest.mark.parametrize("name", BINARY)
def test_integer_arithmetic(name: str, width: int):
    a, b, of = integers(width, 1), integers(width, 2), f"i{width}"
    got = elementwise(f"%r = arith.{name} %a, %b : {of}", [a, b], a.dtype, [of, of], of)
    with np.errstate(all="ignore"):
        assert np.array_equal(got, BINARY[name](a, b))


DIVISION = {"divsi": np.trunc, "remsi": np.fmod, "divui": np.floor_divide, "remui": np.remainder}


@pytest.mark.parametrize("name", DIVISION)
def test_integer_division(name: str):
    a, b = integers(32, 1), integers(32, 2)
    b[b == 0] = 3
    b[(a == np.iinfo(np.int32).min) & (b == -1)] = 5
    got = elementwise(f"%r = arith.{name} %a, %b : i32", [a, b], a.dtype, ["i32", "i32"], "i32")
    x, y = (bits(a), bits(b)) if name.endswith("ui") else (a.astype(np.int64), b.astype(np.int64))
    expected = np.trunc(x / y) if name == "divsi" else DIVISION[name](x, y)
    assert np.array_equal(got, expected.astype(np.int64).astype(np.int32))


SHIFTS: dict[str, Any] = {
    "shli": np.left_shift,
    "shrsi": np.right_shift,
    "shrui": lambda a, b: (bits(a) >> bits(b)).view(a.dtype),
}


@pytest.mark.parametrize("name", SHIFTS)
def test_shifts(name: str):
    a, b = integers(32, 1), integers(32, 2) & 31
    got = elementwise(f"%r = arith.{name} %a, %b : i32", [a, b], a.dtype, ["i32", "i32"], "i32")
    assert np.array_equal(got, SHIFTS[name](a, b))


ICMP = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


@pytest.mark.parametrize("predicate", ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"])
def test_integer_comparisons(predicate: str):
    a, b = integers(32, 1), integers(32, 2)
    b[::7] = a[::7]
    got = elementwise(f"%r = arith.cmpi {predicate}, %a, %b : i32", [a, b], np.uint8, ["i32", "i32"], "i1")
    x, y = (bits(a), bits(b)) if predicate.startswith("u") else (a, b)
    assert np.array_equal(got, ICMP[predicate[-2:]](x, y))


@pytest.mark.parametrize(
    "predicate",
    ["oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno"],
)
def test_float_comparisons(predicate: str):
    a, b = floats(np.float32, 1), floats(np.float32, 2)
    b[::7] = a[::7]
    got = elementwise(f"%r = arith.cmpf {predicate}, %a, %b : f32", [a, b], np.uint8, ["f32", "f32"], "i1")
    unordered = np.isnan(a) | np.isnan(b)
    ordered = {"ord": ~unordered, "uno": np.zeros_like(unordered)}
    holds = ordered[predicate] if predicate in ordered else ICMP[predicate[1:]](a, b) & ~unordered
    assert np.array_equal(got, holds | unordered if predicate.startswith("u") else holds)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("name", "expected"),
    [("addf", np.add), ("subf", np.subtract), ("mulf", np.multiply), ("divf", np.divide)],
)
def test_float_arithmetic(name: str, expected: np.ufunc, dtype: type):
    a, b, of = floats(dtype, 1), floats(dtype, 2), f"f{np.dtype(dtype).itemsize * 8}"
    got = elementwise(f"%r = arith.{name} %a, %b fastmath<fast> : {of}", [a, b], a.dtype, [of, of], of)
    with np.errstate(all="ignore"):
        assert np.array_equal(got, expected(a, b), equal_nan=True)


UNARY = {
    "llvm.intr.fabs": np.abs,
    "llvm.intr.sqrt": np.sqrt,
    "llvm.intr.floor": np.floor,
    "llvm.intr.ceil": np.ceil,
    "llvm.intr.trunc": np.trunc,
    "llvm.intr.rint": np.rint,
    "llvm.intr.roundeven": np.rint,
    "llvm.fneg": np.negative,
}


@pytest.mark.parametrize("name", UNARY)
def test_float_functions_of_one(name: str):
    a = floats(np.float32, 1)
    line = f"%r = {name}(%a) : (f32) -> f32" if name.startswith("llvm.intr") else f"%r = {name} %a : f32"
    got = elementwise(line, [a], a.dtype, ["f32"], "f32")
    with np.errstate(all="ignore"):
        assert np.array_equal(got, UNARY[name](a), equal_nan=True)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("minnum", np.fmin), ("maxnum", np.fmax), ("copysign", np.copysign)],
)
def test_float_functions_of_two(name: str, expected: np.ufunc):
    a, b = floats(np.float32, 1), floats(np.float32, 2)
    a[a == 0], b[b == 0] = 1, 2  # which of two zeros is smaller is unspecified
    got = elementwise(f"%r = llvm.intr.{name}(%a, %b) : (f32, f32) -> f32", [a, b], a.dtype, ["f32", "f32"], "f32")
    assert np.array_equal(got, expected(a, b), equal_nan=True)


def test_fused_multiply_add_rounds_once():
    a, b = np.full(4, 1 + 2**-23, np.float32), np.full(4, 1 - 2**-23, np.float32)
    c = np.full(4, -1, np.float32)
    line = "%r = llvm.intr.fma(%a, %b, %c) : (f32, f32, f32) -> f32"
    got = elementwise(line, [a, b, c], a.dtype, ["f32"] * 3, "f32")
    assert np.array_equal(got, np.full(4, -(2.0**-46), np.float32))


def test_integer_functions():
    a = integers(32, 1)
    digits = [f"{number:032b}" for number in bits(a)]
    expected = {
        "llvm.intr.ctlz(%a) <{is_zero_poison = false}>": [32 - len(s.lstrip("0")) for s in digits],
        "llvm.intr.cttz(%a) <{is_zero_poison = false}>": [32 - len(s.rstrip("0")) for s in digits],
        "llvm.intr.abs(%a) <{is_int_min_poison = false}>": np.abs(a),
        "llvm.intr.ctpop(%a)": [s.count("1") for s in digits],
        "llvm.intr.bswap(%a)": a.byteswap(),
        "llvm.intr.bitreverse(%a)": bits(np.array([int(s[::-1], 2) for s in digits], np.uint32)).view(np.int32),
    }
    for call, numbers in expected.items():
        name, _, rest = call.partition("(")
        got = elementwise(f'%r = "{name}"({rest} : (i32) -> i32', [a], a.dtype, ["i32"], "i32")
        assert np.array_equal(got, numbers), name


def test_funnel_shift_and_overflow():
    a, b = integers(32, 1), integers(32, 2)
    wide = (bits(a).astype(np.uint64) << 32 | bits(b)) << np.uint64(5) >> np.uint64(32)
    line = "%five = arith.constant 5 : i32\n%r = llvm.intr.fshl(%a, %b, %five) : (i32, i32, i32) -> i32"
    assert np.array_equal(elementwise(line, [a, b], a.dtype, ["i32"] * 2, "i32"), wide.astype(np.uint32).view(np.int32))
    line = "%s, %r = arith.addui_extended %a, %b : i32, i1"
    got = elementwise(line, [a, b], np.uint8, ["i32"] * 2, "i1")
    assert np.array_equal(got, bits(a).astype(np.uint64) + bits(b) >= 2**32)


@pytest.mark.parametrize(
    ("line", "source", "kinds"),
    [
        ("extsi %a : i8 to i32", integers(8, 1), ("i8", "i32")),
        ("extui %a : i8 to i32", integers(8, 1).view(np.uint8), ("i8", "i32")),
        ("trunci %a : i32 to i8", integers(32, 1), ("i32", "i8")),
        ("sitofp %a : i32 to f32", integers(32, 1), ("i32", "f32")),
        ("uitofp %a : i32 to f32", integers(32, 1).view(np.uint32), ("i32", "f32")),
        ("fptosi %a : f32 to i32", np.float32(integers(16, 1)) / 7, ("f32", "i32")),
        ("extf %a : f32 to f64", floats(np.float32, 1), ("f32", "f64")),
        ("truncf %a : f64 to f32", floats(np.float64, 1), ("f64", "f32")),
    ],
)
def test_conversions(line: str, source: np.ndarray, kinds: tuple[str, str]):
    into = np.dtype({"i32": np.int32, "i8": np.int8, "f32": np.float32, "f64": np.float64}[kinds[1]])
    got = elementwise(f"%r = arith.{line}", [source], into, [kinds[0]], kinds[1])
    with np.errstate(all="ignore"):
        assert np.array_equal(got, source.astype(into), equal_nan=into.kind == "f")


def test_select_and_freeze_of_undef_terminate():
    a, b = integers(32, 1), integers(32, 2)
    line = "%c = arith.cmpi slt, %a, %b : i32\n%f = llvm.freeze %c : i1\n%r = arith.select %f, %a, %b : i32"
    assert np.array_equal(elementwise(line, [a, b], a.dtype, ["i32"] * 2, "i32"), np.minimum(a, b))


@pytest.mark.parametrize("pattern", [0x7F800001, 0xFFC12345, 0x7F800000, 0x80000000, 0x00000001, 0x3DCCCCCD])
def test_constants_reach_memory_bit_for_bit(pattern: int):
    program = compiled(f"""
      llvm.func @f(%out: !llvm.ptr) {{
        %c = llvm.mlir.constant(0x{pattern:08X} : f32) : f32
        llvm.store %c, %out : f32, !llvm.ptr
        llvm.return
      }}""")
    out = np.array([0xA5A5A5A5], np.uint32)
    program.function("f", None, c_void_p)(out.ctypes.data)
    assert out[0] == pattern


def test_loops_carry_values_that_swap():
    program = compiled("""
      llvm.func @fibonacci(%n: i64) -> i64 {
        %zero = arith.constant 0 : i64
        %one = arith.constant 1 : i64
        %a, %b = scf.for %i = %zero to %n step %one iter_args(%x = %zero, %y = %one) -> (i64, i64) : i64 {
          %z = arith.addi %x, %y : i64
          scf.yield %y, %z : i64, i64
        }
        llvm.return %a : i64
      }
      llvm.func @collatz(%n: i64) -> i64 {
        %zero = arith.constant 0 : i64
        %one = arith.constant 1 : i64
        %two = arith.constant 2 : i64
        %three = arith.constant 3 : i64
        %end:2 = scf.while (%x = %n, %steps = %zero) : (i64, i64) -> (i64, i64) {
          %go = arith.cmpi ne, %x, %one : i64
          scf.condition(%go) %x, %steps : i64, i64
        } do {
        ^bb0(%x: i64, %steps: i64):
          %odd = arith.trunci %x : i64 to i1
          %next = scf.if %odd -> i64 {
            %t = arith.muli %x, %three : i64
            %u = arith.addi %t, %one : i64
            scf.yield %u : i64
          } else {
            %t = arith.divui %x, %two : i64
            scf.yield %t : i64
          }
          %more = arith.addi %steps, %one : i64
          scf.yield %next, %more : i64, i64
        }
        llvm.return %end#1 : i64
      }""")
    assert program.function("fibonacci", c_int64, c_int64)(50) == 12586269025
    assert program.function("collatz", c_int64, c_int64)(27) == 111


def test_a_switch_brings_each_case_its_value():
    program = compiled("""
      llvm.func @f(%n: i32, %a: i32, %b: i32) -> i32 {
        %w = arith.index_cast %n : i32 to index
        %c = arith.constant 40 : i32
        %r = scf.index_switch %w -> i32
        case 2 { scf.yield %a : i32 }
        case 5 { scf.yield %b : i32 }
        case 7 { scf.yield %n : i32 }
        default { scf.yield %c : i32 }
        llvm.return %r : i32
      }""")
    f = program.function("f", c_int32, *[c_int32] * 3)
    assert [f(n, 10, 20) for n in (2, 5, 7, -1, 0)] == [10, 20, 7, 40, 40]


def test_addresses_in_structures_and_arrays():
    program = compiled("""
      llvm.func @f(%p: !llvm.ptr {foundry.elem = i8}, %i: i32, %j: i32) -> i16 {
        %q = llvm.getelementptr inbounds %p[%i, 2, %j, 1]
          : (!llvm.ptr, i32, i32) -> !llvm.ptr, !llvm.struct<(i8, f64, array<3 x struct<(i32, i16)>>)>
        %v = llvm.load %q : !llvm.ptr -> i16
        llvm.return %v : i16
      }""")
    inner = np.dtype([("a", "i4"), ("b", "i2")], align=True)
    outer = np.dtype([("x", "i1"), ("y", "f8"), ("z", inner, 3)], align=True)
    data = np.zeros(4, outer)
    data["z"]["b"] = np.arange(12).reshape(4, 3)
    f = program.function("f", c_int32, c_void_p, c_int32, c_int32)
    assert [f(data.ctypes.data, i, j) & 0xFFFF for i in range(4) for j in range(3)] == list(range(12))


def test_calls_cast_pointers_to_what_the_called_function_says():
    program = compiled("""
      llvm.mlir.global internal constant @table(dense<[1.0, 2.5, 4.0]> : tensor<3xf32>) : !llvm.array<3 x f32>
      llvm.mlir.global internal @chosen() : !llvm.ptr {
        %0 = llvm.mlir.addressof @table : !llvm.ptr
        llvm.return %0 : !llvm.ptr
      }
      llvm.func internal @sum(%p: !llvm.ptr {foundry.elem = f32}, %n: i64) -> f32 attributes {no_inline} {
        %zero = arith.constant 0 : i64
        %one = arith.constant 1 : i64
        %nought = arith.constant 0.0 : f32
        %r = scf.for %i = %zero to %n step %one iter_args(%s = %nought) -> (f32) : i64 {
          %q = llvm.getelementptr %p[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
          %v = llvm.load %q : !llvm.ptr -> f32
          %t = arith.addf %s, %v : f32
          scf.yield %t : f32
        }
        llvm.return %r : f32
      }
      llvm.func internal @same(%p: !llvm.ptr) -> !llvm.ptr {
        llvm.return %p : !llvm.ptr
      }
      llvm.func @f(%given: !llvm.ptr {foundry.elem = i64}, %take: i1) -> f32 {
        %n = arith.constant 3 : i64
        %chosen = llvm.mlir.addressof @chosen : !llvm.ptr
        %table = llvm.load %chosen : !llvm.ptr -> !llvm.ptr
        %p = arith.select %take, %given, %table : !llvm.ptr
        %q = llvm.call @same(%p) : (!llvm.ptr) -> !llvm.ptr
        %sum = llvm.mlir.addressof @sum : !llvm.ptr
        %a = llvm.call %sum(%q, %n) : !llvm.ptr, (!llvm.ptr, i64) -> f32
        %b = llvm.call @sum(%q, %n) : (!llvm.ptr, i64) -> f32
        %r = arith.addf %a, %b : f32
        llvm.return %r : f32
      }""")
    f = program.function("f", c_float, c_void_p, c_uint8)
    own = np.array([10, 20, 30], np.float32)
    assert (f(own.ctypes.data, 1), f(own.ctypes.data, 0)) == (120, 15)


def test_memory_in_a_frame_is_copied_and_filled():
    program = compiled("""
      llvm.func @f(%from: !llvm.ptr {foundry.elem = i32}, %to: !llvm.ptr {foundry.elem = i32}) {
        %count = llvm.mlir.constant(16 : i32) : i32
        %bytes = llvm.mlir.constant(48 : i32) : i32
        %all = llvm.mlir.constant(64 : i32) : i32
        %value = llvm.mlir.constant(7 : i8) : i8
        %frame = llvm.alloca %count x i32 {alignment = 8 : i64} : (i32) -> !llvm.ptr
        "llvm.intr.memset"(%frame, %value, %all) <{isVolatile = false}> : (!llvm.ptr, i8, i32) -> ()
        "llvm.intr.memcpy"(%frame, %from, %bytes) <{
          arg_attrs = [{llvm.align = 8 : i64}, {llvm.align = 4 : i64}, {}], isVolatile = false
        }> : (!llvm.ptr, !llvm.ptr, i32) -> ()
        "llvm.intr.memcpy"(%to, %frame, %all) <{isVolatile = false}> : (!llvm.ptr, !llvm.ptr, i32) -> ()
        llvm.return
      }""")
    source, out = np.arange(16, dtype=np.int32), np.full(16, -1, np.int32)
    program.function("f", None, POINTER(c_int32), POINTER(c_int32))(
        source.ctypes.data_as(POINTER(c_int32)), out.ctypes.data_as(POINTER(c_int32))
    )
    assert out.tolist() == [*range(12), *[0x07070707] * 4]


def test_structures_as_values():
    program = compiled("""
      llvm.func internal @both(%a: f64, %b: i64) -> !llvm.struct<(f64, array<2 x i64>)> attributes {no_inline} {
        %0 = llvm.mlir.undef : !llvm.struct<(f64, array<2 x i64>)>
        %1 = llvm.insertvalue %a, %0[0] : !llvm.struct<(f64, array<2 x i64>)>
        %2 = llvm.insertvalue %b, %1[1, 1] : !llvm.struct<(f64, array<2 x i64>)>
        llvm.return %2 : !llvm.struct<(f64, array<2 x i64>)>
      }
      llvm.func @f(%a: f64, %b: i64) -> f64 {
        %r = llvm.call @both(%a, %b) : (f64, i64) -> !llvm.struct<(f64, array<2 x i64>)>
        %x = llvm.extractvalue %r[0] : !llvm.struct<(f64, array<2 x i64>)>
        %y = llvm.extractvalue %r[1, 1] : !llvm.struct<(f64, array<2 x i64>)>
        %z = arith.sitofp %y : i64 to f64
        %s = arith.addf %x, %z : f64
        llvm.return %s : f64
      }""")
    assert program.function("f", c_double, c_double, c_int64)(0.5, -3) == -2.5


def test_mram_pointers_with_the_dpus_layout_are_read_by_llvm_13_and_14():
    dpu = """
      llvm.func @__triton_program_id(i32) -> i32
      llvm.func @k(%x: !llvm.ptr<255> {foundry.elem = f32, foundry.name = "x"}, %unused: !llvm.ptr<1>) {
        %zero = arith.constant 0 : i32
        %eight = arith.constant 8 : i32
        %id = llvm.call @__triton_program_id(%zero) : (i32) -> i32
        %p = llvm.getelementptr %x[%id] : (!llvm.ptr<255>, i32) -> !llvm.ptr<255>, f32
        %tile = llvm.alloca %eight x f32 {alignment = 8 : i64} : (i32) -> !llvm.ptr
        "llvm.intr.memcpy"(%tile, %p, %eight) <{isVolatile = false}> : (!llvm.ptr, !llvm.ptr<255>, i32) -> ()
        %v = llvm.load %p : !llvm.ptr<255> -> f32
        llvm.store %v, %tile : f32, !llvm.ptr
        "llvm.intr.memcpy"(%p, %tile, %eight) <{isVolatile = false}> : (!llvm.ptr<255>, !llvm.ptr, i32) -> ()
        llvm.return
      }"""
    ir = write_typed_llvm(mlir_to_llvm_dialect(dpu), triple=DPU_TRIPLE, datalayout=DPU_DATALAYOUT)
    assert "define void @k(float addrspace(255)* %x, i8 addrspace(1)* %arg1) {" in ir
    check_text(ir, majors=(13, 14))


def test_blocks_may_stand_in_any_order():
    program = compiled("""
      llvm.func @f(%n: i32) -> i32 {
        llvm.br ^start
      ^end(%v: i32):
        %two = arith.constant 2 : i32
        %w = arith.muli %v, %two : i32
        %x = arith.addi %w, %early : i32
        llvm.return %x : i32
      ^start:
        %seven = arith.constant 7 : i32
        %early = arith.addi %n, %seven : i32
        llvm.br ^end(%early : i32)
      }""")
    assert program.function("f", c_int32, c_int32)(1) == 24
