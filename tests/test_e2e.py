"""The checks that e2e relies on can fail: stray stores are seen, all pairs are covered, reports say what ran."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import types
from contextlib import nullcontext
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

E2E = Path(__file__).resolve().parent.parent / "e2e"
RAN = {"kind": "CPU OpenCL device", "device": "a device", "driver": "a driver", "memory": "zero-copy"}


class _Driver:
    def ran(self) -> types.SimpleNamespace:
        return types.SimpleNamespace(as_dict=lambda: RAN)


@pytest.fixture
def e2e(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make e2e's modules importable as its scripts see them, on a machine without Triton."""
    triton = types.ModuleType("triton")
    triton.__version__ = "0.0"
    triton.runtime = types.SimpleNamespace(driver=types.SimpleNamespace(active=_Driver()))
    monkeypatch.setitem(sys.modules, "triton", triton)
    monkeypatch.syspath_prepend(str(E2E))


def test_every_two_values_of_different_axes_meet(e2e: None) -> None:
    from covering import pairs

    axes = {"a": (1, 2, 3), "b": "xyzw", "c": (None, 0), "d": (1, 2)}
    choices = pairs(**axes)
    for first, second in itertools.combinations(axes, 2):
        met = {(choice[first], choice[second]) for choice in choices}
        assert met == set(itertools.product(axes[first], axes[second]))
    assert len(choices) < 3 * 4 * 2 * 2


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.int64])
@pytest.mark.parametrize("stray", [-1, 10])
def test_a_store_beside_the_array_is_seen(e2e: None, dtype: type, stray: int) -> None:
    from guarded import Guarded, WrongMemory

    guarded = Guarded((10,), dtype, fence=4)
    guarded.fill(np.zeros(10))
    guarded.check_fences("out")
    np.ndarray((1,), dtype, guarded._bytes, guarded._before + stray * guarded.dtype.itemsize)[0] = 0
    with pytest.raises(WrongMemory, match=f"{stray} elements from the array's start"):
        guarded.check_fences("out")


def test_a_store_between_two_rows_is_seen(e2e: None) -> None:
    from guarded import Guarded, WrongMemory

    guarded = Guarded((3, 4), np.float32, fence=8, padding=2)
    assert guarded.array.strides == (24, 4)
    np.ndarray((3, 6), np.float32, guarded._bytes, guarded._before)[1, 4] = 1.0
    with pytest.raises(WrongMemory, match="10 elements"):
        guarded.check_fences("out")


def test_columns_are_laid_out_first_index_fastest(e2e: None) -> None:
    from guarded import Guarded

    assert Guarded((3, 4), np.float32, fence=8, layout="column", padding=2).array.strides == (4, 20)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
def test_floats_are_poisoned_with_nan(e2e: None, dtype: type) -> None:
    from guarded import Guarded

    assert np.isnan(Guarded((5,), dtype, fence=1).array).all()


def report(e2e_cases: list, folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    import report

    monkeypatch.setattr(sys, "argv", ["e2e", "--results", str(folder)])
    return report.main("title", e2e_cases)


def test_a_failed_case_fails_the_run_and_stands_in_every_report(
    e2e: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from report import Case

    def wrong() -> float:
        raise AssertionError("3 of 8 elements are wrong")

    status = report([Case("k", "good", lambda: 0.0), Case("k", "bad", wrong)], tmp_path, monkeypatch)
    assert status == 1
    assert "1 passed, 1 failed" in capsys.readouterr().out
    suite = ElementTree.parse(tmp_path / "junit.xml").getroot().find("testsuite")
    assert suite is not None
    assert suite.get("failures") == "1"
    assert {item.get("name"): item.get("value") for item in suite.iter("property")} == {"triton": "0.0", **RAN}
    assert [item.get("message") for item in suite.iter("failure")] == ["3 of 8 elements are wrong"]
    document = json.loads((tmp_path / "results.json").read_text())
    assert (document["passed"], document["failed"], document["ran"]["kind"]) == (1, 1, "CPU OpenCL device")


def test_an_exception_of_a_kernel_is_a_failure_and_the_next_case_still_runs(
    e2e: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from report import Case

    def crash() -> float:
        raise RuntimeError("no such device")

    assert report([Case("k", "crash", crash), Case("k", "good", lambda: 0.5)], tmp_path, monkeypatch) == 1
    cases = json.loads((tmp_path / "results.json").read_text())["cases"]
    assert "no such device" in cases[0]["failure"]
    assert cases[1] | {"seconds": 0} == {
        "suite": "k", "name": "good", "seconds": 0, "error": 0.5, "modelled": None, "failure": None,
    }  # fmt: skip


def test_what_a_case_cost_on_a_modelled_device_is_reported_as_modelled(
    e2e: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import report as module
    from report import Case

    launches = [types.SimpleNamespace(cycles=n, dma_read_bytes=8 * n, dma_write_bytes=n) for n in (100, 23)]
    active = module.triton.runtime.driver.active
    monkeypatch.setattr(active, "profile", lambda: nullcontext(launches), raising=False)
    assert report([Case("k", "good", lambda: 0.0)], tmp_path, monkeypatch) == 0
    assert "modelled 123 cycles" in capsys.readouterr().out
    assert json.loads((tmp_path / "results.json").read_text())["cases"][0]["modelled"] == {
        "cycles": 123, "dma_bytes": 9 * 123,
    }  # fmt: skip
    properties = ElementTree.parse(tmp_path / "junit.xml").getroot().iterfind(".//testcase/properties/property")
    assert {item.get("name"): item.get("value") for item in properties} == {
        "modelled_cycles": "123", "modelled_dma_bytes": "1107",
    }  # fmt: skip


def test_a_run_without_cases_is_no_success(e2e: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert report([], tmp_path, monkeypatch) == 5


def test_where_no_name_fits_nothing_is_run_and_the_names_are_listed(
    e2e: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from report import Case, main

    def run() -> float:
        raise AssertionError("it was run")

    monkeypatch.setattr(sys, "argv", ["e2e", "--results", str(tmp_path), "--only", "nonsense"])
    assert main("title", [Case("vec_add", "n=7 f32", run), Case("matmul", "512", run)]) == 5
    assert capsys.readouterr().out.splitlines()[1:] == ["    vec_add n=7 f32", "    matmul 512"]
    assert not list(tmp_path.iterdir())


# A script with cases as e2e's, and the least of Triton that reports need; run with `python script.py`.
_SCRIPT = """
import os, sys
sys.path.append("E2E")
from report import Case, run_script

def where():
    os.write(1, b"what a kernel prints ")
    return f"{os.environ.get('MODE')} in {os.getpid() == int(os.environ['FIRST'])}"

def wrong():
    raise AssertionError("3 of 8 elements are wrong")

os.environ.setdefault("FIRST", str(os.getpid()))
run_script("title", lambda: [
    Case("k", "plain", where),
    Case("k", "a1", where, {"MODE": "A"}),
    Case("k", "b", where, {"MODE": "B"}),
    Case("k", "a2", wrong, {"MODE": "A"}),
    Case("k", "same", where, anywhere=True),
    *([Case("k", "dies", lambda: os._exit(3), {"MODE": "C"}), Case("k", "next", where, {"MODE": "C"})] * DIES),
])
"""
_TRITON = f"""
from types import SimpleNamespace as n
__version__ = "0.0"
runtime = n(driver=n(active=n(ran=lambda: n(as_dict=lambda: {RAN!r}))))
"""


def script(folder: Path, *options: str, dies: bool = False) -> dict[str, dict[str, object]]:
    """What the cases of _SCRIPT came to, by name, and under "" the exit status and what was printed."""
    (folder / "triton.py").write_text(_TRITON)
    (folder / "script.py").write_text(_SCRIPT.replace("DIES", str(dies)).replace("E2E", str(E2E)))
    done = subprocess.run(
        [sys.executable, "script.py", "--results", "results", *options], cwd=folder, capture_output=True, text=True
    )
    cases = json.loads((folder / "results/results.json").read_text())["cases"]
    return {"": {"status": done.returncode, "said": done.stdout}} | {case["name"]: case for case in cases}


def test_cases_with_variables_run_in_a_process_for_each_environment(tmp_path: Path) -> None:
    found = script(tmp_path)
    assert {name: case["error"] for name, case in found.items() if name and case["failure"] is None} == {
        "plain": "None in True", "same": "None in True", "a1": "A in False", "b": "B in False",
    }  # fmt: skip
    assert found["a2"]["failure"] == "3 of 8 elements are wrong"
    assert found[""]["status"] == 1


def test_when_a_process_dies_its_other_cases_fail_with_its_status(tmp_path: Path) -> None:
    found = script(tmp_path, "--only", "k", dies=True)
    for name in ("dies", "next"):
        assert found[name]["failure"] == "the process with MODE=C ended with status 3 before this case was done"
    assert found["b"]["failure"] is None


def test_what_says_the_same_with_every_triton_can_be_left_out_and_that_is_said(tmp_path: Path) -> None:
    found = script(tmp_path, "--not-anywhere")
    assert "same" not in found
    assert "1 that say the same with every release of Triton were left" in str(found[""]["said"])


class _Vsi:
    """A driver whose launches a test makes."""

    last_launch: object = None

    def get_current_target(self) -> types.SimpleNamespace:
        return types.SimpleNamespace(backend="vsi")

    def launched(self, threads: int = 1, matmuls: int = 0, command_bytes: int = 0) -> None:
        self.last_launch = types.SimpleNamespace(
            grid=(3, 2, 1), threads=threads, matmuls=matmuls, dmas=0, command_bytes=command_bytes
        )


@pytest.fixture
def vsi(e2e: None, monkeypatch: pytest.MonkeyPatch) -> _Vsi:
    """e2e/vsi.py can be imported, and runs on this driver in default mode."""
    driver = _Vsi()
    monkeypatch.setattr(sys.modules["triton"].runtime.driver, "active", driver)
    for name, types_of in (("vec_add", ("f32", "f64")), ("matmul", ("f32->f32", "f16->f16"))):
        module = types.ModuleType(name)
        module.DTYPES = dict.fromkeys(types_of)
        monkeypatch.setitem(sys.modules, name, module)
    tensor = types.ModuleType("foundry_core.tensor")
    tensor.Tensor = object
    monkeypatch.setitem(sys.modules, "foundry_core", types.ModuleType("foundry_core"))
    monkeypatch.setitem(sys.modules, "foundry_core.tensor", tensor)
    monkeypatch.delitem(sys.modules, "vsi", raising=False)
    for variable in ("VSI_ENABLE_TC", "VSI_ENABLE_MULTI_THREADS"):
        monkeypatch.setenv(variable, "0")
    return driver


def test_on_vsi_each_case_is_there_in_each_mode_and_every_release_sees_each_type(vsi: _Vsi) -> None:
    from report import Case
    from vsi import in_modes

    cases = list(in_modes(Case("vec_add", f"n={n} {type}", lambda: 0.0) for n in (1, 2) for type in ("f32", "f64")))
    assert len(cases) == 12
    assert {tuple(case.variables.values()) for case in cases} == {("0", "0"), ("1", "0"), ("0", "1")}
    assert [case.name for case in cases if not case.anywhere and case.variables["VSI_ENABLE_TC"] == "1"] == [
        "n=1 f32 TC", "n=1 f64 TC",
    ]  # fmt: skip
    assert not any(case.anywhere for case in cases if set(case.variables.values()) == {"0"})


@pytest.mark.parametrize(
    ("suite", "mode", "launch", "wrong"),
    [
        ("vec_add", "", {}, None),
        ("vec_add", "VSI_ENABLE_TC", {}, None),
        ("vec_add", "", {"threads": 128}, "128 work-items shared a program, not 1"),
        ("vec_add", "", {"matmuls": 1, "command_bytes": 6 * 256}, "there should be none"),
        ("matmul", "VSI_ENABLE_TC", {"matmuls": 1, "command_bytes": 6 * 256}, None),
        ("matmul", "VSI_ENABLE_TC", {"matmuls": 1, "command_bytes": 5 * 256}, "1280 bytes are 6 commands"),
        ("matmul", "VSI_ENABLE_TC", {}, "tl.dot did not go to the tensor core"),
        ("matmul", "VSI_ENABLE_MULTI_THREADS", {"threads": 128}, None),
        ("matmul", "VSI_ENABLE_MULTI_THREADS", {}, "1 work-items shared a program, not 128"),
        ("matmul", "VSI_ENABLE_MULTI_THREADS", None, "nothing was launched"),
    ],
)
def test_a_mode_must_show_in_what_was_launched(
    suite: str, mode: str, launch: dict[str, int] | None, wrong: str | None, vsi: _Vsi, monkeypatch: pytest.MonkeyPatch
) -> None:
    from report import Case
    from vsi import seen_in_effect

    def run() -> float:
        if launch is not None:
            vsi.launched(**launch)
        return 0.0

    if mode:
        monkeypatch.setenv(mode, "1")
    case = Case(suite, "n=1 f32->f32" if suite == "matmul" else "n=1 f32", run)
    if wrong is None:
        assert seen_in_effect(case) == 0.0
    else:
        with pytest.raises(AssertionError, match=wrong):
            seen_in_effect(case)


@pytest.mark.parametrize(
    ("type", "outcome", "wrong"),
    [("f64", "refused: no Float64", None), ("f64", 0.0, "f64 was compiled"), ("f32", "refused", "f32 was refused")],
)
def test_f64_must_be_refused_on_vsi_and_nothing_else(
    type: str, outcome: float | str, wrong: str | None, vsi: _Vsi
) -> None:
    from report import Case
    from vsi import seen_in_effect

    case = Case("vec_add", f"n=1 {type}", lambda: outcome)
    if wrong is None:
        assert seen_in_effect(case) == outcome
    else:
        with pytest.raises(AssertionError, match=wrong):
            seen_in_effect(case)
