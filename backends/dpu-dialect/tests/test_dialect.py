"""The dpu dialect and its two command-line programs: what they accept, what they refuse, what they write."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from foundry_core.codegen.tools import tool
from foundry_core.codegen.typed import check_text

# These tests use no kernel of Triton's.
pytestmark = pytest.mark.any_release

ALL = """\
func.func @f(%w: !llvm.ptr, %m: !llvm.ptr<255>, %n: i32) -> i32 {
  %size = arith.constant 2048 : i32
  %r = dpu.tid : i32
  dpu.ldma %w, %m, %size : !llvm.ptr, !llvm.ptr<255>, i32
  dpu.sdma %w, %m, %n : !llvm.ptr, !llvm.ptr<255>, i32
  dpu.ldma_unchecked %w, %m, %n : !llvm.ptr, !llvm.ptr<255>, i32
  dpu.sdma_unchecked %w, %m, %n : !llvm.ptr, !llvm.ptr<255>, i32
  dpu.mem_reset
  dpu.barrier_wait
  dpu.barrier_wait {sym = "other"}
  %args = dpu.input_args {sym = "DPU_INPUT_ARGUMENTS"} : !llvm.ptr
  %more = dpu.input_args : !llvm.ptr
  return %r : i32
}
"""


def run(program: str, *arguments: str, text: str = "", folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.prefix, "bin", program), *arguments], input=text, capture_output=True, text=True, cwd=folder
    )


def opt(*arguments: str, text: str = ALL) -> str:
    """Return the output of dpu-mlir-opt for a text on standard input."""
    done = run("dpu-mlir-opt", *arguments, text=text)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(text: str, folder: Path, *arguments: str) -> str:
    """Return the error for a file in.mlir. No output may have been written."""
    (folder / "in.mlir").write_text(text)
    done = run("dpu-mlir-opt", "in.mlir", "-o", "out.mlir", *arguments, folder=folder)
    assert done.returncode == 1
    assert done.stdout == ""
    assert not (folder / "out.mlir").exists()
    return done.stderr


def using(line: str) -> str:
    """Return a function with a line of the dialect. It is line 4 and begins in column 3."""
    return (
        "func.func @f(%w: !llvm.ptr, %m: !llvm.ptr<255>, %n: i32, %l: i64) {\n"
        "  // dpu.tid : nothing here\n"
        "  %c = llvm.mlir.constant(24 : i32) : i32\n"
        f"  {line}\n  return\n}}\n"
    )


def test_each_operation_becomes_what_the_table_says():
    lowered = opt("--convert-dpu-to-llvm")
    calls = re.findall(r"llvm\.(?:call @|mlir\.addressof @)([\w.]+)", lowered)
    assert calls == [
        "llvm.dpu.tid.i32",
        "llvm.dpu.ldma",
        "llvm.dpu.sdma",
        "llvm.dpu.ldma",
        "llvm.dpu.sdma",
        "mem_reset",
        "dpu_barrier",
        "barrier_wait",
        "other",
        "barrier_wait",
        "DPU_INPUT_ARGUMENTS",
        "DPU_INPUT_ARGUMENTS",
    ]
    assert "llvm.func @llvm.dpu.ldma(!llvm.ptr, !llvm.ptr<255>, i32)" in lowered
    assert lowered.count("llvm.mlir.global external @DPU_INPUT_ARGUMENTS()") == 1
    assert "dpu." not in lowered.replace("llvm.dpu.", "")
    assert not re.search(r"\b(func|arith)\.", lowered.replace("llvm.func", ""))


def test_lowered_dialect_is_ir_that_llvm_13_and_14_read():
    done = run("dpu-mlir-translate", "--mlir-to-llvmir", text=opt("--convert-dpu-to-llvm"))
    assert done.returncode == 0, done.stderr
    check_text(done.stdout, majors=(13, 14))
    assert "call void @llvm.dpu.ldma(i8* %arg0, i8 addrspace(255)* %arg1, i32 2048)" in done.stdout
    assert "call void @barrier_wait(i8* @dpu_barrier)" in done.stdout
    assert "declare i32 @llvm.dpu.tid.i32()" in done.stdout


def test_printed_dialect_parses_back_to_the_same_text():
    once = opt()
    assert opt(text=once) == once
    for line in ALL.splitlines()[7:10]:
        assert line.replace("  ", "    ") in once
    generic = opt("--mlir-print-op-generic", text=once)
    assert '"dpu.barrier_wait"() {sym = "other"} : () -> ()' in generic
    assert opt(text=generic) == once


def test_an_operation_may_stand_on_several_lines_and_between_comments():
    spread = "dpu.ldma // where to\n    %w,\n    %m, %c // three\n    : !llvm.ptr,\n    !llvm.ptr<255>, i32"
    assert opt(text=using(spread)) == opt(text=using("dpu.ldma %w, %m, %c : !llvm.ptr, !llvm.ptr<255>, i32"))


def test_a_name_in_a_string_or_comment_is_no_operation():
    text = 'func.func @f() attributes {note = "dpu.tid : i32"} {\n  // %x = dpu.tid\n  return\n}\n'
    assert "dpu.tid : i32" in opt(text=text)


@pytest.mark.parametrize(
    ("line", "column", "complaint"),
    [
        ("dpu.ldma %w, %m, %c : !llvm.ptr<255>, !llvm.ptr, i32", None, "use of value"),
        ("dpu.ldma %m, %w, %c : !llvm.ptr<255>, !llvm.ptr, i32", 3, "'dpu.ldma' op the address in WRAM"),
        ("dpu.sdma %w, %w, %c : !llvm.ptr, !llvm.ptr, i32", 3, "'dpu.sdma' op the address in MRAM"),
        ("dpu.sdma %w, %m, %l : !llvm.ptr, !llvm.ptr<255>, i64", 3, "must be i32, but is i64"),
        ("dpu.ldma %w, %m : !llvm.ptr, !llvm.ptr<255>", 3, "custom op 'dpu.ldma' is written `dpu.ldma %wram, %mram"),
        ("dpu.ldma %w, %m, %c", 3, "is written"),
        ("%t = dpu.tid : i64", 8, "'dpu.tid' op the result must be i32, but is i64"),
        ("%t = dpu.tid", 8, "is written `%r = dpu.tid : i32`"),
        ("%t = dpu.input_args : i32", 8, "'dpu.input_args' op the result must be !llvm.ptr"),
        ("dpu.barrier_wait {sym = 3 : i32}", 3, "'dpu.barrier_wait' op"),
        ("dpu.nonsense %c : i32", 3, "custom op 'dpu.nonsense' is unknown"),
        ('"dpu.nonsense"() : () -> ()', 3, "unregistered operation 'dpu.nonsense'"),
        ("other.thing", 3, "Dialect `other' not found"),
        ("dpu.ldma %w, %m, %q : !llvm.ptr, !llvm.ptr<255>, i32", None, "use of undeclared SSA value name"),
    ],
)
def test_error_names_file_line_and_column(tmp_path: Path, line: str, column: int | None, complaint: str):
    output = refused(using(f"{line}\n  dpu.mem_reset"), tmp_path, "--convert-dpu-to-llvm")
    assert re.search(rf"^in\.mlir:4:{column or '[0-9]+'}: error: .*{re.escape(complaint)}", output, re.MULTILINE), (
        output
    )
    if column:
        shown = output.splitlines()
        caret = next(number for number, text in enumerate(shown) if text.strip() == "^")
        assert shown[caret] == " " * (column - 1) + "^"
        assert shown[caret - 1] == f"  {line}"


@pytest.mark.parametrize("size", [-8, 0, 4, 12, 2049, 2056, 4096])
@pytest.mark.parametrize("name", ["ldma", "sdma"])
def test_a_constant_size_that_no_dma_has_is_refused_unless_it_says_unchecked(tmp_path: Path, name: str, size: int):
    line = f"dpu.{name} %w, %m, %s : !llvm.ptr, !llvm.ptr<255>, i32"
    text = using(line).replace("%c = llvm.mlir.constant(24", f"%s = llvm.mlir.constant({size}")
    output = refused(text, tmp_path)
    assert re.match(rf"in\.mlir:4:3: error: 'dpu\.{name}' op a DMA moves .*, not {size}\n", output)
    assert "dpu." in opt(text=text.replace(f"dpu.{name} ", f"dpu.{name}_unchecked "))


@pytest.mark.parametrize("size", [8, 16, 2040, 2048])
def test_sizes_that_a_dma_has_pass(size: int):
    line = "dpu.ldma %w, %m, %s : !llvm.ptr, !llvm.ptr<255>, i32"
    assert f"{size} : i32" in opt(text=using(f"%s = arith.constant {size} : i32\n  {line}"))


def test_other_passes_run_before_and_after_in_their_order():
    # Only canonicalisation finds the constant size. A pass that runs after it checks the size; one before it does not.
    text = using(
        "%half = arith.constant 1021 : i32\n  %size = arith.addi %half, %half : i32\n"
        "  dpu.ldma %w, %m, %size : !llvm.ptr, !llvm.ptr<255>, i32"
    )
    for arguments in ([], ["--convert-dpu-to-llvm"], ["--convert-dpu-to-llvm", "--canonicalize"]):
        opt(*arguments, text=text)
    done = run("dpu-mlir-opt", "--canonicalize", "--convert-dpu-to-llvm", text=text)
    assert done.returncode == 1
    assert "<stdin>:6:3: error: 'dpu.ldma' op a DMA moves a multiple of 8 bytes, not 2042" in done.stderr
    unused = using("%a = llvm.add %n, %n : i32\n  dpu.mem_reset")
    assert "llvm.add" in opt("--convert-dpu-to-llvm", text=unused)
    assert "llvm.add" not in opt("--convert-dpu-to-llvm", "--canonicalize", text=unused)


def test_a_pass_pipeline_is_the_same_as_passes():
    options = opt("--cse", "--canonicalize=max-iterations=3", "--convert-dpu-to-llvm", "--canonicalize")
    pipeline = "builtin.module(cse,canonicalize{max-iterations=3}, convert-dpu-to-llvm,canonicalize)"
    assert opt(f"--pass-pipeline={pipeline}") == options
    assert opt("--pass-pipeline", pipeline) == options
    assert opt("--pass-pipeline=builtin.module(func.func(cse))") == opt("--cse")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--pass-pipeline=builtin.module(func.func(convert-dpu-to-llvm))"], "it cannot be nested"),
        (["--pass-pipeline=func.func(convert-dpu-to-llvm)"], "must be of the form builtin.module(...)"),
        (["--pass-pipeline=builtin.module(cse)", "--canonicalize"], "do not go together"),
        (["--no-such-thing"], "Unknown command line argument '--no-such-thing'"),
        (["--convert-dpu-to-llvm", "a.mlir", "b.mlir"], "Too many positional arguments"),
        (["--split-input-file"], "--split-input-file is not supported together with the dpu dialect"),
        (["--pass-pipeline"], "requires a value"),
        (["nowhere.mlir"], "cannot open input file 'nowhere.mlir': No such file or directory"),
        (["-o", "no/such/folder.mlir"], "cannot open output file 'no/such/folder.mlir'"),
    ],
)
def test_command_lines_that_cannot_be_carried_out_are_refused(tmp_path: Path, arguments: list[str], complaint: str):
    done = run("dpu-mlir-opt", *arguments, text=ALL, folder=tmp_path)
    assert done.returncode == 1
    assert done.stdout == ""
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr


def test_the_dialect_and_the_pass_are_in_what_the_program_says_of_itself():
    output = opt("--help")
    assert re.search(r"^ +--convert-dpu-to-llvm +- +\w", output, re.MULTILINE)
    assert re.search(r"^Available Dialects: .*\bdlti, dpu, emitc\b", output, re.MULTILINE)
    assert "USAGE: dpu-mlir-opt [options] <input file>" in output
    assert "dlti,dpu,emitc" in opt("--show-dialects")
    assert "--convert-dpu-to-llvm " in opt("--list-passes")
    assert "LLVM version 22" in opt("--version")


@pytest.mark.parametrize("arguments", [[], ["--canonicalize"], ["--mlir-print-op-generic"], ["--no-such-thing"]])
def test_dpu_mlir_opt_acts_as_mlir_opt_on_ir_without_the_dialect(tmp_path: Path, arguments: list[str]):
    text = "func.func @f(%x: i32) -> i32 {\n  %y = arith.addi %x, %x : i32\n  return %y : i32\n}\n"
    (tmp_path / "in.mlir").write_text(text)
    for source, stdin in (("in.mlir", ""), ("-", text)):
        own = run("dpu-mlir-opt", source, *arguments, text=stdin, folder=tmp_path)
        theirs = subprocess.run(
            [tool("mlir-opt"), source, *arguments], input=stdin, capture_output=True, text=True, cwd=tmp_path
        )
        assert (own.returncode, own.stdout) == (theirs.returncode, theirs.stdout)
        assert (own.stderr == "") == (theirs.stderr == "")


def test_files_are_read_and_written(tmp_path: Path):
    (tmp_path / "in.mlir").write_text(ALL)
    for arguments in (["in.mlir", "-o", "out.mlir"], ["-o=out.mlir", "in.mlir"], ["--o", "out.mlir", "in.mlir"]):
        done = run("dpu-mlir-opt", "-convert-dpu-to-llvm", *arguments, folder=tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert (tmp_path / "out.mlir").read_text() == opt("--convert-dpu-to-llvm")
        (tmp_path / "out.mlir").unlink()


def test_constants_that_are_not_the_dialects_pass_bit_for_bit():
    values = ["0x7F800001 : f32", "0xFFC12345 : f32", "0x7C01 : f16", "0x7FF0000000000001 : f64", "1.000000e-01 : f64"]
    lines = "\n  ".join(f"%v{number} = arith.constant {value}" for number, value in enumerate(values))
    dense = "dense<[1.000000e+00, 0x7F800001]> : vector<2xf32>"
    lowered = opt("--convert-dpu-to-llvm", text=using(f"{lines}\n  %d = arith.constant {dense}\n  dpu.mem_reset"))
    for value in values:
        assert f"llvm.mlir.constant({value})" in lowered
    assert dense in lowered


def test_programs_may_use_memref_and_unstructured_branches():
    lowered = opt(
        "--convert-dpu-to-llvm",
        text="""
          memref.global "private" @buffer : memref<256xi32> = uninitialized {alignment = 8}
          func.func @main() -> i32 {
            %buffer = memref.get_global @buffer : memref<256xi32>
            %index = memref.extract_aligned_pointer_as_index %buffer : memref<256xi32> -> index
            %address = arith.index_cast %index : index to i32
            %wram = llvm.inttoptr %address : i32 to !llvm.ptr
            %args = dpu.input_args {sym = "DPU_INPUT_ARGUMENTS"} : !llvm.ptr
            %from = llvm.load %args : !llvm.ptr -> i32
            %mram = llvm.inttoptr %from : i32 to !llvm.ptr<255>
            %bytes = arith.constant 1024 : i32
            dpu.ldma %wram, %mram, %bytes : !llvm.ptr, !llvm.ptr<255>, i32
            %tid = dpu.tid : i32
            %at = arith.index_cast %tid : i32 to index
            %value = memref.load %buffer[%at] : memref<256xi32>
            cf.br ^end(%value : i32)
          ^end(%result: i32):
            return %result : i32
          }""",
    )
    done = run("dpu-mlir-translate", "--mlir-to-llvmir", text=lowered)
    assert done.returncode == 0, done.stderr
    check_text(done.stdout, majors=(13, 14))
    assert "@DPU_INPUT_ARGUMENTS = external global i8, align 8" in done.stdout


def test_declarations_that_are_there_are_used():
    declarations = "llvm.func @mem_reset() -> !llvm.ptr\n"
    declarations += "llvm.mlir.global external @DPU_INPUT_ARGUMENTS() : !llvm.array<4 x i32>\n"
    lowered = opt("--convert-dpu-to-llvm", text=declarations + ALL)
    assert lowered.count("@mem_reset() -> !llvm.ptr") == 1
    assert "@DPU_INPUT_ARGUMENTS() {addr_space = 0 : i32} : !llvm.array<4 x i32>" in lowered
    assert lowered.count("llvm.mlir.global external @DPU_INPUT_ARGUMENTS") == 1


def test_a_symbol_that_is_something_else_is_refused(tmp_path: Path):
    output = refused("llvm.mlir.global external @mem_reset() : i32\n" + ALL, tmp_path, "--convert-dpu-to-llvm")
    assert "in.mlir: error: @mem_reset is an operation llvm.mlir.global, where llvm.func is needed" in output


def test_locations_survive_the_conversion(tmp_path: Path):
    (tmp_path / "in.mlir").write_text(ALL)
    done = run(
        "dpu-mlir-opt",
        "in.mlir",
        "--convert-dpu-to-llvm",
        "--mlir-print-debuginfo",
        "--mlir-print-local-scope",
        folder=tmp_path,
    )
    assert re.search(r'llvm\.call @mem_reset\(\).* loc\("in\.mlir":8:3\)', done.stdout)


def test_translation_refuses_what_llvm_12_lacks_by_name_and_line(tmp_path: Path):
    (tmp_path / "in.mlir").write_text(
        "llvm.func @f(%m: !llvm.ptr<255>) -> !llvm.ptr {\n"
        "  %w = llvm.addrspacecast %m : !llvm.ptr<255> to !llvm.ptr\n  llvm.return %w : !llvm.ptr\n}\n"
    )
    done = run("dpu-mlir-translate", "--mlir-to-llvmir", "in.mlir", "-o", "out.ll", folder=tmp_path)
    assert done.returncode == 1
    assert "llvm.addrspacecast at in.mlir:2 is not supported" in done.stderr
    assert not (tmp_path / "out.ll").exists()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (ALL, "there are dpu operations; run dpu-mlir-opt --convert-dpu-to-llvm first"),
        ("func.func @f() {\n  return\n}\n", "func.func at <stdin>:1 is not supported"),
        ("llvm.func @f() {\n  nonsense\n}\n", "<stdin>:2:3: error:"),
        ('module attributes {llvm.target_triple = "x86_64-linux"} {}', "is for x86_64-linux, not for dpu-upmem-dpurte"),
    ],
)
def test_translation_says_what_is_missing(text: str, complaint: str):
    done = run("dpu-mlir-translate", "--mlir-to-llvmir", "-", text=text)
    assert done.returncode == 1
    assert complaint in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_other_translations_are_mlir_translates():
    done = run("dpu-mlir-translate", "--import-llvm", text="define i32 @f(i32 %x) {\n  ret i32 %x\n}\n")
    assert done.returncode == 0
    assert "llvm.func @f(%arg0: i32) -> i32" in done.stdout
    assert "--mlir-to-llvmir" in run("dpu-mlir-translate", "--help").stdout


@pytest.mark.parametrize("name", ["mlir-opt", "mlir-translate"])
def test_dialect_tools_are_where_a_build_of_upmems_llvm_has_them(tmp_path: Path, name: str):
    (tmp_path / "link").symlink_to(Path(sys.prefix, "upmem_llvm"))
    program = tmp_path / "link/llvm-project/build/bin" / name
    done = subprocess.run([program, "--help"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout == run(f"dpu-{name}", "--help").stdout
