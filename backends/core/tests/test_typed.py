"""The text that foundry_core.codegen.typed writes, and what it refuses. Its meaning is tested where LLVM 14 runs it."""

from __future__ import annotations

import pytest
from foundry_core.codegen.typed import check_text, write_typed_llvm
from foundry_core.errors import LoweringError, ToolError, UnsupportedOperation

FUNC = "CConv = #llvm.cconv<ccc>, unnamed_addr = 0 : i64, visibility_ = 0 : i64"


def function(body: str, kind: str = "void ()", arguments: str = "", attributes: str = "") -> str:
    more = f", arg_attrs = [{attributes}]" if attributes else ""
    return (
        f'"llvm.func"() <{{{FUNC}{more}, function_type = !llvm.func<{kind}>, linkage = #llvm.linkage<external>, '
        f'sym_name = "f"}}> ({{\n^bb0({arguments}):\n{body}\n}}) : () -> ()\n'
    )


def written(*operations: str) -> list[str]:
    """Return the lines of a module after its target lines."""
    module = '"builtin.module"() ({\n' + "\n".join(operations) + "\n}) : () -> ()\n"
    text = write_typed_llvm(module, triple="dpu-upmem-dpurte", datalayout="e-p:32:32")
    head, rest = text.split("\n\n", 1)
    assert head == 'target datalayout = "e-p:32:32"\ntarget triple = "dpu-upmem-dpurte"'
    return rest.splitlines()


def constant(value: str, kind: str) -> str:
    """Return the text of a constant of a type, as a function's return value."""
    body = f'%0 = "llvm.mlir.constant"() <{{value = {value}}}> : () -> {kind}\n"llvm.return"(%0) : ({kind}) -> ()'
    return written(function(body, f"{kind} ()"))[2].strip()


def test_parameters_have_the_element_types_and_names_that_attributes_give():
    lines = written(
        function(
            '"llvm.return"() : () -> ()',
            "void (ptr<255>, ptr<255>, i32, ptr<1>)",
            "%a: !llvm.ptr<255>, %b: !llvm.ptr<255>, %n: i32, %t: !llvm.ptr<1>",
            '{foundry.elem = i32, foundry.name = "x", llvm.align = 8 : i64}, {}, {foundry.name = "n"}, {tt.other = 1}',
        )
    )
    assert lines[0] == (
        "define void @f(i32 addrspace(255)* align 8 %x, i8 addrspace(255)* %arg1, i32 %n, i8 addrspace(1)* %arg3) {"
    )


def test_names_that_clash_become_numbers():
    attributes = ", ".join(f'{{foundry.name = "{name}"}}' for name in ("x", "x", "v0", "entry"))
    arguments = "%a: i32, %b: i32, %c: i32, %d: i32"
    lines = written(function('"llvm.return"() : () -> ()', "void (i32, i32, i32, i32)", arguments, attributes))
    assert lines[0] == "define void @f(i32 %x, i32 %arg1, i32 %arg2, i32 %arg3) {"


def test_a_pointer_is_cast_only_where_another_type_is_wanted():
    body = """
      %0 = "llvm.getelementptr"(%p, %i) <{
        elem_type = f32, noWrapFlags = 3 : i32, rawConstantIndices = array<i32: -2147483648>
      }> : (!llvm.ptr<255>, i32) -> !llvm.ptr<255>
      %1 = "llvm.load"(%0) <{alignment = 4 : i64, ordering = 0 : i64}> : (!llvm.ptr<255>) -> f32
      %2 = "llvm.load"(%0) <{ordering = 0 : i64, volatile_}> : (!llvm.ptr<255>) -> i32
      "llvm.return"() : () -> ()"""
    lines = written(function(body, "void (ptr<255>, i32)", "%p: !llvm.ptr<255>, %i: i32", "{foundry.elem = f32}, {}"))
    assert lines[2:-1] == [
        "  %v0 = getelementptr float, float addrspace(255)* %arg0, i32 %arg1",
        "  %v1 = load float, float addrspace(255)* %v0, align 4",
        "  %v2 = bitcast float addrspace(255)* %v0 to i32 addrspace(255)*",
        "  %v3 = load volatile i32, i32 addrspace(255)* %v2",
        "  ret void",
    ]


def test_inbounds_stays_where_pointers_do_not_wrap():
    body = """
      %0 = "llvm.getelementptr"(%p) <{
        elem_type = i32, noWrapFlags = 3 : i32, rawConstantIndices = array<i32: 4>
      }> : (!llvm.ptr) -> !llvm.ptr
      "llvm.return"() : () -> ()"""
    lines = written(function(body, "void (ptr)", "%p: !llvm.ptr", "{foundry.elem = i32}"))
    assert lines[2] == "  %v0 = getelementptr inbounds i32, i32* %arg0, i32 4"


def test_a_copy_between_address_spaces_names_them_and_the_alignments():
    body = """
      %0 = "llvm.mlir.constant"() <{value = 64 : i32}> : () -> i32
      "llvm.intr.memcpy"(%p, %q, %0) <{
        arg_attrs = [{llvm.align = 8 : i64}, {llvm.align = 4 : i64}, {}], isVolatile = false
      }> : (!llvm.ptr, !llvm.ptr<255>, i32) -> ()
      "llvm.intr.memcpy"(%q, %p, %0) <{isVolatile = true}> : (!llvm.ptr<255>, !llvm.ptr, i32) -> ()
      "llvm.return"() : () -> ()"""
    lines = written(function(body, "void (ptr, ptr<255>)", "%p: !llvm.ptr, %q: !llvm.ptr<255>"))
    assert lines[2:4] == [
        "  call void @llvm.memcpy.p0i8.p255i8.i32"
        "(i8* align 8 %arg0, i8 addrspace(255)* align 4 %arg1, i32 64, i1 false)",
        "  call void @llvm.memcpy.p255i8.p0i8.i32(i8 addrspace(255)* %arg1, i8* %arg0, i32 64, i1 true)",
    ]
    assert lines[-2:] == [
        "declare void @llvm.memcpy.p0i8.p255i8.i32(i8*, i8 addrspace(255)*, i32, i1)",
        "declare void @llvm.memcpy.p255i8.p0i8.i32(i8 addrspace(255)*, i8*, i32, i1)",
    ]


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ("1.000000e+00 : f32", "f32", "float 0x3FF0000000000000"),
        ("-0.000000e+00 : f32", "f32", "float 0x8000000000000000"),
        ("1.17549435E-38 : f32", "f32", "float 0x3810000000000000"),
        ("1.401300e-45 : f32", "f32", "float 0x36A0000000000000"),
        ("0x7F800000 : f32", "f32", "float 0x7FF0000000000000"),
        ("0xFF800000 : f32", "f32", "float 0xFFF0000000000000"),
        ("0x7F800001 : f32", "f32", "float bitcast (i32 2139095041 to float)"),
        ("0xFFC00000 : f32", "f32", "float bitcast (i32 -4194304 to float)"),
        ("0x7FF0000000000001 : f64", "f64", "double 0x7FF0000000000001"),
        ("1.000000e-01 : f64", "f64", "double 0x3FB999999999999A"),
        ("3.140630e+00 : f16", "f16", "half 0xH4248"),
        ("0x7C01 : f16", "f16", "half 0xH7C01"),
        ("3.140630e+00 : bf16", "bf16", "bfloat 0xR4049"),
        ("3.007810e-01 : bf16", "bf16", "bfloat 0xR3E9A"),
        ("true", "i1", "i1 true"),
        ("-1 : i1", "i1", "i1 true"),
        ("false", "i1", "i1 false"),
        ("-128 : i8", "i8", "i8 -128"),
        ("5 : index", "i64", "i64 5"),
        ("-9223372036854775808 : i64", "i64", "i64 -9223372036854775808"),
        ("dense<[1, -2]> : vector<2xi16>", "vector<2xi16>", "<2 x i16> <i16 1, i16 -2>"),
        ("dense<7> : vector<2xi8>", "vector<2xi8>", "<2 x i8> <i8 7, i8 7>"),
        (
            "dense<[1.000000e+00, 0x7F800001]> : vector<2xf32>",
            "vector<2xf32>",
            "<2 x float> <float 0x3FF0000000000000, float bitcast (i32 2139095041 to float)>",
        ),
        (
            "dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>",
            "!llvm.array<2 x array<2 x i32>>",
            "[2 x [2 x i32]] [[2 x i32] [i32 1, i32 2], [2 x i32] [i32 3, i32 4]]",
        ),
        ("dense<0> : tensor<4xi32>", "!llvm.array<4 x i32>", "[4 x i32] zeroinitializer"),
    ],
)
def test_constants_keep_every_bit(value: str, kind: str, expected: str):
    assert constant(value, kind) == f"ret {expected}"


def test_a_float_in_a_string_stays_a_string():
    given = '"llvm.mlir.global"() <{addr_space = 0 : i32, constant, global_type = !llvm.array<16 x i8>, linkage = '
    given += '#llvm.linkage<private>, sym_name = "a b", value = "0x7F800001 : f32"}> ({\n}) : () -> ()'
    assert written(given) == ['@"a b" = private constant [16 x i8] c"0x7F800001 : f32"']


def test_two_edges_to_one_block_bring_their_own_values():
    body = """
      "llvm.switch"(%n, %n, %n)[^bb1, ^bb1] <{
        case_operand_segments = array<i32: 1>, case_values = dense<2> : vector<1xi32>,
        operandSegmentSizes = array<i32: 1, 1, 1>
      }> : (i32, i32, i32) -> ()
    ^bb1(%0: i32):
      "llvm.return"(%0) : (i32) -> ()"""
    lines = written(function(body, "i32 (i32)", "%n: i32"))
    assert lines[1:-1] == [
        "entry:",
        "  switch i32 %arg0, label %bb1 [ i32 2, label %entry.1 ]",
        "entry.1:",
        "  br label %bb1",
        "bb1:",
        "  %v0 = phi i32 [ %arg0, %entry ], [ %arg0, %entry.1 ]",
        "  ret i32 %v0",
    ]


def test_the_same_module_is_written_the_same():
    body = '%0 = "llvm.intr.smax"(%n, %n) : (i32, i32) -> i32\n"llvm.return"() : () -> ()'
    given = function(body, "void (i32)", "%n: i32")
    assert written(given) == written(given)


@pytest.mark.parametrize(
    ("operation", "named", "why"),
    [
        ('%0 = "llvm.addrspacecast"(%p) : (!llvm.ptr<255>) -> !llvm.ptr', "llvm.addrspacecast", "LLVM 12 has none"),
        ('%0 = "llvm.intr.powi"(%f, %n) : (f32, i32) -> f32', "llvm.intr.powi", ""),
        ('%0 = "llvm.load"(%p) <{ordering = 4 : i64}> : (!llvm.ptr<255>) -> i32', "llvm.load", "atomic"),
        ('%0 = "llvm.atomicrmw"(%p, %n) <{bin_op = 1 : i64}> : (!llvm.ptr<255>, i32) -> i32', "llvm.atomicrmw", ""),
        ('%0 = "llvm.intr.is.fpclass"(%f) <{bit = 3 : i32}> : (f32) -> i1', "llvm.intr.is.fpclass", ""),
        ('"llvm.inline_asm"() <{asm_string = "nop", constraints = ""}> : () -> ()', "llvm.inline_asm", ""),
        ('%0 = "arith.addi"(%n, %n) : (i32, i32) -> i32', "arith.addi", ""),
    ],
)
def test_operation_that_llvm_12_or_a_dpu_lacks_is_refused_by_name_and_line(operation: str, named: str, why: str):
    body = f'{operation} loc("kernel.py":7:3)\n"llvm.return"() : () -> ()'
    with pytest.raises(UnsupportedOperation, match=rf"^{named} at kernel.py:7 is not supported: {why}"):
        written(function(body, "void (ptr<255>, i32, f32)", "%p: !llvm.ptr<255>, %n: i32, %f: f32"))


@pytest.mark.parametrize("word", ["byval", "sret"])
def test_parameters_passed_in_a_way_of_their_own_are_refused(word: str):
    with pytest.raises(UnsupportedOperation, match=f"llvm.func is not supported: a parameter that is {word}"):
        written(function('"llvm.return"() : () -> ()', "void (ptr)", "%p: !llvm.ptr", f"{{llvm.{word} = i32}}"))


def test_ir_outside_the_generic_form_is_refused():
    with pytest.raises(LoweringError, match="generic form"):
        write_typed_llvm("llvm.func @f() { llvm.return }", triple="", datalayout="")


def test_check_knows_what_llvm_12_lacks_though_other_llvms_pass_it():
    with pytest.raises(ToolError, match=r"LLVM 12 has no intrinsic @llvm.is.fpclass.f32"):
        check_text("declare i1 @llvm.is.fpclass.f32(float, i32)")
    body = "  %q = addrspacecast i8 addrspace(255)* %p to i8*\n  ret i8* %q\n"
    with pytest.raises(ToolError, match="casts between address spaces"):
        check_text(f"define i8* @f(i8 addrspace(255)* %p) {{\n{body}}}")


def test_check_says_which_llvm_is_missing():
    with pytest.raises(ToolError, match="llvm-as-7 is not on PATH"):
        check_text("", majors=(7,))
