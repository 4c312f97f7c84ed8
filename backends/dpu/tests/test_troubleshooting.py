"""TritonPIM's list of errors: each of them cannot happen here, or its message says what is wrong and what to do."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from flows import ADD, Folder, of_type
from foundry_core.codegen.typed import check_text

GENERATE = "./scripts/generate_triton_wrapper.py --ir {ir} --out dpu/triton_wrapper.ll --kernel add_kernel"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """Return a folder in which flow B has written its IR."""
    folder = Folder(tmp_path_factory.mktemp("troubleshooting"))
    folder.output("./scripts/host_triton_ir.sh")
    return folder


@pytest.fixture(scope="module")
def ir(folder: Folder) -> str:
    return (folder.path / "bin/triton_add.ll").read_text()


def edited(folder: Folder, ir: str) -> str:
    """Return the error of the wrapper's generator for other IR, which it refuses."""
    (folder.path / "bin/edited.ll").write_text(ir)
    return folder.output(GENERATE.format(ir="bin/edited.ll"), status=1)


# "error: expected type in opt: LLVM 12 rejected opaque pointers."


def test_no_opaque_pointer_leaves_the_compiler(ir: str) -> None:
    assert not re.search(r"\bptr\b", ir)
    check_text(ir)


def test_ir_with_opaque_pointers_is_refused_with_its_line(folder: Folder, ir: str) -> None:
    output = edited(folder, ir.replace("float addrspace(255)* %a", "ptr addrspace(255) %a", 1))
    assert re.match(r"error: line \d+ has an opaque pointer, which LLVM 12 does not know \('expected type'\)", output)
    assert "TRITON_DPU_SKIP_LEGALIZE" in output


# "Cast between addresses of different address space is not supported: the IR still contains addrspacecast."


def test_no_cast_between_address_spaces_leaves_the_compiler(ir: str) -> None:
    assert "addrspacecast" not in ir


def test_ir_with_a_cast_between_address_spaces_is_refused_with_its_line(folder: Folder, ir: str) -> None:
    cast = "  %cast = addrspacecast float addrspace(255)* %a to float*\n  ret void\n"
    output = edited(folder, ir.replace("  ret void\n", cast, 1))
    assert "casts between address spaces, which DPUs cannot" in output
    assert "%cast = addrspacecast" in output


# "found end of file when expecting more instructions: you redirected only the preview output."


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
def test_ir_of_which_a_part_is_missing_is_refused(folder: Folder, ir: str, part: float) -> None:
    body = ir[: ir.index("\n}\n")]
    output = edited(folder, body[: int(len(body) * part)])
    assert "the file is truncated" in output or "defines no function" in output
    assert "--out" in output


def test_printed_text_in_the_place_of_ir_is_refused(folder: Folder) -> None:
    output = edited(folder, "wrote bin/triton_add.ll\n")
    assert output.startswith("error: the IR defines no function: it has 1 lines.")
    assert "write the file with the script's --out" in output


# "DPU Error (invalid mram access): MRAM offsets/lengths must be 8-byte aligned."


@pytest.mark.parametrize("type", ["*i8", "*i16", "*fp32"])
def test_any_length_is_transferred_aligned(folder: Folder, type: str) -> None:
    artifact = folder.packed(of_type(ADD, type))
    dtype = {"*i8": np.int8, "*i16": np.int16, "*fp32": np.float32}[type]
    for n in (1, 3, 5, 67, 1001):
        a = (np.arange(n) % 50).astype(dtype)
        for dpus in (1, 3):
            got = artifact.run(f"--nr-dpus {dpus} --arg 3={n}", {0: a, 1: a}, {2: dtype})
            assert np.array_equal(got[2], 2 * a)


def test_hardware_would_refuse_what_is_not_aligned(folder: Folder) -> None:
    # The tests above rely on this: the same transfer with 4 bytes less is a named error.
    host = (folder.path / "host/vec_add_triton_host.c").read_text()
    right = "part * sizeof *array, DPU_XFER_DEFAULT"
    assert right in host
    wrong = "part * sizeof *array - 4, DPU_XFER_DEFAULT"
    (folder.path / "host/unaligned.c").write_text(host.replace(right, wrong))
    line = "cc -std=c11 host/unaligned.c `dpu-pkg-config --cflags --libs dpu` -DBLOCK=1024 -o bin/unaligned"
    folder.output(f"./scripts/container_triton_run.sh && {line}")
    assert "DPU Error (invalid mram access)" in folder.output("bin/unaligned", status=1)


# "DPU Error (undefined symbol) or invalid memory symbol access: ensure triton_args.c is linked into the DPU binary."


def test_a_program_without_its_arguments_does_not_link(folder: Folder) -> None:
    clang = "dpu-upmem-dpurte-clang -O2 -g0"
    lines = (
        f"{clang} -x ir -c bin/triton_add.ll -o bin/kernel.o && {clang} -x ir -c dpu/triton_wrapper.ll -o bin/wrapper.o"
        f" && {clang} -DNR_TASKLETS=11 bin/kernel.o bin/wrapper.o -o bin/no_arguments"
    )
    done = subprocess.run(["bash", "-c", lines], cwd=folder.path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "undefined symbol: DPU_INPUT_ARGUMENTS" in done.stderr


def test_arguments_compiled_for_too_many_tasklets_are_refused(folder: Folder) -> None:
    line = "dpu-upmem-dpurte-clang -O2 -g0 -DNR_TASKLETS=24 -c dpu/triton_args.c -o bin/arguments.o"
    assert re.search(r"the kernel was legalised for \d+ tasklets", folder.output(line, status=1))


def test_tasklets_that_the_arguments_were_not_compiled_for_take_no_part(folder: Folder) -> None:
    clang = "dpu-upmem-dpurte-clang -O2 -g0"
    folder.output(
        f"./scripts/container_triton_run.sh; {clang} -x ir -c bin/triton_add.ll -o bin/kernel.o"
        f" && {clang} -x ir -c dpu/triton_wrapper.ll -o bin/wrapper.o"
        f" && {clang} -DNR_TASKLETS=2 -c dpu/triton_args.c -o bin/arguments.o"
        f" && {clang} -DNR_TASKLETS=11 bin/kernel.o bin/wrapper.o bin/arguments.o -o bin/triton_add"
    )
    assert "all right" in folder.output("bin/vec_add_triton_host 20000")


def test_a_program_of_another_kind_is_an_error_with_the_symbols_name(folder: Folder) -> None:
    (folder.path / "bin/other.c").write_text("int main(void) { return 0; }\n")
    folder.output("./scripts/container_triton_run.sh && dpu-upmem-dpurte-clang bin/other.c -o bin/triton_add")
    assert "DPU Error (undefined symbol)" in folder.output("bin/vec_add_triton_host", status=1)


# "PermissionError for .triton/cache: set TRITON_CACHE_DIR to a writable path."


@pytest.mark.parametrize(
    "line",
    [
        "./scripts/host_triton_ir.sh",
        "./scripts/host_triton_pack.py --artifact-dir ./artifacts/add --out-indices 2",
    ],
)
def test_a_home_that_cannot_be_written_to_does_not_matter(folder: Folder, tmp_path: Path, line: str) -> None:
    # Nothing can be created below a file, not even by root.
    home = tmp_path / "home"
    home.touch()
    folder.output(f"unset TRITON_CACHE_DIR; {line}", env={"HOME": str(home)})


def test_a_cache_that_cannot_be_written_to_is_named(folder: Folder, tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.touch()
    for line in ("./scripts/host_triton_ir.sh", "$TRITON_PY ./dpu_min_test.py --out bin/triton_add.ll"):
        output = folder.output(line, status=1, env={"TRITON_CACHE_DIR": f"{place}/cache"})
        assert output.startswith("error: ") and f"{place}/cache" in output and "Traceback" not in output
