"""Flow B: a Triton kernel, through its LLVM IR, to a DPU program, with the command lines that TritonPIM documents."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import triton
from flows import Folder
from foundry_core.codegen.typed import check_text

# "Quickstart (from Triton land)". Where Triton is installed, the exports are not needed.
QUICKSTART = """
$TRITON_PY ./dpu_min_test.py --out bin/triton_add.ll
$TRITON_PY scripts/generate_triton_wrapper.py \\
  --ir bin/triton_add.ll \\
  --out dpu/triton_wrapper.ll \\
  --kernel add_kernel \\
  --dpu-args-h dpu/triton_args.h \\
  --dpu-args-c dpu/triton_args.c \\
  --host-args-h host/triton_args.h
"""
RUN = "cd /mnt/host_cwd && ./scripts/container_triton_run.sh"
GENERATED = (
    "bin/triton_add.ll",
    "dpu/triton_wrapper.ll",
    "dpu/triton_args.h",
    "dpu/triton_args.c",
    "host/triton_args.h",
)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """Return a folder in which host_triton_ir.sh has run."""
    folder = Folder(tmp_path_factory.mktemp("flow_b"))
    folder.output("./scripts/host_triton_ir.sh")
    return folder


def test_the_script_writes_the_ir_and_what_goes_with_it(prepared: Folder) -> None:
    assert all((prepared.path / name).is_file() for name in GENERATED)


def test_kernel_and_entry_point_are_read_by_llvm_13_and_14(prepared: Folder) -> None:
    for name in ("bin/triton_add.ll", "dpu/triton_wrapper.ll"):
        check_text((prepared.path / name).read_text())


@pytest.mark.parametrize("dpus", [1, 4, 5])
def test_the_documented_lines_add_any_number_of_elements(prepared: Folder, dpus: int) -> None:
    def right(n: int) -> str:
        programs = -(-n // 32)
        # Each DPU gets the same number of programs. DPUs that get none do not work.
        working = -(-programs // -(-programs // dpus)) if n else 0
        return f"C = A + B: {n} elements, {programs} programs on {working} of {dpus} DPUs, all right\n"

    assert prepared.output(f"export NR_DPUS={dpus}; {RUN}") == right(50)
    for n in (0, 1, 10, 100, 6 * 32, 100_003):
        assert prepared.output(f"{RUN} {n}", env={"NR_DPUS": str(dpus)}) == right(n)


def test_without_nr_dpus_it_is_one(prepared: Folder) -> None:
    assert prepared.output(RUN) == "C = A + B: 50 elements, 2 programs on 1 of 1 DPUs, all right\n"


def test_the_quickstart_by_hand_makes_the_same_files(prepared: Folder, folder: Folder) -> None:
    folder.output(QUICKSTART)
    for name in GENERATED:
        assert (folder.path / name).read_text() == (prepared.path / name).read_text()
    assert "all right" in folder.output(f"{RUN} 1000")


def test_the_quickstarts_lines_work_where_triton_py_is_not_set(folder: Folder) -> None:
    folder.output(QUICKSTART, env={"TRITON_PY": ""})
    assert "all right" in folder.output(RUN)


def test_the_ir_ends_as_the_documented_check_expects(prepared: Folder) -> None:
    assert prepared.output("tail -n 5 bin/triton_add.ll").count("\n") == 5


def test_no_eh_frame_is_in_the_program(prepared: Folder) -> None:
    prepared.output(RUN)
    output = prepared.output("/upmem-sdk-2023.1.0/bin/llvm-readelf -lS bin/triton_add")
    assert ".text" in output
    assert ".eh_frame" not in output


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("bin/triton_add.ll", "fadd", "fsub"),
        # One block on each DPU, for any grid.
        ("dpu/triton_wrapper.ll", "%is.ours = icmp ult i32 %turn, %count", "%is.ours = icmp ult i32 %turn, 1"),
    ],
)
def test_the_host_program_notices_what_is_wrong(prepared: Folder, folder: Folder, name: str, right: str, wrong: str):
    for other in GENERATED:
        text = (prepared.path / other).read_text()
        (folder.path / other).parent.mkdir(exist_ok=True)
        if other == name:
            assert right in text
            text = text.replace(right, wrong)
        (folder.path / other).write_text(text)
    assert "elements are wrong" in folder.output(f"{RUN} 10000", status=1, env={"NR_DPUS": "2"})


def test_variables_choose_the_output_file_and_the_kernel(folder: Folder) -> None:
    env = {"OUT_LL": "elsewhere/add.ll", "KERNEL_NAME": "add_kernel"}
    folder.output("./scripts/host_triton_ir.sh", env=env)
    assert "all right" in folder.output(RUN, env=env)
    assert "no kernel sub_kernel; it defines: add_kernel" in folder.output(
        "./scripts/host_triton_ir.sh", status=1, env=env | {"KERNEL_NAME": "sub_kernel"}
    )


def test_without_legalisation_the_ir_is_there_to_look_at(folder: Folder) -> None:
    output = folder.output("./scripts/host_triton_ir.sh", env={"TRITON_DPU_SKIP_LEGALIZE": "1"})
    assert "cannot be linked" in output and "container_triton_run.sh" not in output
    ir = (folder.path / "bin/triton_add.ll").read_text()
    assert "call i32 @__triton_program_id(i32 0)" in ir
    output = folder.output(RUN, status=1)
    assert "is as it was before dpu-legalize: it uses @__triton_program_id" in output
    assert "unset TRITON_DPU_SKIP_LEGALIZE" in output


@pytest.mark.parametrize("env", [{}, {"TRITON_DPU_FORCE_LEGALIZE": "1"}])
def test_an_opt_that_fails_is_an_error(folder: Folder, tmp_path: Path, env: dict[str, str]) -> None:
    broken = tmp_path / "opt"
    broken.write_text("#!/bin/sh\necho error: expected type >&2\nexit 1\n")
    broken.chmod(0o755)
    env = env | {"UPMEM_OPT": str(broken), "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    output = folder.output("./scripts/host_triton_ir.sh", status=1, env=env)
    assert f"{broken} -dpu-legalize" in output
    assert "error: expected type" in output
    assert not (folder.path / "bin/triton_add.ll").exists()


def test_a_triton_that_is_not_there_is_said(folder: Folder) -> None:
    output = folder.output("./scripts/host_triton_ir.sh", status=1, env={"TRITON_SRC": "/path/to/triton"})
    assert output.splitlines() == [
        "error: TRITON_SRC=/path/to/triton has no python/triton/__init__.py: it is not a source tree of Triton",
        "  next: unset TRITON_SRC, to use the installed Triton",
    ]
    output = folder.output("./scripts/host_triton_ir.sh", status=1, env={"TRITON_PY": "/path/to/venv/bin/python"})
    assert output.splitlines() == [
        "error: TRITON_PY=/path/to/venv/bin/python is not a program",
        "  next: set TRITON_PY to a Python, or unset it to use python3",
    ]


@pytest.mark.parametrize("number", ["0", "abc", "-1"])
def test_invalid_number_of_dpus_is_refused_with_advice(folder: Folder, number: str) -> None:
    output = folder.output(RUN, status=1, env={"NR_DPUS": number})
    assert output.splitlines() == [
        f"error: NR_DPUS={number} is not a number of DPUs",
        "  next: NR_DPUS=1 ./scripts/container_triton_run.sh",
    ]


def test_run_before_anything_is_written_says_what_to_run(folder: Folder) -> None:
    output = folder.output(RUN, status=1)
    assert output.splitlines() == [
        "error: there is no bin/triton_add.ll",
        "  next: ./scripts/host_triton_ir.sh, which writes it",
    ]


def test_the_example_also_runs_from_python(folder: Folder, tmp_path: Path) -> None:
    output = folder.output(f"{sys.executable} dpu_min_test.py 5000", env={"TRITON_DEFAULT_BACKEND": "dpu"})
    assert output == "C = A + B: 5000 elements, all right\n"
    output = Folder(tmp_path / "again").output(f"{sys.executable} dpu_min_test.py -5", status=2)
    assert output.endswith("error: -5 is not a number of elements\n")


def test_local_dependencies_are_linked_and_exported(folder: Folder, tmp_path: Path) -> None:
    triton, llvm = tmp_path / "my triton", tmp_path / "upmem_llvm"
    (triton / "python/triton").mkdir(parents=True)
    opt = llvm / "llvm-project/build/bin/opt"
    opt.parent.mkdir(parents=True)
    opt.touch(0o755)
    line = f"source scripts/use_local_deps.sh --link --triton '{triton}' --upmem {llvm}"
    assert folder.output(f'{line} >/dev/null; echo "$TRITON_SRC,$UPMEM_OPT"') == f"{triton},{opt}\n"
    assert (folder.path / "third_party/triton").resolve() == triton
    assert (folder.path / "third_party/upmem_llvm").resolve() == llvm
    # They are linked now, so no options are needed.
    output = folder.output("./scripts/use_local_deps.sh")
    assert "third_party/triton" in output
    assert "third_party/upmem_llvm/llvm-project/build/bin/opt" in output


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ("--triton /nowhere", "/nowhere has no python/triton"),
        ("--upmem /nowhere", "/nowhere has no llvm-project/build/bin/opt"),
        ("--triton", "--triton needs a path"),
        ("--tritn x", "--tritn: use --link"),
    ],
)
def test_local_dependencies_that_are_not_there_are_refused(folder: Folder, arguments: str, why: str) -> None:
    output = folder.output(f"source scripts/use_local_deps.sh {arguments} && echo sourced || echo refused")
    assert why in output
    assert output.endswith("refused\n")


LINES = ("./scripts/host_triton_ir.sh", "./scripts/host_triton_pack.py --artifact-dir artifacts/add")


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize(
    ("variable", "why"),
    [
        ("TRITON_SRC", "is not a source tree of Triton\n  next: unset TRITON_SRC"),
        ("UPMEM_OPT", "is not a program\n  next: unset UPMEM_OPT"),
        ("TRITON_PY", "is not a program\n  next: set TRITON_PY"),
        ("TRITON_CACHE_DIR", "is not a folder that can be written to\n  next: set TRITON_CACHE_DIR"),
    ],
)
def test_unusable_environment_variable_is_refused_by_name(folder: Folder, line: str, variable: str, why: str):
    output = folder.output(line, status=1, env={variable: "/proc/nowhere"})
    assert f"error: {variable}=/proc/nowhere " in output
    assert why in output
    assert not list((folder.path / "artifacts").glob("*/kernel.ll"))


@pytest.mark.parametrize("line", LINES)
def test_a_tree_of_triton_is_used_with_the_installed_backend_and_named_if_it_cannot_be(
    folder: Folder, tmp_path: Path, line: str
) -> None:
    tree = tmp_path / "tree"
    (tree / "python").mkdir(parents=True)
    place = tree / "python" / "triton"
    place.symlink_to(Path(triton.__file__).parent)
    folder.output(line, env={"TRITON_SRC": str(tree)})
    place.unlink()
    place.mkdir()
    (place / "__init__.py").touch()
    output = folder.output(line, status=1, env={"TRITON_SRC": str(tree)})
    assert f"error: TRITON_SRC={tree}, run by " in output and "has no Triton with the dpu backend: " in output
    assert "next: build that Triton for " in output and "unset TRITON_SRC" in output
    assert "TRITON_PY=" not in output and "Traceback" not in output


@pytest.mark.parametrize("line", LINES)
def test_a_python_without_triton_is_an_error_that_says_what_to_type(folder: Folder, line: str) -> None:
    output = folder.output(line, status=1, env={"TRITON_PY": "/usr/bin/python3"})
    what = r"error: .*/usr/bin/python3 has no Triton with the dpu backend: .*No module named 'triton'\n"
    assert re.search(what, output)
    assert "  next: " in output
    assert "Traceback" not in output


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize(
    ("opt", "why"),
    [
        (
            "/bin/true",
            "error: UPMEM_OPT=/bin/true succeeded and wrote no kernel, so it is not LLVM's opt; unset UPMEM_OPT",
        ),
        ("/bin/false", "failed with exit status 1:\nit gave no reason, as LLVM's opt does; unset UPMEM_OPT"),
    ],
)
def test_a_program_that_is_not_opt_is_an_error_and_nothing_is_written(
    folder: Folder, tmp_path: Path, line: str, opt: str, why: str
) -> None:
    env = {"UPMEM_OPT": opt, "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    output = folder.output(line, status=1, env=env)
    assert why in output and "wrote bin" not in output and "packed" not in output and "Traceback" not in output
    assert not (folder.path / "bin/triton_add.ll").exists()


@pytest.mark.parametrize("line", LINES)
def test_an_opt_without_the_pass_is_an_error_of_one_line(folder: Folder, tmp_path: Path, line: str) -> None:
    opt = "/usr/lib/llvm-14/bin/opt"
    env = {"UPMEM_OPT": opt, "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    output = folder.output(line, status=1, env=env)
    assert f"error: UPMEM_OPT={opt} has no pass dpu-legalize; unset UPMEM_OPT" in output
    assert "Traceback" not in output


def test_ir_that_is_not_legalised_is_not_packed(folder: Folder, tmp_path: Path) -> None:
    line = "./scripts/host_triton_pack.py --artifact-dir artifacts/add"
    output = folder.output(line, status=1, env={"TRITON_DPU_SKIP_LEGALIZE": "1"})
    assert "error: the IR is as it was before dpu-legalize" in output
    assert not (tmp_path / "cwd" / "artifacts").exists()


@pytest.mark.any_release
def test_opt_with_dpu_legalize_is_where_a_build_of_upmems_llvm_would_have_it(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(Path(sys.prefix, "upmem_llvm"))
    program = tmp_path / "link/llvm-project/build/bin/opt"
    ir = """
      target triple = "dpu-upmem-dpurte"
      declare i32 @__triton_program_id(i32)
      define i32 @k() {
        %p = call i32 @__triton_program_id(i32 0)
        ret i32 %p
      }"""
    done = subprocess.run([program, "-dpu-legalize", "-S"], input=ir, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "call i32 @__triton_program_id" not in done.stdout
    assert "@__triton_program" in done.stdout
