"""Flow C: a kernel is packed into an artifact folder, and run from there by its generated host program."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from flows import ADD, Artifact, Folder, Kernel, of_type
from foundry_core.codegen.typed import check_text

ARTIFACT = "ARTIFACT_DIR=/mnt/host_cwd/artifacts/add ./scripts/container_artifact_run.sh \\\n"
PACK = "./scripts/host_triton_pack.py --artifact-dir ./artifacts/add --out-indices 2"
FILES = {"kernel.ll", "wrapper.ll", "triton_args.h", "triton_args.c", "host_args.h", "host_runner.c", "meta.json"}
RANDOM = np.random.default_rng(0)
DPUS = (1, 4, 5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return Folder(tmp_path_factory.mktemp("flow_c"))


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """Return a folder whose artifacts/ has only what the documented line packs."""
    folder = Folder(tmp_path_factory.mktemp("quickstart"))
    output = folder.output(PACK)
    assert "packed the kernel add_kernel: results are arrays [2]; 4 DPUs by default, from TRITON_DPU_NUM_DPUS" in output
    return folder


def test_an_artifact_has_the_documented_files(quickstart: Folder) -> None:
    assert {path.name for path in (quickstart.path / "artifacts/add").iterdir()} >= FILES


def test_meta_json_has_the_documented_keys(quickstart: Folder) -> None:
    meta = json.loads((quickstart.path / "artifacts/add/meta.json").read_text())
    array = {"llvm_type": "float addrspace(255)*", "is_ptr": True, "addrspace": 255, "passed": True}
    internal = {"llvm_type": "i8 addrspace(1)*", "is_ptr": True, "addrspace": 1, "passed": False}
    scalar = {"llvm_type": "i32", "is_ptr": False, "addrspace": None, "passed": True}
    assert meta["kernel"] == "add_kernel"
    assert meta["arg_count"] == 6
    assert meta["out_indices"] == [2]
    assert meta["num_dpus"] == 4
    assert meta["args"] == [
        *({"arg_index": i, **array, "elem_type": "float", "elem_bytes": 4} for i in range(3)),
        {"arg_index": 3, **scalar, "c_type": "int32_t"},
        *({"arg_index": i, **internal, "elem_type": "i8", "elem_bytes": 1} for i in (4, 5)),
    ]
    assert meta["passed_args"] == [
        *(
            {"arg_index": i, "field_index": i, "kind": "ptr", "c_type": "uint32_t", "offset": 4 * i, "elem_bytes": 4}
            for i in range(3)
        ),
        {"arg_index": 3, "field_index": 3, "kind": "scalar", "c_type": "int32_t", "offset": 12},
    ]
    assert meta["block"] == 32
    assert 11 <= meta["num_tasklets"] <= 24


def test_kernel_and_entry_point_are_read_by_llvm_13_and_14(quickstart: Folder) -> None:
    for name in ("kernel.ll", "wrapper.ll"):
        check_text((quickstart.path / "artifacts/add" / name).read_text())


@pytest.mark.parametrize(
    ("line", "programs"),
    [
        ("cd /mnt/host_cwd\n./scripts/container_artifact_run.sh --arg 3=10", 1),
        (f"{ARTIFACT}  --nr-dpus 4 --arg 3=100", 4),
        (f"cd /mnt/host_cwd\n{ARTIFACT}  --arg 3=10", 1),
    ],
)
def test_the_documented_lines_run_a_trial_that_says_so(quickstart: Folder, line: str, programs: int) -> None:
    output = quickstart.output(line)
    assert f"grid {programs},1,1, {programs} program{'s' * (programs > 1)} on {programs} of 4 DPUs\n" in output
    assert ("3 of them have nothing to do: a program runs on one DPU, and smaller blocks" in output) == (programs == 1)
    assert "array 0: no --in and no --fill: a trial with 0, 1, 2, ...\n" in output
    assert "array 2: 1 3 5 7 9 11 13 15 17 19" in output
    assert "warning" not in output


def test_the_documented_lengths_and_output(quickstart: Folder, tmp_path: Path) -> None:
    quickstart.output(f"{ARTIFACT}  --arg 3=10 --len 0=10 --len 1=10 --len 2=10 --out 2={tmp_path}/c.bin")
    assert np.array_equal(np.fromfile(tmp_path / "c.bin", np.float32), 2 * np.arange(10) + 1)


def test_help_teaches_the_kernels_parameters(quickstart: Folder) -> None:
    output = quickstart.output("./scripts/container_artifact_run.sh --help")
    for text in ("0  array of float\n", "2  array of float, output\n", "3  i32\n", "4, from TRITON_DPU_NUM_DPUS"):
        assert text in output


@pytest.fixture(scope="module")
def add(folder: Folder) -> Artifact:
    return folder.packed(ADD)


@pytest.mark.parametrize("dpus", DPUS)
@pytest.mark.parametrize("n", [1, 10, 100, 100_003])
def test_each_dpu_adds_its_own_part(add: Artifact, n: int, dpus: int) -> None:
    a, b = RANDOM.random(n, np.float32), RANDOM.random(n, np.float32)
    got = add.run(f"--nr-dpus {dpus} --arg 3={n}", {0: a, 1: b}, {2: np.float32})
    assert np.array_equal(got[2], a + b)


def test_nothing_is_written_where_there_is_nothing_to_do(add: Artifact) -> None:
    got = add.run("--arg 3=0", {0: np.zeros(0, np.float32), 1: np.zeros(0, np.float32)}, {2: np.float32})
    assert got[2].size == 0


def test_elements_that_no_program_writes_are_marked_and_said(add: Artifact) -> None:
    path = add.path / "c"
    output = add.output(f"--arg 3=10 --len 2=13 --out 2={path}")
    assert "warning: 3 of 13 elements of array 2 were not written by any program" in output
    got = np.fromfile(path, np.float32)
    assert np.array_equal(got[:10], 2 * np.arange(10) + 1)
    assert np.isnan(got[10:]).all()


@pytest.mark.parametrize(("type", "dtype"), [("*i8", "i1"), ("*i16", "i2"), ("*i32", "i4"), ("*i64", "i8")])
@pytest.mark.parametrize("n", [3, 129])
def test_elements_of_any_size_at_any_edge(folder: Folder, type: str, dtype: str, n: int) -> None:
    artifact = folder.packed(of_type(ADD, type))
    a, b = (RANDOM.integers(0, 100, n).astype(dtype) for _ in range(2))
    for dpus in (1, 3):
        got = artifact.run(f"--nr-dpus {dpus} --arg 3={n}", {0: a, 1: b}, {2: dtype})
        assert np.array_equal(got[2], (a + b).astype(dtype))


SCALARS = Kernel(
    """
def scalars(x, out, n, alpha, first, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + first + i, mask=i < n) * alpha, mask=i < n)
""",
    {"x": "*fp32", "out": "*fp32", "n": "i32", "alpha": "fp32", "first": "i64"},
    {"BLOCK": 32},
)


@pytest.mark.parametrize("dpus", DPUS)
def test_several_scalars_of_several_types(folder: Folder, dpus: int) -> None:
    n, first = 1000, 77
    x = RANDOM.random(n + first, np.float32)
    artifact = folder.packed(SCALARS)
    got = artifact.run(f"--nr-dpus {dpus} --arg 2={n} --arg 3=-1.5 --arg 4={first}", {0: x}, {1: np.float32})
    assert np.array_equal(got[1], x[first:] * np.float32(-1.5))


MATMUL = Kernel(
    """
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for first in range(0, K, BK):
        x = tl.load(a + i[:, None] * K + first + k, mask=(i[:, None] < M) & (first + k < K), other=0)
        y = tl.load(b + (first + k[:, None]) * N + j, mask=(first + k[:, None] < K) & (j < N), other=0)
        total += tl.dot(x, y)
    tl.store(c + i[:, None] * N + j, total, mask=(i[:, None] < M) & (j < N))
""",
    {"a": "*fp32", "b": "*fp32", "c": "*fp32", "M": "i32", "N": "i32", "K": "i32"},
    {"BM": 16, "BN": 16, "BK": 16},
)


@pytest.mark.parametrize("dpus", DPUS)
def test_programs_on_several_dpus_write_into_the_same_rows(folder: Folder, dpus: int) -> None:
    m, n, k = 50, 37, 41
    a, b = RANDOM.random((m, k), np.float32), RANDOM.random((k, n), np.float32)
    artifact = folder.packed(MATMUL)
    sizes = f"--nr-dpus {dpus} --arg 3={m} --arg 4={n} --arg 5={k}"
    got = artifact.run(f"{sizes} --grid {-(-m // 16)},{-(-n // 16)}", {0: a, 1: b}, {2: np.float32})
    expected = a.astype(np.float64) @ b.astype(np.float64)
    # Each of k products and sums is rounded once or twice.
    assert np.allclose(got[2].reshape(m, n), expected, rtol=2 * k * 2.0**-24, atol=0)
    assert "give --grid" in artifact.output(sizes, status=1)


GATHER = Kernel(
    """
def gather(x, index, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = tl.load(index + i, mask=i < n, other=0)
    tl.store(out + at, tl.load(x + i, mask=i < n), mask=i < n)
""",
    {"x": "*i32", "index": "*i32", "out": "*i32", "n": "i32"},
    {"BLOCK": 16},
)


@pytest.mark.parametrize("dpus", DPUS)
def test_array_with_data_dependent_addresses_is_replicated_and_merged(folder: Folder, dpus: int) -> None:
    n = 300
    x, index = RANDOM.integers(-1000, 1000, n, np.int32), RANDOM.permutation(n).astype(np.int32)
    artifact = folder.packed(GATHER)
    options = f"--nr-dpus {dpus} --arg 3={n} --grid {-(-n // 16)}"
    got = artifact.run(options, {0: x, 1: index}, {2: np.int32})
    assert np.array_equal(got[2][index], x)
    assert "since addresses depend on data" in artifact.output(f"{options} --fill 0=1 --fill 1=0")


REVERSE = Kernel(
    """
def reverse(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + n - 1 - i, tl.load(x + 2 * i, mask=i < n) + tl.load(x + 2 * i + 1, mask=i < n), mask=i < n)
""",
    {"x": "*i64", "out": "*i64", "n": "i32"},
    {"BLOCK": 16},
)


@pytest.mark.parametrize("dpus", DPUS)
def test_parts_follow_strides_and_run_backwards(folder: Folder, dpus: int) -> None:
    n = 200
    x = RANDOM.integers(-(2**40), 2**40, 2 * n)
    artifact = folder.packed(REVERSE)
    output = artifact.output(f"--nr-dpus {dpus} --arg 2={n}")
    # The most elements on one DPU, of 13 programs.
    most = min(2 * n, 32 * -(-13 // dpus))
    assert f"array 0: {2 * n} x i64, read; {most} on a DPU" in output
    got = artifact.run(f"--nr-dpus {dpus} --arg 2={n}", {0: x}, {1: np.int64})
    assert np.array_equal(got[1], x.reshape(n, 2).sum(1)[::-1])


IN_PLACE = Kernel(
    """
def in_place(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)
""",
    {"x": "*i16", "n": "i32"},
    {"BLOCK": 32},
)


@pytest.mark.parametrize("dpus", DPUS)
def test_an_array_that_is_read_and_written(folder: Folder, dpus: int) -> None:
    x = RANDOM.integers(-1000, 1000, 333).astype(np.int16)
    artifact = folder.packed(IN_PLACE)
    got = artifact.run(f"--nr-dpus {dpus} --arg 1=300", {0: x}, {0: np.int16})
    assert np.array_equal(got[0], np.where(np.arange(333) < 300, 2 * x, x))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("", "scalar 3 (i32) has no value: --arg 3=VAL"),
        ("--arg 3=1.5", "--arg 3: 1.5 is not an integer"),
        ("--arg 3=5000000000", "--arg 3: 5000000000 is not between -2147483648 and 4294967295"),
        ("--arg 2=3", "parameter 2 is an array: give it --in, --fill or --out"),
        ("--arg 3=10 --fill 3=1", "parameter 3 is a scalar: give it --arg"),
        ("--arg 7=3", "the kernel add has no parameter 7 that can be set"),
        ("--arg 4=3", "the kernel add has no parameter 4 that can be set"),
        ("--arg 3", "--arg 3: write --arg IDX=VALUE"),
        ("--arg 3=10 --fill 0=1", "the kernel reads array 1, and no data was given: --in 1=PATH or --fill 1=VALUE"),
        ("--arg 3=10 --fill 0=one --fill 1=2", "--fill: one is not a number"),
        ("--arg 3=10 --in 0=/nowhere", "--in 0=/nowhere: No such file or directory"),
        ("--arg 3=100 --len 0=10", "program 0,0,0 reads elements 0 to 63 of array 0, which has 10"),
        ("--arg 3=10 --out 0=c", "--out 0=c: no program writes array 0"),
        ("--arg 3=10 --out 2=/nowhere/c", "--out 2=/nowhere/c: No such file or directory"),
        ("--arg 3=10 --grid 2,", "--grid 2,: write --grid X, X,Y or X,Y,Z"),
        ("--arg 3=10 --grid 100000,100000", "more than 2147483647 programs"),
        ("--arg 3=10 --nr-dpus 0", "--nr-dpus: 0 is not between 1 and"),
        ("--arg 3=10 --nr-dpus -1", "--nr-dpus: -1 is not between 1 and"),
        ("--arg 3=10 --len 0=-1", "--len: -1 is not between 0 and"),
        ("--arg 3=-10", "--arg 3: with -10, no program has anything to store"),
        ("--arg 3=10 4=1", "4=1: what is that? See --help"),
        ("--arg 3=30000000 --nr-dpus 2", "array 1 needs 60000000 bytes on a DPU, after 60000000 for those before it"),
    ],
)
def test_wrong_argument_of_a_packed_kernel_is_refused(add: Artifact, options: str, why: str) -> None:
    assert why in add.output(options, status=1)


def test_a_file_that_does_not_fit_is_refused(add: Artifact) -> None:
    path = add.path / "odd"
    path.write_bytes(bytes(42))
    assert "odd has 42 bytes; an element, float, has 4" in add.output(f"--arg 3=10 --in 0={path}", status=1)
    path.write_bytes(bytes(44))
    output = add.output(f"--arg 3=10 --len 0=10 --in 0={path}", status=1)
    assert "odd has 44 bytes; 10 elements of float have 40" in output
    path.write_bytes(bytes(36))
    assert "which has 9: check" in add.output(f"--arg 3=10 --in 0={path}", status=1)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("--out-indices 3", "--out-indices 3: the kernel add has no array there, but at [0, 1, 2]"),
        ("--out-indices 0", "--out-indices 0: the kernel add does not write it; it writes [2]"),
        ("--out-indices two", "two is not a list of parameter indices"),
        ("--kernel sub", "the IR has no kernel sub; it defines: add"),
    ],
)
def test_wrong_pack_option_is_refused(folder: Folder, options: str, why: str) -> None:
    line = f"./scripts/host_triton_pack.py --artifact-dir ./bin/no --triton-script {folder.script(ADD)} {options}"
    assert why in folder.output(line, status=2 if "two" in options else 1)


def test_the_folder_may_be_as_close_to_the_root_as_it_is_mounted(folder: Folder) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as near:
        shutil.copytree(folder.path / "scripts", Path(near, "scripts"))
        line = f"cd {near} && ./scripts/host_triton_pack.py --artifact-dir add --triton-script {folder.script(ADD)}"
        assert "packed the kernel add" in folder.output(line)


def test_a_script_that_writes_nothing_is_said(folder: Folder, tmp_path: Path) -> None:
    script = tmp_path / "empty.py"
    script.write_text("")
    line = f"./scripts/host_triton_pack.py --artifact-dir ./bin/no --triton-script {script}"
    assert "a script must take --out PATH and write LLVM IR there" in folder.output(line, status=1)
    script.write_text("raise SystemExit(3)")
    assert "ended with exit status 3" in folder.output(line, status=1)


def test_ambiguous_or_missing_artifact_is_refused(quickstart: Folder, tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    run = "./scripts/container_artifact_run.sh --arg 3=1"
    assert "artifacts/ has none" in folder.output(run, status=1)
    for name in ("one", "two"):
        (folder.path / "artifacts" / name).mkdir(parents=True)
        (folder.path / "artifacts" / name / "meta.json").write_text("{}")
    assert "set ARTIFACT_DIR" in folder.output(run, status=1)
    assert "has no kernel.ll: pack it again" in folder.output(run, status=1, env={"ARTIFACT_DIR": "artifacts/one"})


def test_ir_of_another_compiler_runs_with_all_arrays_on_each_dpu(folder: Folder, add: Artifact, tmp_path: Path) -> None:
    # The compiler's facts about the kernel are removed, its lines among them.
    text = re.sub(r",? !dbg !\d+", "", (add.path / "kernel.ll").read_text())
    (tmp_path / "bare.ll").write_text(re.sub(r"^!.*\n", "", text, flags=re.MULTILINE))
    script = tmp_path / "bare.py"
    script.write_text(f"import shutil, sys\nshutil.copy('{tmp_path}/bare.ll', sys.argv[2])\n")
    pack = f"./scripts/host_triton_pack.py --artifact-dir ./artifacts/bare --triton-script {script}"
    assert "give --out-indices" in folder.output(pack, status=1)
    folder.output(f"{pack} --out-indices 2")
    bare = Artifact(folder, folder.path / "artifacts/bare")
    a, b = RANDOM.random(1000, np.float32), RANDOM.random(1000, np.float32)
    got = bare.run("--nr-dpus 3 --arg 3=1000 --grid 16", {0: a, 1: b}, {2: np.float32})
    assert np.array_equal(got[2], a + b)
    assert "give --grid" in bare.output("--arg 3=1000", status=1)
