"""Flow A: a program in the dpu dialect, from MLIR to a DPU, with the command lines that TritonPIM documents.

The command lines run unchanged, in a copy of the folder that is at /mnt/host_cwd in the container. The host program
checks every element of the result and the memory after it; a test shows that it detects errors.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from flows import Folder
from foundry_core.codegen.typed import check_text

LLVM = "third_party/upmem_llvm"

LOWER = (
    f"{LLVM}/llvm-project/build/bin/mlir-opt dpu/vec_add.mlir --convert-dpu-to-llvm -o bin/vec_add_llvm.mlir",
    f"{LLVM}/llvm-project/build/bin/mlir-translate --mlir-to-llvmir bin/vec_add_llvm.mlir -o bin/vec_add.ll",
)
COMPILE = (
    "dpu-upmem-dpurte-clang -O2 -g0 -x ir -c /mnt/host_cwd/bin/vec_add.ll -o /mnt/host_cwd/bin/vec_add.o",
    "dpu-upmem-dpurte-clang -O2 -g0 -c /mnt/host_cwd/dpu/vec_add_args.c -o /mnt/host_cwd/bin/vec_add_args.o",
    "/upmem-sdk-2023.1.0/bin/llvm-objcopy --remove-section=.eh_frame /mnt/host_cwd/bin/vec_add.o",
    "/upmem-sdk-2023.1.0/bin/llvm-objcopy --remove-section=.eh_frame /mnt/host_cwd/bin/vec_add_args.o",
)
LINK = (
    "dpu-upmem-dpurte-clang{tasklets} /mnt/host_cwd/bin/vec_add.o /mnt/host_cwd/bin/vec_add_args.o"
    " -o /mnt/host_cwd/bin/vec_add"
)
HOST = (
    "cc -O2 -std=c11 -Wall -Wextra -o /mnt/host_cwd/bin/vec_add_host /mnt/host_cwd/host/vec_add_host.c"
    " `dpu-pkg-config --cflags --libs dpu` -DNR_DPUS={dpus}"
)


def prepared(place: Path) -> Folder:
    folder = Folder(place)
    (folder.path / "bin").mkdir()
    # In the container, the repository's link points there.
    (folder.path / LLVM).symlink_to(Path(sys.prefix, "upmem_llvm"))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return prepared(tmp_path)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """Return a folder in which the objects are built from the unchanged files."""
    folder = prepared(tmp_path_factory.mktemp("flow_a"))
    make_objects(folder)
    return folder


def make_objects(folder: Folder) -> None:
    for line in (*LOWER, *COMPILE):
        assert folder.output(line) == ""


def link(folder: Folder, tasklets: int | None, dpus: int) -> None:
    flag = f" -DNR_TASKLETS={tasklets}" if tasklets else ""
    assert folder.output(LINK.format(tasklets=flag)) == ""
    assert folder.output(HOST.format(dpus=dpus)) == ""


@pytest.mark.parametrize("dpus", [1, 3])
@pytest.mark.parametrize("tasklets", [None, 11, 16, 24])
def test_the_documented_command_lines_add_any_number_of_elements(compiled: Folder, tasklets: int | None, dpus: int):
    link(compiled, tasklets, dpus)
    for n in (0, 1, 2, 7, 50, 512, 513, 5000, 100000):
        output = compiled.output(f"/mnt/host_cwd/bin/vec_add_host {n}")
        # Each DPU gets the same even number of elements. DPUs that get none do not work.
        part = -(-n // dpus) + -(-n // dpus) % 2
        assert output == f"vec_add: {n} elements on {-(-n // part) if n else 0} of {dpus} DPUs: correct\n"
    output = compiled.output("/mnt/host_cwd/bin/vec_add_host")
    assert output == f"vec_add: 512 elements on {dpus} of {dpus} DPUs: correct\n"


def test_the_ir_is_read_by_llvm_13_and_14_and_names_the_dpu(compiled: Folder):
    ir = (compiled.path / "bin/vec_add.ll").read_text()
    check_text(ir, majors=(13, 14))
    assert 'target triple = "dpu-upmem-dpurte"' in ir
    assert "define i32 @main()" in ir


def test_nothing_of_eh_frame_is_in_the_program(compiled: Folder):
    link(compiled, None, 1)
    output = compiled.output("/upmem-sdk-2023.1.0/bin/llvm-readelf -lS /mnt/host_cwd/bin/vec_add")
    assert ".text" in output
    assert ".eh_frame" not in output


@pytest.mark.parametrize(
    ("right", "wrong", "n", "complaint"),
    [
        ("%sum = arith.addi %x_v, %y_v", "%sum = arith.subi %x_v, %y_v", 50, "50 of 50 elements wrong"),
        ("%whole = arith.andi %bytes, %not_7", "%whole = arith.addi %words, %c0", 7, "(behind the end)"),
        ("scf.for %i = %c0 to", "scf.for %i = %c1 to", 7, "elements wrong"),
    ],
)
def test_the_host_program_notices_what_is_wrong(folder: Folder, right: str, wrong: str, n: int, complaint: str):
    program = folder.path / "dpu/vec_add.mlir"
    text = program.read_text()
    assert text.count(right) == 1
    program.write_text(text.replace(right, wrong))
    make_objects(folder)
    link(folder, 4, 1)
    assert complaint in folder.output(f"/mnt/host_cwd/bin/vec_add_host {n}", status=1)


@pytest.mark.parametrize("n", ["x", "-1", "", "1 2", "99999999999"])
def test_the_host_program_says_how_it_is_used(compiled: Folder, n: str):
    compiled.output(HOST.format(dpus=1))
    argument = n if " " in n else f"'{n}'"
    assert "usage: vec_add_host [n]" in compiled.output(f"/mnt/host_cwd/bin/vec_add_host {argument}", status=1)


def test_more_elements_than_a_dpu_has_room_for_are_refused(compiled: Folder):
    link(compiled, 16, 1)
    output = compiled.output("/mnt/host_cwd/bin/vec_add_host 6000000", status=1)
    assert "do not fit" in output
    assert "NR_DPUS" in output


TOGETHER = """
// Each tasklet takes memory from the heap and leaves its number there; after the barrier tasklet 0 adds what all left.
module {
  llvm.mlir.global external @RESULT(0 : i32) {addr_space = 0 : i32, section = ".dpu_host", alignment = 8 : i64} : i32
  llvm.mlir.global internal @left() {addr_space = 0 : i32, alignment = 8 : i64} : !llvm.array<24 x ptr>
  llvm.mlir.global external @NR_TASKLETS() {addr_space = 0 : i32} : i8
  llvm.func @mem_alloc(i32) -> !llvm.ptr
  func.func @main() -> i32 {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %bytes = arith.constant 1400 : i32
    %hundred = arith.constant 100 : i32
    %tid = dpu.tid : i32
    %is_first = arith.cmpi eq, %tid, %zero : i32
    scf.if %is_first {
      dpu.mem_reset
    }
    dpu.barrier_wait {sym = "together"}
    %own = llvm.call @mem_alloc(%bytes) : (i32) -> !llvm.ptr
    %value = arith.addi %tid, %hundred : i32
    llvm.store %value, %own : i32, !llvm.ptr
    %left = llvm.mlir.addressof @left : !llvm.ptr
    %at = llvm.getelementptr %left[0, %tid] : (!llvm.ptr, i32) -> !llvm.ptr, !llvm.array<24 x ptr>
    llvm.store %own, %at : !llvm.ptr, !llvm.ptr
    dpu.barrier_wait {sym = "together"}
    scf.if %is_first {
      %number_at = llvm.mlir.addressof @NR_TASKLETS : !llvm.ptr
      %number = llvm.ptrtoint %number_at : !llvm.ptr to i32
      %sum = scf.for %i = %zero to %number step %one iter_args(%so_far = %zero) -> (i32) : i32 {
        %from = llvm.getelementptr %left[0, %i] : (!llvm.ptr, i32) -> !llvm.ptr, !llvm.array<24 x ptr>
        %there = llvm.load %from : !llvm.ptr -> !llvm.ptr
        %number_there = llvm.load %there : !llvm.ptr -> i32
        %next = arith.addi %so_far, %number_there : i32
        scf.yield %next : i32
      }
      %result = llvm.mlir.addressof @RESULT : !llvm.ptr
      llvm.store %sum, %result : i32, !llvm.ptr
    }
    return %zero : i32
  }
}
"""
BARRIER = """
#include <barrier.h>
BARRIER_INIT(together, NR_TASKLETS);
"""
READER = """
#include <dpu.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    struct dpu_set_t set, dpu;
    (void)argc;
    DPU_ASSERT(dpu_alloc(1, NULL, &set));
    DPU_ASSERT(dpu_load(set, argv[1], NULL));
    for (int launch = 0; launch < 3; launch++) {
        int result = 77;
        DPU_ASSERT(dpu_copy_to(set, "RESULT", 0, &result, sizeof result));
        DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));
        DPU_FOREACH(set, dpu) DPU_ASSERT(dpu_copy_from(dpu, "RESULT", 0, &result, sizeof result));
        printf("%d ", result);
    }
    DPU_ASSERT(dpu_free(set));
    return 0;
}
"""


@pytest.mark.parametrize("tasklets", [1, 2, 16, 24])
def test_tasklets_wait_for_each_other_and_share_the_heap(folder: Folder, tasklets: int):
    (folder.path / "together.mlir").write_text(TOGETHER)
    (folder.path / "barrier.c").write_text(BARRIER)
    (folder.path / "reader.c").write_text(READER)
    for line in (
        "dpu-mlir-opt together.mlir --convert-dpu-to-llvm | dpu-mlir-translate --mlir-to-llvmir -o together.ll",
        f"dpu-upmem-dpurte-clang -DNR_TASKLETS={tasklets} -O2 -x ir together.ll -x c barrier.c -o together",
        "cc -std=c11 -o reader reader.c `dpu-pkg-config --cflags --libs dpu`",
    ):
        folder.output(line)
    # Three launches: the memory of 16 tasklets does not fit into WRAM three times.
    assert folder.output("./reader together").split() == 3 * [str(sum(range(100, 100 + tasklets)))]


@pytest.mark.parametrize(("has_dialect", "used"), [(True, "built"), (False, "ours")])
def test_an_llvm_that_was_built_is_used_if_it_has_the_dialect(folder: Folder, has_dialect: bool, used: str):
    built = folder.path / "built"
    built.mkdir()
    knows = "--convert-dpu-to-llvm" if has_dialect else "--another-pass"
    for name in ("opt", "mlir-opt", "mlir-translate"):
        script = f'#!/bin/sh\n[ "$1" != --help ] || exec echo "  {knows}  - a pass"\necho "built: $*"\n'
        (built / name).write_text(script)
        (built / name).chmod(0o755)
    output = folder.output(f"export UPMEM_OPT={built}/opt; {LOWER[0]} && {LOWER[1]}")
    words = [line.partition("/bin/")[2].partition(" ")[2] for line in LOWER]
    assert output == ("".join(f"built: {line}\n" for line in words) if used == "built" else "")
    assert (folder.path / "bin/vec_add.ll").exists() == (used == "ours")
