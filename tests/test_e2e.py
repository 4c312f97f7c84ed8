"""The checks that e2e relies on can fail: stray stores are seen, all pairs are covered, reports say what ran."""

from __future__ import annotations

import itertools
import json
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
