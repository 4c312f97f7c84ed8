"""The files generated around a kernel: from its IR or its script, without compiling or running anything."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from foundry_core.codegen.typed import check_text
from foundry_core.errors import ToolError
from triton_dpu_backend.artifact import arguments
from triton_dpu_backend.artifact.build import build
from triton_dpu_backend.artifact.runner import Dpus, host_runner
from triton_dpu_backend.artifact.script import ScriptError, default_dpus
from triton_dpu_backend.artifact.signature import SignatureError, annotate, facts, parse, tasklets
from triton_dpu_backend.artifact.wrapper import wrapper

PARAMETERS = (
    'float addrspace(255)* nocapture readonly align 8 %a, i16 addrspace(255)*%"odd, )", i8 signext %small, i64 %long, '
    "double %real, float %single, i32 noundef %n, i8 addrspace(1)* %0, i8 addrspace(1)* nocapture %1"
)
BODY = "{\nentry:\n  ret void\n}\n"
KERNEL = f"define void @some.kernel({PARAMETERS}) local_unnamed_addr #0 {BODY}"


def test_each_parameter_has_its_field_where_c_has_it() -> None:
    kernel = parse(KERNEL)
    assert kernel.name == "some.kernel"
    assert [(p.index, p.llvm_type, p.c_type, p.offset) for p in kernel.host_parameters] == [
        (0, "float addrspace(255)*", "uint32_t", 0),
        (1, "i16 addrspace(255)*", "uint32_t", 4),
        (2, "i8", "int8_t", 8),
        (3, "i64", "int64_t", 16),
        (4, "double", "double", 24),
        (5, "float", "float", 32),
        (6, "i32", "int32_t", 36),
    ]
    assert kernel.arguments_bytes == 48
    assert [p.element_bytes for p in kernel.parameters[:2]] == [4, 2]
    assert [p.is_passed for p in kernel.parameters[-2:]] == [False, False]


def test_a_kernel_without_parameters_still_has_a_struct() -> None:
    kernel = parse(f"define void @nothing() {BODY}")
    assert kernel.host_parameters == ()
    assert kernel.arguments_bytes == 8


@pytest.mark.parametrize("ir", [KERNEL, f"define void @nothing() {BODY}", f'define void @"a \\22ñ"(i32 %n) {BODY}'])
def test_the_entry_point_is_read_by_llvm_13_and_14(ir: str) -> None:
    check_text(wrapper(parse(ir)))


def test_no_name_of_a_kernel_ends_a_string_or_a_comment_of_the_c_code() -> None:
    kernel = parse(f'define void @"*/ ??/\\22ñ"(i32 %n) {BODY}')
    escaped = r'"\052/ \077\077/\042\303\261"'
    assert f"kernel {escaped}, laid out" in arguments.host_header(kernel)
    head = host_runner(kernel, outs=(), dpus=Dpus(3, "a\\b"), facts={})
    assert f"kernel {escaped}. Generated" in head and f"#define KERNEL {escaped}\n" in head
    assert r'#define DEFAULT_DPUS_FROM ", from a\134b"' in head


def test_a_kernel_is_chosen_by_name_among_those_that_can_be_called() -> None:
    ir = f"define internal void @helper() {BODY}\n{KERNEL}\ndefine void @other() {BODY}"
    assert parse(ir, "other").parameters == ()
    with pytest.raises(SignatureError, match=r"several functions, name one of them: some\.kernel, other"):
        parse(ir)
    with pytest.raises(SignatureError, match=r"no kernel helper; it defines: some\.kernel, other"):
        parse(ir, "helper")


@pytest.mark.parametrize(
    ("parameter", "why"),
    [
        ("half %x", "parameter 0 of @k, half %x, cannot be passed: a scalar is one of i8, i16"),
        ("<4 x i32> %x", "cannot be passed"),
        ("[2 x i32] %x", "cannot be passed"),
        ("float* %x", "points into address space 0; a host can pass MRAM, addrspace\\(255\\), only"),
        ("half addrspace(255)* %x", "points to what a host cannot fill"),
        ("i32 addrspace(255)* addrspace(255)* %x", "points to what a host cannot fill"),
        ("{ i32, i32 } addrspace(255)* %x", "points to what a host cannot fill"),
        (f"half addrspace({'9' * 5000})* %x", "points into address space 0"),
    ],
)
def test_a_parameter_that_a_host_cannot_pass_is_refused(parameter: str, why: str) -> None:
    with pytest.raises(SignatureError, match=why):
        parse(f"define void @k({parameter}) {BODY}")


def test_the_tasklets_that_scratch_memory_is_for_are_known() -> None:
    assert tasklets("@__triton_scratch_k = internal global [14 x [128 x i8]] undef, align 8\n" + KERNEL) == 14
    assert tasklets(KERNEL) is None
    source = arguments.dpu_source(parse(KERNEL), 14)
    assert "#if NR_TASKLETS > 14" in source


@pytest.mark.parametrize("count", [0, 25])
def test_a_dpu_has_1_to_24_tasklets(count: int, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=f"cannot run {count} tasklets"):
        build(KERNEL, name="", num_tasklets=count, stack_size=1024, work=tmp_path)


def test_facts_are_kept_in_the_ir_whatever_is_in_them() -> None:
    expected = {"reach": 'int "x";\n\\ 100 % \u00e9', "block": "64"}
    ir = annotate(KERNEL + '\n!llvm.ident = !{!0}\n!0 = !{!"LLVM"}\n', expected)
    check_text(ir)
    assert facts(ir) == expected
    assert facts(annotate(ir, {"block": "8"})) == {"block": "8"}
    assert facts(KERNEL) == {}


LAUNCH = "add[grid](x, num_dpus=4)"
CONFIG = "@triton.autotune(configs=[triton.Config({'B': 1}, num_dpus=8)], key=[])\ndef add(): ..."
IN_CONFIG = "triton.Config({'B': 1, 'num_dpus': 16})"
CONSTANT = "TRITON_DPU_NUM_DPUS = 32"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("", None),
        (f"{CONSTANT}\n{CONFIG}\n{LAUNCH}", Dpus(4, "a launch of add")),
        (f"{CONSTANT}\n{CONFIG}", Dpus(8, "triton.Config")),
        (IN_CONFIG, Dpus(16, "triton.Config")),
        (CONSTANT, Dpus(32, "TRITON_DPU_NUM_DPUS")),
        ("TRITON_DPU_NUM_DPUS: int = 32", Dpus(32, "TRITON_DPU_NUM_DPUS")),
        (f"{LAUNCH}\n{LAUNCH}", Dpus(4, "a launch of add")),
        # A launch of another kernel; a variable within a function; a value that is known only at run time.
        ("sub[grid](x, num_dpus=4)", None),
        ("def f():\n    TRITON_DPU_NUM_DPUS = 4", None),
        (f"{CONSTANT}\nadd[grid](x, num_dpus=int(given))", None),
        ("MANY = 6\nadd[grid](x, num_dpus=MANY)", Dpus(6, "a launch of add")),
    ],
)
def test_the_default_number_of_dpus_is_the_first_found_of_launch_configuration_and_constant(
    source: str, expected: Dpus | None
) -> None:
    assert default_dpus(source, "add") == expected


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (f"{LAUNCH}\nadd[grid](x, num_dpus=5)", "a launch of add: 4 in line 1, 5 in line 2"),
        (f"{IN_CONFIG}\n\ntriton.Config(num_dpus=1)", "triton.Config: 16 in line 1, 1 in line 3"),
        (f"{CONSTANT}\nTRITON_DPU_NUM_DPUS = 1", "TRITON_DPU_NUM_DPUS: 32 in line 1, 1 in line 2"),
        ("TRITON_DPU_NUM_DPUS = 0", r"line 1: the number of DPUs \(TRITON_DPU_NUM_DPUS\)=0 .* from 1 to 2560"),
        ("add[grid](x, num_dpus=2.5)", r"line 1: the number of DPUs \(a launch of add\)=2.5 .* from 1 to 2560"),
        ("add[grid](x, num_dpus=-1)", "=-1 is not allowed"),
        ("add[grid](x, num_dpus=True)", "=True is not allowed"),
        ("triton.Config({}, num_dpus='4')", "='4' is not allowed"),
        ("TRITON_DPU_NUM_DPUS = 2561", "=2561 is not allowed"),
        ("def", "the script is not Python: line 1"),
    ],
)
def test_a_script_that_contradicts_itself_is_refused(source: str, why: str) -> None:
    with pytest.raises(ScriptError, match=why):
        default_dpus(source, "add")


def test_two_numbers_of_different_kinds_are_no_conflict(tmp_path: Path) -> None:
    lines: Mapping[str, int] = {LAUNCH: 4, CONSTANT: 32}
    assert default_dpus("\n".join(lines), "add") == Dpus(4, "a launch of add")


@pytest.mark.parametrize("parts", ["", "x", "0", "-1", "9" * 5000, "\\FF"])
def test_a_number_of_slices_that_none_is_is_refused(parts: str) -> None:
    ir = f'define void @k() {BODY}\n!triton.dpu = !{{!0}}\n!0 = !{{!"parts", !"{parts}"}}\n'
    with pytest.raises(SignatureError, match="slices"):
        parse(ir)
