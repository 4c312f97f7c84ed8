"""Packed kernels on DPUs, with a host library of DPUs that is made for the tests (fake_dpus.c): what each DPU
gets of the arrays, what comes back, and what is refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from foundry_core.packed import folder as packed_folder
from foundry_core.packed.forms import Kernel, Name, Parameter, Variant
from foundry_core.packed.roads import Form
from triton_dpu_backend.packing import DpuRoad

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
INCLUDE = Path(__file__).parents[4] / "sdks/upmem/host/include/dpu"
REACH = """\
const int64_t first = program[0] * INT64_C(64);
{
    struct span span = span_at(first);
    span_along(&span, INT64_C(0), argument[3] - first < 64 ? argument[3] - first : 64, INT64_C(1));
    reads(0, span, 1);
    reads(1, span, 1);
    writes(2, span, 1);
}"""
ANYWHERE = "reads_any(0);\nreads_any(1);\nwrites_any(2);"
# How many; "" leaves it to the launch.
DPUS = ("1", "3", "5", "")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a packed folder with `add`, and forms of it that know less of what they reach."""
    work = tmp_path_factory.mktemp("dpus")
    compiler = shutil.which("cc")
    assert compiler is not None
    common = [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}"]
    subprocess.run([*common, HERE / "fake_dpus.c", "-o", work / "libdpu.so"], check=True)
    subprocess.run([*common, HERE / "fake_dpu_program.c", "-o", work / "add.dpu"], check=True)
    program = (work / "add.dpu").read_bytes()

    def variant(block: int, reach: str | None, needs: str = "") -> Variant:
        parameters = {name: Parameter("*fp32", is_written=name == "c") for name in "abc"}
        parameters |= {"n": Parameter("i32"), "BLOCK": Parameter(constant=str(block))}
        form = Form("add", {"dpu": program}, needs, argument_bytes=24, offsets=(0, 4, 8, 12))
        return Variant(parameters, form, reach)

    names = {name: Name(constant=int(name == "BLOCK")) for name in ("a", "b", "c", "n", "BLOCK")}
    forms = [variant(64, REACH), variant(65, ANYWHERE), variant(66, REACH, "atomic"), variant(67, None)]
    kernels = [Kernel("add", names, forms, [], [])]
    road = DpuRoad(flags=(f"-I{INCLUDE}", f"-L{work}", f"-Wl,-rpath,{work}", "-ldpu", "-Wall", "-Wextra", "-Werror"))
    packed_folder.write(work / "toy", "toy", "dpu", "1.0.0", kernels, road)
    return work / "toy"


def run(folder: Path, code: str, **environment: str) -> str:
    """Run code after `import toy` in a process, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", HEAD + code],
        env=os.environ | {"PYTHONPATH": str(folder / "python"), "FOUNDRY_TOY_DEVICE": "3"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


HEAD = """
import numpy as np, toy
a, b, c = np.arange(1000, dtype="f4"), np.ones(1000, "f4"), np.full(1000, np.nan, "f4")

def refused(*arguments, block=64, grid=16):
    before = [array.tobytes() for array in arguments[:3]]
    try:
        toy.add[(grid,)](*arguments, BLOCK=block)
    except toy.PackedError as error:
        print(error)
    else:
        raise AssertionError("it was not refused")
    assert before == [array.tobytes() for array in arguments[:3]], "something was written"
"""


@pytest.mark.parametrize("dpus", DPUS)
def test_each_dpu_adds_its_own_part_and_writes_nothing_else(folder: Path, dpus: str) -> None:
    code = """
random = np.random.default_rng(0)
for n in (0, 1, 63, 64, 65, 1000, 100_003):
    x, y = (random.standard_normal(n, np.float32) for _ in range(2))
    x[: n // 8], y[n // 9 : n // 7] = np.float32("-0.0"), np.float32("inf")
    out = np.full(n + 9, np.nan, np.float32)
    toy.add[(-(-n // 64),)](x, y, out, n, BLOCK=64)
    assert out[:n].tobytes() == (x + y).tobytes() and np.isnan(out[n:]).all(), n
print(toy.device())
"""
    device = f"{dpus} UPMEM DPUs" if dpus else "UPMEM DPUs, one for 11 programs"
    assert run(folder, code, FOUNDRY_TOY_DEVICE=dpus) == f"{device}\n"


@pytest.mark.parametrize("dpus", DPUS)
def test_array_with_data_dependent_addresses_is_on_each_dpu(folder: Path, dpus: str) -> None:
    code = "toy.add[(16,)](a, b, c, 990, BLOCK=65)\nassert (c[:990] == a[:990] + 1).all() and np.isnan(c[990:]).all()"
    run(folder, code, FOUNDRY_TOY_DEVICE=dpus)


@pytest.mark.parametrize("dpus", DPUS)
def test_arguments_in_one_memory_share_their_place_on_a_dpu(folder: Path, dpus: str) -> None:
    code = """
toy.add[(16,)](a, b, a, 1000, BLOCK=64)
assert (a == np.arange(1000) + 1).all()
whole = np.arange(1000, dtype="f4")
toy.add[(7,)](whole[3:], whole[500:], whole[3:], 400, BLOCK=64)
expected = np.arange(1000, dtype="f4")
expected[3:403] += expected[500:900]
assert (whole == expected).all()
held = toy.Array(c)
toy.add[(16,)](toy.Array(b), b, held, 1000, BLOCK=64)
assert (held.numpy() == 2).all() and np.isnan(c).all()
"""
    run(folder, code, FOUNDRY_TOY_DEVICE=dpus)


def test_atomic_kernels_run_on_one_dpu(folder: Path) -> None:
    run(folder, "toy.add[(16,)](a, b, c, 1000, BLOCK=66)\nassert (c == a + 1).all()", FOUNDRY_TOY_DEVICE="")
    said = run(folder, "refused(a, b, c, 1000, block=66)")
    assert "the kernel add has atomic operations, and DPUs share no memory: use one DPU" in said


@pytest.mark.parametrize(
    ("code", "environment", "why"),
    [
        ("refused(a, b, c[:999], 1000)", {}, "c is too short for add: it has 999 elements"),
        ("refused(a, b, c, 1000, block=67)", {}, "nothing is known of what its programs reach"),
        ("refused(a, b, c, 1000)", {"MOCK_FAULT": "1"}, "dpu is in fault\nDPU 0: in fault\nDPU 0: the log of this DPU"),
        ("refused(a, b, c, 1000)", {"MOCK_DPUS": "2"}, "3 DPUs cannot be used\n  why:  dpu_alloc(3): allocation error"),
        ("refused(a, b, c, 1000)", {"FOUNDRY_TOY_DEVICE": "all"}, '"all" is no number of DPUs'),
        ("refused(a, b, c, 1000)", {"FOUNDRY_TOY_DEVICE": "2561"}, '"2561" is no number of DPUs'),
        (
            "n = 40_000_000\nrefused(a, np.broadcast_to(b[:1], n).copy(), c, 990, block=65)",
            {},
            "array 1 needs 160000000 bytes on a DPU",
        ),
    ],
)
def test_a_folder_that_cannot_run_is_refused_and_writes_nothing(
    folder: Path, code: str, environment: dict[str, str], why: str
) -> None:
    assert why in run(folder, code, **environment)


def test_dpus_that_were_in_fault_are_replaced(folder: Path) -> None:
    code = """
import os
os.environ["MOCK_FAULT"] = "1"
import ctypes
ctypes.CDLL(None).setenv(b"MOCK_FAULT", b"1", 1)
refused(a, b, c, 1000)
ctypes.CDLL(None).unsetenv(b"MOCK_FAULT")
toy.add[(16,)](a, b, c, 1000, BLOCK=64)
assert (c == a + 1).all()
"""
    assert "dpu is in fault" in run(folder, code)


def test_damaged_program_is_refused(folder: Path, tmp_path: Path) -> None:
    damaged = shutil.copytree(folder, tmp_path / "toy")
    for path in damaged.glob("kernels/*.dpu"):
        content = bytearray(path.read_bytes())
        content[100] ^= 1
        path.write_bytes(content)
    assert "is damaged" in run(damaged, "refused(a, b, c, 1000)")


def test_cmake_builds_the_library_with_the_sdk_of_the_machine(folder: Path, tmp_path: Path) -> None:
    tool = tmp_path / "sdk/bin/dpu-pkg-config"
    tool.parent.mkdir(parents=True)
    libraries = f"-L{folder.parent} -Wl,-rpath,{folder.parent} -ldpu"
    tool.write_text(
        f'#!/bin/sh\ncase $1 in --cflags) echo "-I{INCLUDE}";; --libs) echo "{libraries}";; *) exit 1;; esac\n'
    )
    tool.chmod(0o755)
    cmake = shutil.which("cmake")
    assert cmake is not None
    build = tmp_path / "build"
    environment = os.environ | {"UPMEM_HOME": str(tmp_path / "sdk")}
    for words in (["-S", folder, "-B", build], ["--build", build]):
        subprocess.run([cmake, *map(str, words)], env=environment, check=True, capture_output=True)
    (library,) = build.rglob("libtoy.so")
    code = "toy.add[(16,)](a, b, c, 1000, BLOCK=64)\nassert (c == a + 1).all()"
    run(folder, code, FOUNDRY_TOY_LIBRARY=str(library))
    (tmp_path / "sdk/bin/dpu-pkg-config").unlink()
    done = subprocess.run(
        [cmake, "-S", folder, "-B", tmp_path / "other"], env=environment, check=False, capture_output=True, text=True
    )
    assert done.returncode != 0 and "dpu-pkg-config" in done.stderr
