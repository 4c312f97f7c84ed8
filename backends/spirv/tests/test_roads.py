"""Which road Triton gets, and the report and the check of `python -m triton_spirv_backend`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.tensor import Tensor
from triton_spirv_backend import __main__ as report
from triton_spirv_backend import check, roads
from triton_spirv_backend.roads import API_VARIABLE, RoadError

API = roads._named()


@triton.jit
def copy_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)


def verdict_of(written: int, difference: float = 0.0) -> check.Verdict:
    """Return the check's verdict on a kernel that writes so many of 32 elements, each wrong by `difference`."""
    x = np.arange(32, dtype=np.float32)
    expected = x.astype(np.float64) + difference
    grid, inputs, numbers = (1,), (Tensor(x), Tensor(x)), (written, 256)
    return check._verdict("copy", expected, np.full(32, 1e-3), copy_kernel, grid, inputs, numbers)


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, timeout=600
    )


def test_triton_imports_without_pyopencl_and_opencl_is_then_inactive() -> None:
    code = "import sys; sys.modules['pyopencl'] = None; import triton; d = triton.backends.backends['spirv'].driver;"
    done = python(f"{code} print(d.is_active(), d.inactive_reason())", **{API_VARIABLE: ""})
    assert "the Python package pyopencl is not installed" in done.stdout, done.stderr
    assert "FOUNDRY_SPIRV_API=vulkan" in done.stdout


def test_the_vulkan_road_loads_neither_opencl_nor_a_program_of_llvm() -> None:
    code = "import sys; sys.modules['pyopencl'] = None; import triton; print(triton.backends.backends['spirv'].driver)"
    done = python(code, **{API_VARIABLE: "vulkan", "PATH": "/nonexistent"})
    assert "VulkanDriver" in done.stdout, done.stderr


def test_an_unknown_road_is_refused_where_triton_looks_for_a_driver() -> None:
    done = python("import triton; triton.runtime.driver.active", **{API_VARIABLE: "metal"})
    assert "there is no road 'metal' to a device" in done.stderr
    assert "known: opencl, vulkan" in done.stderr


@pytest.mark.parametrize("reads", [True, False])
def test_two_active_backends_are_refused_with_what_to_do(reads: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    others = {
        "spirv": SimpleNamespace(driver=None),
        "nvidia": SimpleNamespace(driver=SimpleNamespace(is_active=lambda: True)),
        "amd": SimpleNamespace(driver=SimpleNamespace(is_active=lambda: False)),
    }
    monkeypatch.setattr(triton.backends, "backends", others)
    monkeypatch.setattr(roads, "_reads_variable", lambda: reads)
    monkeypatch.delenv("TRITON_DEFAULT_BACKEND", raising=False)
    with pytest.raises(RoadError, match="Triton's backend nvidia is active, too") as caught:
        roads.refuse_two()
    assert ("set TRITON_DEFAULT_BACKEND=spirv" in str(caught.value)) == reads
    assert "triton_spirv_backend.activate()" in str(caught.value)
    monkeypatch.setenv("TRITON_DEFAULT_BACKEND", "spirv")
    if reads:
        roads.refuse_two()
    else:
        with pytest.raises(RoadError):
            roads.refuse_two()


def test_this_triton_reads_the_variable_that_chooses_a_backend() -> None:
    # With this project's patches, 3.6.0 does, too.
    assert roads._reads_variable()


def test_the_check_notices_wrong_values_and_values_that_were_not_written() -> None:
    assert verdict_of(32).problem == ""
    assert "2 times what is allowed" in verdict_of(32, difference=2e-3).problem
    assert verdict_of(31).problem.startswith("1 of 32 elements")
    assert "outside its result" in verdict_of(33).problem
    assert verdict_of(32, difference=float("nan")).problem


def test_the_report_names_the_device_and_the_check_passes(capsys: pytest.CaptureFixture[str]) -> None:
    assert report.main([f"--api={API}", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    (road,) = said["roads"]
    assert said["passed"] and said["versions"]["Triton"] == triton.__version__
    assert road["devices"][road["chosen"]]["name"] and road["devices"][road["chosen"]]["refused"] == ""
    assert [verdict["name"] for verdict in road["verdicts"]] == [
        *("vec_add f32", "dot f32", "dot f16"),
        *("f32 to f16 and back", "i32 to f32 and back", "negative i8", "maximum of u64"),
    ]
    assert all(verdict["problem"] == "" and verdict["error"] <= 1 for verdict in road["verdicts"])


def test_a_failed_check_and_a_device_that_is_not_there_give_status_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(report, "check", lambda: iter([check.Verdict("vec_add", float("nan"), "wrong")]))
        assert report.main([f"--api={API}"]) == 1
        assert "THE CHECK DID NOT PASS" in capsys.readouterr().out
    variable = {"opencl": "FOUNDRY_SPIRV_DEVICE", "vulkan": "FOUNDRY_VULKAN_DEVICE"}[API]
    monkeypatch.setenv(variable, "no such device")
    assert report.main([f"--api={API}"]) == 1
    assert f"device fits {variable}=no such device" in capsys.readouterr().out
