"""LLVM IR as input: what the DPU's compiler takes, and in what words it refuses the rest."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import HEAD, LAYOUT, TRIPLE, build_program, built, compile_with, launched, refused

EMPTY = "define void @k() {\n  ret void\n}\n"


def compiles(folder: Path, ir: str, *flags: str) -> str:
    (folder / "k.ll").write_text(ir)
    return built(folder, "-O2", "-g0", "-x", "ir", "-c", "k.ll", "-o", "k.o", *flags)


def refuses(folder: Path, ir: str) -> str:
    (folder / "k.ll").write_text(ir)
    return refused(folder, "-O2", "-x", "ir", "-c", "k.ll")


def test_a_kernel_runs_from_ir(tmp_path: Path) -> None:
    (tmp_path / "k.ll").write_text(
        HEAD
        + """declare i32 @llvm.dpu.tid.i32()
declare void @llvm.dpu.ldma(i8*, i8 addrspace(255)*, i32)
declare void @llvm.dpu.sdma(i8*, i8 addrspace(255)*, i32)
define i32 @k(i64 addrspace(255)* %m, i8 addrspace(1)* %unused) {
  %slot = alloca [2 x i64], align 8
  %w = bitcast [2 x i64]* %slot to i8*
  %from = bitcast i64 addrspace(255)* %m to i8 addrspace(255)*
  call void @llvm.dpu.ldma(i8* %w, i8 addrspace(255)* %from, i32 16)
  %first = getelementptr [2 x i64], [2 x i64]* %slot, i32 0, i32 0
  %value = load i64, i64* %first
  %more = add i64 %value, 5
  store i64 %more, i64* %first
  call void @llvm.dpu.sdma(i8* %w, i8 addrspace(255)* %from, i32 8)
  %next = getelementptr i64, i64 addrspace(255)* %m, i32 1
  %scalar = load i64, i64 addrspace(255)* %next
  store i64 %more, i64 addrspace(255)* %next
  %tasklet = call i32 @llvm.dpu.tid.i32()
  %short = trunc i64 %scalar to i32
  %sum = add i32 %short, %tasklet
  ret i32 %sum
}
"""
    )
    build_program(
        tmp_path,
        '#include <mram.h>\n#include "checks.h"\n'
        "int k(__mram_ptr uint64_t *m, __attribute__((address_space(1))) char *unused);\n"
        "__mram uint64_t values[2] = {30, 40};\n"
        "int main(void) { CHECK(k(values, 0) == 40); CHECK(values[0] == 35); CHECK(values[1] == 35); return 0; }\n",
        "k.ll",
    )
    assert launched(tmp_path).results[:2] == [3, 0]


def test_ir_can_call_what_c_has_inline(tmp_path: Path) -> None:
    (tmp_path / "k.ll").write_text(
        HEAD
        + """%struct.sem_t = type { i8, i8, i8, i8 }
%struct.barrier_t = type { i8, i8, i8, i8 }
@units = global %struct.sem_t { i8 -1, i8 0, i8 0, i8 0 }, align 4
@meeting = global %struct.barrier_t { i8 -1, i8 1, i8 1, i8 0 }, align 4
declare void @sem_give(%struct.sem_t*)
declare void @sem_take(%struct.sem_t*)
declare void @barrier_wait(%struct.barrier_t*)
declare i64 @perfcounter_config(i32, i1 zeroext)
declare i64 @perfcounter_get()
define i64 @k() {
  %before = call i64 @perfcounter_config(i32 2, i1 zeroext true)
  call void @sem_give(%struct.sem_t* @units)
  call void @sem_take(%struct.sem_t* @units)
  call void @barrier_wait(%struct.barrier_t* @meeting)
  %after = call i64 @perfcounter_get()
  ret i64 %after
}
"""
    )
    build_program(
        tmp_path, '#include "checks.h"\nuint64_t k(void);\nint main(void) { CHECK(k() > 20); return 0; }\n', "k.ll"
    )
    assert launched(tmp_path).results[:2] == [1, 0]


def test_ir_without_triple_and_layout_is_a_dpus(tmp_path: Path) -> None:
    compiles(tmp_path, EMPTY)


def test_bitcode_is_taken(tmp_path: Path) -> None:
    compiles(tmp_path, HEAD + EMPTY)
    built(tmp_path, "-c", "-emit-llvm", "k.ll", "-o", "k.bc")
    assert (tmp_path / "k.bc").read_bytes()[:2] == b"BC"
    built(tmp_path, "-c", "k.bc", "-o", "k2.o")


def test_optimised_ir_can_be_looked_at(tmp_path: Path) -> None:
    (tmp_path / "c.c").write_text("int f(int a) { return a * 2 + a * 2; }\n")
    built(tmp_path, "-O2", "-S", "-emit-llvm", "c.c")
    text = (tmp_path / "c.ll").read_text()
    assert f'target triple = "{TRIPLE}"' in text
    assert f'target datalayout = "{LAYOUT}"' in text
    assert "shl" in text
    built(tmp_path, "-c", "c.ll", "-o", "c.o")


@pytest.mark.parametrize(
    "what, ir, expected",
    [
        (
            "another triple",
            HEAD.replace(TRIPLE, "x86_64-unknown-linux-gnu") + EMPTY,
            ["'x86_64-unknown-linux-gnu'", "'dpu-upmem-dpurte'"],
        ),
        ("another layout", HEAD.replace("e-m:e-p:32:32", "e-m:e-p:64:64") + EMPTY, ["data layout", LAYOUT]),
        ("opaque pointers", HEAD + "define void @k(ptr %p) {\n  ret void\n}\n", ["expected type", "typed pointers"]),
        (
            "half a file",
            HEAD + "define void @k(i32 %n) {\n  %a = add i32 %n, 1\n",
            ["found end of file when expecting more instructions", "--out"],
        ),
        (
            "a cast of a pointer to MRAM",
            HEAD
            + "define i8 @k(i8 addrspace(255)* %m) {\n  %w = addrspacecast i8 addrspace(255)* %m to i8*\n"
            + "  %v = load i8, i8* %w\n  ret i8 %v\n}\n",
            ["Cast between addresses of different address space is not supported", "'k'"],
        ),
        (
            "a cast in a constant",
            HEAD
            + "@m = external addrspace(255) global i8\ndefine i8* @k() {\n"
            + "  ret i8* addrspacecast (i8 addrspace(255)* @m to i8*)\n}\n",
            ["Cast between addresses of different address space is not supported"],
        ),
        ("half", HEAD + "define half @k(half %a) {\n  ret half %a\n}\n", ["half is not known to the DPU", "'k'"]),
        (
            "half within",
            HEAD
            + "define float @k(i16 %a) {\n  %h = bitcast i16 %a to half\n  %f = fpext half %h to float\n"
            + "  ret float %f\n}\n",
            ["half is not known to the DPU"],
        ),
        ("fp128", HEAD + "define void @k(fp128 %a) {\n  ret void\n}\n", ["floating-point type other than float"]),
        (
            "an atomic",
            HEAD + "define i32 @k(i32* %p) {\n  %v = atomicrmw add i32* %p, i32 1 seq_cst\n  ret i32 %v\n}\n",
            ["atomic instructions do not exist on a DPU", "mutex.h"],
        ),
        (
            "the stack at run time",
            HEAD + "define void @k(i32 %n) {\n  %p = alloca i8, i32 %n\n  store i8 0, i8* %p\n  ret void\n}\n",
            ["Dynamic allocation of stack is not supported"],
        ),
        (
            "an access to address space 1",
            HEAD + "define i8 @k(i8 addrspace(1)* %p) {\n  %v = load i8, i8 addrspace(1)* %p\n  ret i8 %v\n}\n",
            ["address space 1 has no memory on a DPU"],
        ),
        (
            "a frame that WRAM has no room for",
            HEAD + "define i8* @k() {\n  %p = alloca [70000 x i8]\n  %q = bitcast [70000 x i8]* %p to i8*\n"
            "  call void @use(i8* %q)\n  ret i8* null\n}\ndeclare void @use(i8*)\n",
            ["70000 bytes", "65536"],
        ),
        (
            "an intrinsic of a GPU",
            HEAD + "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\ndefine i32 @k() {\n"
            "  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n  ret i32 %t\n}\n",
            ["llvm.nvvm.read.ptx.sreg.tid.x", "another processor's"],
        ),
        (
            "an unknown DPU intrinsic",
            HEAD + "declare i32 @llvm.dpu.fly()\ndefine i32 @k() {\n  %t = call i32 @llvm.dpu.fly()\n  ret i32 %t\n}\n",
            ["llvm.dpu.fly"],
        ),
        (
            "an intrinsic that would run for nothing",
            HEAD + "declare i32 @llvm.vector.reduce.mul.v8i32(<8 x i32>)\ndefine i32 @k(<8 x i32> %v) {\n"
            "  %r = call i32 @llvm.vector.reduce.mul.v8i32(<8 x i32> %v)\n  ret i32 %r\n}\n",
            ["llvm.vector.reduce.mul.v8i32", "cannot be selected for a DPU"],
        ),
        (
            "assembly",
            HEAD + 'define void @k() {\n  call void asm sideeffect "stop", ""()\n  ret void\n}\n',
            ["does not assemble DPU instructions"],
        ),
        (
            "a thread-local variable",
            HEAD + "@v = thread_local global i32 0\n" + EMPTY,
            ["thread-local variables are not known to the DPU"],
        ),
    ],
)
def test_ir_that_a_dpu_does_not_support_is_refused(tmp_path: Path, what: str, ir: str, expected: list[str]) -> None:
    message = refuses(tmp_path, ir)
    assert "error:" in message, what
    for words in expected:
        assert words in message, what


@pytest.mark.parametrize(
    "what, source, expected",
    [
        (
            "a cast",
            "char *f(__attribute__((address_space(255))) char *m) { return (char *)m; }\n",
            "Cast between addresses of different address space is not supported",
        ),
        ("_Float16", "float f(float a) { return (float)(_Float16)a; }\n", "half is not known"),
        ("an array of unknown size", "void g(char *); void f(int n) { char a[n]; g(a); }\n", "variable length array"),
        ("assembly", 'void f(void) { __asm__ volatile("stop"); }\n', "does not assemble DPU instructions"),
    ],
)
def test_unsupported_c_is_refused(tmp_path: Path, what: str, source: str, expected: str) -> None:
    (tmp_path / "f.c").write_text(source)
    assert expected in refused(tmp_path, "-O2", "-c", "f.c"), what


def test_atomics_in_c_are_functions_that_nobody_has(tmp_path: Path) -> None:
    (tmp_path / "f.c").write_text("int n;\nint main(void) { return __atomic_fetch_add(&n, 1, 5); }\n")
    assert "undefined symbol: __atomic_fetch_add_4" in refused(tmp_path, "-O2", "f.c")


def test_an_empty_assembly_is_a_barrier_to_the_compiler(tmp_path: Path) -> None:
    (tmp_path / "f.c").write_text('int f(int *p) { *p = 1; __asm__ volatile("" ::: "memory"); return *p; }\n')
    built(tmp_path, "-O2", "-c", "f.c")


@pytest.mark.parametrize("function", ["sqrtf", "expf", "fminf", "fmaf", "floorf", "fmod"])
def test_mathematics_that_the_sdk_lacks_is_undefined(tmp_path: Path, function: str) -> None:
    calls = {
        "sqrtf": "call float @llvm.sqrt.f32(float %a)",
        "expf": "call float @llvm.exp.f32(float %a)",
        "fminf": "call float @llvm.minnum.f32(float %a, float 3.0)",
        "fmaf": "call float @llvm.fma.f32(float %a, float %a, float %a)",
        "floorf": "call float @llvm.floor.f32(float %a)",
        "fmod": "frem double %d, 3.0",
    }
    declarations = (
        "declare float @llvm.sqrt.f32(float)\ndeclare float @llvm.exp.f32(float)\n"
        "declare float @llvm.minnum.f32(float, float)\ndeclare float @llvm.fma.f32(float, float, float)\n"
        "declare float @llvm.floor.f32(float)\n"
    )
    type_ = "double" if function == "fmod" else "float"
    (tmp_path / "k.ll").write_text(
        f"{HEAD}{declarations}@v = global float 2.0\n@w = global double 2.0\n@r = global {type_} 0.0\n"
        "define i32 @main() {\n  %a = load volatile float, float* @v\n  %d = load volatile double, double* @w\n"
        f"  %r = {calls[function]}\n  store volatile {type_} %r, {type_}* @r\n  ret i32 0\n}}\n"
    )
    done = compile_with(tmp_path, "-O2", "k.ll", "-o", "program")
    assert done.returncode != 0
    assert f"undefined symbol: {function}\n" in done.stderr
    assert not (tmp_path / "program").exists()


def test_vectors_are_computed_element_by_element(tmp_path: Path) -> None:
    (tmp_path / "k.ll").write_text(
        HEAD
        + """define i32 @k(i32* %p) {
  %v = bitcast i32* %p to <4 x i32>*
  %a = load <4 x i32>, <4 x i32>* %v, align 4
  %b = mul <4 x i32> %a, <i32 1, i32 2, i32 3, i32 4>
  store <4 x i32> %b, <4 x i32>* %v, align 4
  %last = extractelement <4 x i32> %b, i32 3
  ret i32 %last
}
"""
    )
    build_program(
        tmp_path,
        '#include "checks.h"\nint k(int *p);\nint numbers[5] = {0, 5, 6, 7, 8};\n'
        "int main(void) { CHECK(k(numbers + 1) == 32); CHECK(numbers[2] == 12); return 0; }\n",
        "k.ll",
    )
    assert launched(tmp_path).results[:2] == [2, 0]
