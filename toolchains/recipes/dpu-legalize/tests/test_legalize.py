"""What dpu-legalize writes: DMAs, scratch memory and loads of ids, in LLVM 12's dialect; and what its copies do.

Copies run on a DPU, by the SDK's compiler and host library, emulated or not.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
LAYOUT = "e-m:e-p:32:32-i1:8:32-i8:8:32-i16:16:32-i32:32:32-i64:64:64-n32"
HEAD = f'target datalayout = "{LAYOUT}"\ntarget triple = "dpu-upmem-dpurte"\n'
READERS = (11, 13, 14)


def opt() -> str:
    """Return the opt under test: the one that UPMEM_OPT names, else the first on PATH, as the plugin finds it."""
    program = os.environ.get("UPMEM_OPT") or shutil.which("opt")
    assert program, "UPMEM_OPT is not set, and no opt is on PATH"
    return program


def reader(version: int) -> str | None:
    """Return llvm-as of that version, if it is installed."""
    return shutil.which(f"llvm-as-{version}") or shutil.which(f"/usr/lib/llvm-{version}/bin/llvm-as")


def run(command: list[str], text: str = "", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command with a text as input; return its status, output and errors."""
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False, cwd=cwd, timeout=300)


def legalize(ir: str, *options: str) -> str:
    """Return what opt makes of a module without triple and layout."""
    done = run([opt(), "-dpu-legalize", *options, "-S", "-", "-o", "-"], HEAD + ir)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refusal(ir: str, *options: str) -> str:
    """Return what opt says to a module that it must refuse."""
    done = run([opt(), "-dpu-legalize", *options, "-S", "-", "-o", "-"], ir)
    assert done.returncode != 0, done.stdout
    assert not done.stdout
    return done.stderr


def body(ir: str, name: str) -> str:
    """Return the text of one function."""
    function = re.search(rf"^define [^\n]*@{name}\(.*?^}}$", ir, re.DOTALL | re.MULTILINE)
    assert function, f"no function {name}"
    return function[0]


COPY_IN = """declare void @llvm.memcpy.p0i8.p255i8.i32(i8*, i8 addrspace(255)*, i32, i1)
define void @kernel(i8* %w, i8 addrspace(255)* %m, i32 %n) {{
  {before}
  call void @llvm.memcpy.p0i8.p255i8.i32(
      i8* align {wram} %w, i8 addrspace(255)* align {mram} %m, i32 {length}, i1 false)
  ret void
}}
"""
COPY_OUT = """declare void @llvm.memcpy.p255i8.p0i8.i32(i8 addrspace(255)*, i8*, i32, i1)
define void @kernel(i8* %w, i8 addrspace(255)* %m, i32 %n) {{
  {before}
  call void @llvm.memcpy.p255i8.p0i8.i32(
      i8 addrspace(255)* align {mram} %m, i8* align {wram} %w, i32 {length}, i1 false)
  ret void
}}
"""


def copy(template: str, length: int | str, wram: int = 8, mram: int = 8, before: str = "") -> str:
    return body(legalize(template.format(length=length, wram=wram, mram=mram, before=before)), "kernel")


def dmas(text: str, name: str) -> list[int]:
    """Return the constant lengths of the DMAs in a text."""
    return [int(length) for length in re.findall(rf"@llvm\.dpu\.{name}\(.*, i32 (\d+)\)", text)]


@pytest.mark.parametrize("template, name", [(COPY_IN, "ldma"), (COPY_OUT, "sdma")])
@pytest.mark.parametrize(
    "length, pieces",
    [
        (8, [8]),
        (2048, [2048]),
        (2056, [2048, 8]),
        (5000, [2048, 2048, 904]),
        (8192, [2048] * 4),
        (0, []),
    ],
)
def test_an_aligned_copy_of_known_length_is_dmas(template: str, name: str, length: int, pieces: list[int]) -> None:
    text = copy(template, length)
    assert dmas(text, name) == pieces
    assert text.count("call") == len(pieces)


def test_the_pieces_follow_each_other() -> None:
    text = copy(COPY_IN, 5000)
    assert re.findall(r"getelementptr i8, i8\* %w, i32 (\d+)", text) == ["2048", "4096"]
    assert re.findall(r"getelementptr i8, i8 addrspace\(255\)\* %m, i32 (\d+)", text) == ["2048", "4096"]


@pytest.mark.parametrize("template, name", [(COPY_IN, "in"), (COPY_OUT, "out")])
@pytest.mark.parametrize(
    "length, wram, mram",
    [(5, 8, 8), (12, 8, 8), (8, 4, 8), (8, 8, 4), (2048, 1, 1), ("%n", 8, 8), ("%n", 4, 8)],
)
def test_a_copy_not_known_to_be_whole_words_asks_at_run_time(
    template: str, name: str, length: int | str, wram: int, mram: int
) -> None:
    text = copy(template, length, wram, mram)
    assert f"call void @__triton_copy_{name}(" in text
    assert "llvm.dpu" not in text


@pytest.mark.parametrize("template, name", [(COPY_IN, "in"), (COPY_OUT, "out")])
def test_whole_words_of_unknown_number_are_cut_at_run_time(template: str, name: str) -> None:
    text = copy(template, "%words", before="%words = shl i32 %n, 3")
    assert f"call void @__triton_copy_{name}_words(" in text


@pytest.mark.parametrize("template, name", [(COPY_IN, "ldma"), (COPY_OUT, "sdma")])
def test_whole_words_that_one_dma_holds_are_one(template: str, name: str) -> None:
    # 8 to 1024: what the bits of the length show.
    text = copy(template, "%length", before="%some = and i32 %n, 1016\n  %length = or i32 %some, 8")
    assert f"@llvm.dpu.{name}(i8* %w, i8 addrspace(255)* %m, i32 %length)" in text


def test_a_copy_of_possibly_nothing_is_not_one_dma() -> None:
    # On hardware, a DMA of 0 bytes moves 2048.
    text = copy(COPY_IN, "%length", before="%length = and i32 %n, 1016")
    assert "llvm.dpu.ldma" not in text


def test_a_long_copy_of_known_length_is_a_call() -> None:
    assert "call void @__triton_copy_in_words(" in copy(COPY_IN, 8200)


def test_a_stack_slot_is_known_to_be_aligned() -> None:
    ir = """declare void @llvm.memcpy.p0i8.p255i8.i32(i8*, i8 addrspace(255)*, i32, i1)
define void @kernel(i8 addrspace(255)* %m) {
  %slot = alloca [16 x i8], align 1
  %w = bitcast [16 x i8]* %slot to i8*
  call void @llvm.memcpy.p0i8.p255i8.i32(i8* %w, i8 addrspace(255)* align 8 %m, i32 16, i1 false)
  ret void
}
"""
    text = body(legalize(ir), "kernel")
    assert dmas(text, "ldma") == [16]
    assert "alloca [16 x i8], align 8" in text


def test_a_memmove_is_a_copy() -> None:
    ir = COPY_IN.format(length=16, wram=8, mram=8, before="").replace("llvm.memcpy", "llvm.memmove")
    assert dmas(body(legalize(ir), "kernel"), "ldma") == [16]


def test_only_functions_that_are_called_come_in() -> None:
    legal = legalize(COPY_IN.format(length=12, wram=8, mram=8, before=""))
    assert "define internal void @__triton_copy_in(" in legal
    assert "define internal void @__triton_move(" in legal
    assert "@__triton_copy_out" not in legal
    assert "@__triton_mram_lock" not in legal


def test_partial_words_are_written_under_the_lock() -> None:
    legal = legalize(COPY_OUT.format(length=12, wram=8, mram=8, before=""))
    text = body(legal, "__triton_copy_out")
    called = ("__triton_mram_lock", "llvm.dpu.ldma", "llvm.dpu.sdma", "__triton_mram_unlock")
    places = [text.index(f"@{name}(") for name in called]
    assert places == sorted(places)
    assert "declare void @__triton_mram_lock()" in legal


SLOTS = """define void @kernel(i32 %n) {{
  {slots}
  {uses}
  ret void
}}
"""


def slots(*sizes: int) -> str:
    return SLOTS.format(
        slots="\n  ".join(f"%s{i} = alloca [{size} x i8], align 1" for i, size in enumerate(sizes)),
        uses="\n  ".join(
            f"%p{i} = getelementptr [{size} x i8], [{size} x i8]* %s{i}, i32 0, i32 %n\n  store i8 {i}, i8* %p{i}"
            for i, size in enumerate(sizes)
        ),
    )


def test_up_to_64_bytes_stay_on_the_stack() -> None:
    legal = legalize(slots(40, 24))
    assert "__triton_scratch" not in legal
    assert legal.count("alloca") == 2
    assert legal.count("align 8") == 2


def test_large_slots_go_to_wram_with_one_row_per_tasklet() -> None:
    legal = legalize(slots(40, 20, 100))
    # Each begins at a multiple of 8: 40 + 24 + 104.
    assert "@__triton_scratch_kernel = internal global [16 x [168 x i8]] undef, align 8" in legal
    assert "alloca" not in legal
    places = re.findall(r"getelementptr inbounds .* @__triton_scratch_kernel, i32 0, i32 (%\S+), i32 (\d+)", legal)
    assert [offset for _, offset in places] == ["0", "40", "64"]
    assert f"{places[0][0]} = call i32 @llvm.dpu.tid.i32()" in legal


def test_the_number_of_tasklets_is_an_option() -> None:
    assert "internal global [11 x [104 x i8]]" in legalize(slots(100), "-dpu-nr-tasklets=11")


@pytest.mark.parametrize("number", [0, 25])
def test_a_number_of_tasklets_that_no_dpu_has_is_refused(number: int) -> None:
    assert "1 to 24 tasklets" in refusal(HEAD + slots(100), f"-dpu-nr-tasklets={number}")


def test_functions_have_scratch_of_their_own() -> None:
    legal = legalize(slots(100) + slots(80).replace("@kernel", "@other"))
    assert "@__triton_scratch_kernel = internal global [16 x [104 x i8]]" in legal
    assert "@__triton_scratch_other = internal global [16 x [80 x i8]]" in legal


def test_lifetimes_of_moved_slots_are_forgotten() -> None:
    ir = """declare void @llvm.lifetime.start.p0i8(i64, i8*)
define void @kernel() {
  %s = alloca [100 x i8]
  %p = bitcast [100 x i8]* %s to i8*
  call void @llvm.lifetime.start.p0i8(i64 100, i8* %p)
  store i8 1, i8* %p
  ret void
}
"""
    assert "call void @llvm.lifetime" not in legalize(ir)


def test_ids_are_loads() -> None:
    ir = """declare i32 @__triton_program_id(i32)
declare i32 @__triton_num_programs(i32)
define i32 @kernel() {
  %y = call i32 @__triton_program_id(i32 1)
  %z = call i32 @__triton_num_programs(i32 2)
  %r = add i32 %y, %z
  ret i32 %r
}
"""
    legal = legalize(ir)
    assert "@__triton_program = external global [24 x [4 x i32]], align 4" in legal
    assert "@__triton_grid = external global [3 x i32], align 4" in legal
    tasklet = re.search(r"(%\S+) = call i32 @llvm\.dpu\.tid\.i32\(\)", legal)
    assert tasklet
    assert f"@__triton_program, i32 0, i32 {tasklet[1]}, i32 1" in legal
    assert "@__triton_grid, i32 0, i32 2" in legal
    assert "__triton_program_id" not in legal
    assert "__triton_num_programs" not in legal


def test_the_entry_points_own_declarations_are_used() -> None:
    ir = """@__triton_program = external global [24 x [4 x i32]], align 4
declare i32 @__triton_program_id(i32)
define i32 @kernel() {
  %x = call i32 @__triton_program_id(i32 0)
  ret i32 %x
}
"""
    assert legalize(ir).count("@__triton_program = ") == 1


EVERYTHING = (
    COPY_IN.format(length="%n", wram=1, mram=1, before="").replace("@kernel", "@first")
    + COPY_OUT.format(length="%n", wram=1, mram=1, before="").replace("@kernel", "@second")
    + slots(100)
    + """declare i32 @__triton_program_id(i32)
define i32 @third() {
  %x = call i32 @__triton_program_id(i32 0)
  ret i32 %x
}
"""
)


@pytest.mark.parametrize("version", READERS)
def test_readers_on_both_sides_of_12_take_it(version: int) -> None:
    program = reader(version)
    if program is None and version == 11:
        pytest.skip("no LLVM 11 here: Debian 12 has none")
    assert program, f"no llvm-as of LLVM {version}"
    done = run([program, "-o", "/dev/null", "-"], legalize(EVERYTHING))
    assert done.returncode == 0, done.stderr


def test_triple_and_layout_stay() -> None:
    assert legalize(EVERYTHING).count(HEAD) == 1


def test_attributes_after_12_are_taken_off() -> None:
    ir = "define void @kernel(i8* %p) nosanitize_coverage vscale_range(1,2) nounwind {\n  ret void\n}\n"
    legal = legalize(ir)
    assert "nounwind" in legal
    assert "nosanitize_coverage" not in legal
    assert "vscale_range" not in legal


def test_the_new_and_the_legacy_pass_are_one() -> None:
    ir = HEAD + EVERYTHING
    legacy = run([opt(), "-dpu-legalize", "-S", "-", "-o", "-"], ir)
    new = run([opt(), "-passes=dpu-legalize", "-S", "-", "-o", "-"], ir)
    assert legacy.returncode == new.returncode == 0
    assert legacy.stdout == new.stdout


def test_legalising_twice_changes_nothing() -> None:
    once = legalize(EVERYTHING).removeprefix("; ModuleID = '<stdin>'\n")
    again = run([opt(), "-dpu-legalize", "-S", "-", "-o", "-"], once).stdout.removeprefix("; ModuleID = '<stdin>'\n")
    assert again == once


PROGRAM_ID = """declare i32 @__triton_program_id(i32)
define i32 @k(i32 %a) {{
  %x = call i32 @__triton_program_id(i32 {axis})
  ret i32 %x
}}
"""


@pytest.mark.parametrize(
    "what, ir, message",
    [
        ("an axis beyond 2", PROGRAM_ID.format(axis="3"), "must be 0, 1 or 2"),
        ("an axis known at run time only", PROGRAM_ID.format(axis="%a"), "must be 0, 1 or 2"),
        (
            "an alloca of unknown size",
            "define void @k(i32 %n) {\n  %s = alloca i8, i32 %n\n  store i8 0, i8* %s\n  ret void\n}\n",
            "size that is not constant",
        ),
        (
            "a fill of MRAM",
            "declare void @llvm.memset.p255i8.i32(i8 addrspace(255)*, i8, i32, i1)\n"
            "define void @k(i8 addrspace(255)* %m) {\n"
            "  call void @llvm.memset.p255i8.i32(i8 addrspace(255)* %m, i8 0, i32 8, i1 false)\n  ret void\n}\n",
            "not between WRAM (0) and MRAM (255)",
        ),
    ],
)
def test_unsupported_ir_is_refused_by_dpu_legalize(what: str, ir: str, message: str) -> None:
    assert message in refusal(HEAD + ir), what


def test_another_layout_is_refused() -> None:
    message = refusal('target datalayout = "e-p:64:64"\ndefine void @k() {\n  ret void\n}\n')
    assert "a DPU's is" in message


def test_opaque_pointers_are_refused_in_llvm_12s_words() -> None:
    assert "expected type" in refusal(HEAD + "define void @k(ptr %p) {\n  ret void\n}\n")


@pytest.mark.parametrize("tasklets", [1, 16])
def test_copies_of_any_length_and_alignment_move_their_bytes_and_no_others(tmp_path: Path, tasklets: int) -> None:
    libraries = run(["dpu-pkg-config", "--cflags", "--libs", "dpu"])
    assert libraries.returncode == 0, libraries.stderr
    compile_program = ["dpu-upmem-dpurte-clang", "-O2", "-Wall", "-Wextra", f"-DNR_TASKLETS={tasklets}"]
    for command in (
        [opt(), "-dpu-legalize", "-S", str(HERE / "copies.ll"), "-o", "legal.ll"],
        [*compile_program, str(HERE / "copies_device.c"), "legal.ll", "-o", "copies"],
        ["cc", "-std=gnu11", "-O1", str(HERE / "copies_host.c"), "-o", "host", *shlex.split(libraries.stdout)],
    ):
        built = run(command, cwd=tmp_path)
        assert built.returncode == 0, built.stderr
    done = run(["./host"], cwd=tmp_path)
    cases = 2 * (64 * 37 + 24 + 12) + 37 * tasklets
    assert (done.stdout, done.returncode) == (f"cases {cases} wrong 0\n", 0), done.stderr
