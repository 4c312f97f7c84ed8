"""Which road Triton gets, and the report and the check of `python -m triton_spirv_backend`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.tensor import Tensor
from foundry_core.triton_hooks.drivers import explain_selection, reads_variable
from foundry_core.vulkan.library import VARIABLE, Library, VulkanError
from image import python
from triton_spirv_backend import __main__ as report
from triton_spirv_backend import apis, check, conflicts
from triton_spirv_backend.conflicts import API_VARIABLE, ApiError

API = apis._named()


@triton.jit
def copy_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)


def result_of(count: int, difference: float = 0.0) -> check.CheckResult:
    """Return the check's result for a kernel that writes so many of 32 elements, each wrong by `difference`."""
    x = np.arange(32, dtype=np.float32)
    expected = x.astype(np.float64) + difference
    grid, inputs, numbers = (1,), (Tensor(x), Tensor(x)), (count, 256)
    return check._compare("copy", expected, np.full(32, 1e-3), copy_kernel, grid, inputs, numbers)


def test_triton_imports_without_pyopencl_and_opencl_is_then_inactive() -> None:
    code = "import sys; sys.modules['pyopencl'] = None; import triton; d = triton.backends.backends['spirv'].driver;"
    done = python("-c", f"{code} print(d.is_active(), d.inactive_reason())", **{API_VARIABLE: ""})
    assert "the Python package pyopencl is not installed" in done.stdout, done.stderr
    assert "FOUNDRY_SPIRV_API=vulkan" in done.stdout


def test_the_vulkan_road_loads_neither_opencl_nor_a_program_of_llvm() -> None:
    code = "import sys; sys.modules['pyopencl'] = None; import triton; print(triton.backends.backends['spirv'].driver)"
    done = python("-c", code, **{API_VARIABLE: "vulkan", "PATH": "/nonexistent"})
    assert "VulkanDriver" in done.stdout, done.stderr


def test_an_installation_from_the_sources_says_where_the_c_library_comes_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(VulkanError, match="an installation from the sources compiles no C") as caught:
        Library(tmp_path / "libfoundry_vulkan.so")
    assert "./foundry wheel spirv, then pip install" in str(caught.value)
    monkeypatch.setenv(VARIABLE, "elsewhere.so")
    with pytest.raises(VulkanError, match=f"set {VARIABLE} to a file"):
        Library(Path("elsewhere.so"))


def test_an_unknown_road_is_refused_where_triton_looks_for_a_driver() -> None:
    done = python("-c", "import triton; triton.runtime.driver.active", **{API_VARIABLE: "metal"})
    assert "there is no road 'metal' to a device" in done.stderr
    assert "known: opencl, vulkan" in done.stderr


@pytest.mark.parametrize("reads", [True, False])
def test_two_active_backends_are_refused_with_what_to_do(reads: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    own = apis.api_driver("vulkan")
    others = {
        "spirv": SimpleNamespace(driver=own),
        "nvidia": SimpleNamespace(driver=SimpleNamespace(is_active=lambda: True)),
        "amd": SimpleNamespace(driver=SimpleNamespace(is_active=lambda: False)),
    }
    monkeypatch.setattr(triton.backends, "backends", others)
    monkeypatch.setattr(conflicts, "reads_variable", lambda: reads)
    monkeypatch.delenv("TRITON_DEFAULT_BACKEND", raising=False)
    with pytest.raises(ApiError, match="Triton's backend nvidia is active, too") as caught:
        conflicts.refuse_two(own, own)
    assert ("set TRITON_DEFAULT_BACKEND=spirv" in str(caught.value)) == reads
    assert "triton_spirv_backend.activate()" in str(caught.value)
    monkeypatch.setenv("TRITON_DEFAULT_BACKEND", "spirv")
    if reads:
        conflicts.refuse_two(own, own)
    else:
        with pytest.raises(ApiError):
            conflicts.refuse_two(own, own)


def test_a_backend_that_derives_from_this_one_is_the_second_and_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    own = apis.api_driver("vulkan")
    derived: Any = type("DerivedDriver", (own,), {})
    both = {"spirv": SimpleNamespace(driver=own), "derived": SimpleNamespace(driver=derived)}
    monkeypatch.setattr(triton.backends, "backends", both)
    monkeypatch.delenv("TRITON_DEFAULT_BACKEND", raising=False)
    for asked, other in ((own, "derived"), (derived, "spirv")):
        with pytest.raises(ApiError, match=f"Triton's backend {other} is active, too"):
            asked.is_active()


def test_this_triton_reads_the_variable_that_chooses_a_backend() -> None:
    # With this project's patches, 3.6.0 does, too.
    assert reads_variable()


def test_a_stock_triton_without_a_choice_says_why_each_backend_is_inactive(monkeypatch: pytest.MonkeyPatch) -> None:
    def stock() -> None:  # as Triton 3.9.0 has it
        selected, backends = os.environ.get("TRITON_DEFAULT_BACKEND", None), triton.backends.backends
        if selected:
            raise RuntimeError(f"Backend device '{selected}' is not active.")
        found = [x.driver for x in backends.values() if x.driver.is_active()]
        raise RuntimeError(f"{len(found)} active drivers ({found}). There should only be one.")

    module = sys.modules["triton.runtime.driver"]
    monkeypatch.setattr(module, "_create_driver", stock)
    monkeypatch.delattr(module, "_explain_drivers", raising=False)
    monkeypatch.delenv("TRITON_DEFAULT_BACKEND", raising=False)
    monkeypatch.delenv(API_VARIABLE, raising=False)
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    plain = SimpleNamespace(driver=SimpleNamespace(is_active=lambda: False))
    found = {"spirv": SimpleNamespace(driver=apis.AbsentDriver), "nvidia": plain}
    monkeypatch.setattr(triton.backends, "backends", found)
    explain_selection()
    with pytest.raises(RuntimeError, match="0 active drivers") as caught:
        module._create_driver()
    assert "spirv: inactive, OpenCL cannot be used" in str(caught.value)
    assert "FOUNDRY_SPIRV_API=vulkan" in str(caught.value) and "nvidia: inactive, its driver" in str(caught.value)
    monkeypatch.setenv("TRITON_DEFAULT_BACKEND", "spirv")
    with pytest.raises(RuntimeError, match="is not active") as caught:
        module._create_driver()
    assert "FOUNDRY_SPIRV_API=vulkan" in str(caught.value)
    monkeypatch.delenv("TRITON_DEFAULT_BACKEND")
    active = SimpleNamespace(driver=SimpleNamespace(is_active=lambda: True))
    monkeypatch.setattr(triton.backends, "backends", {"spirv": active, "nvidia": active})
    with pytest.raises(RuntimeError, match="2 active drivers") as caught:
        module._create_driver()
    assert str(caught.value).endswith("Choose one: TRITON_DEFAULT_BACKEND=spirv or TRITON_DEFAULT_BACKEND=nvidia")


def test_the_check_notices_wrong_values_and_values_that_were_not_written() -> None:
    assert result_of(32).problem == ""
    assert "2 times what is allowed" in result_of(32, difference=2e-3).problem
    assert result_of(31).problem.startswith("1 of 32 elements")
    assert "outside its result" in result_of(33).problem
    assert result_of(32, difference=float("nan")).problem


def test_the_report_names_the_device_and_the_check_passes(capsys: pytest.CaptureFixture[str]) -> None:
    assert report.main([f"--api={API}", "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    (road,) = output["roads"]
    assert output["passed"] and output["versions"]["Triton"] == triton.__version__
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
        patch.setattr(report, "run_checks", lambda: iter([check.CheckResult("vec_add", float("nan"), "wrong")]))
        assert report.main([f"--api={API}"]) == 1
        assert "THE CHECK DID NOT PASS" in capsys.readouterr().out
    variable = {"opencl": "FOUNDRY_SPIRV_DEVICE", "vulkan": "FOUNDRY_VULKAN_DEVICE"}[API]
    monkeypatch.setenv(variable, "no such device")
    assert report.main([f"--api={API}"]) == 1
    assert f"device fits {variable}=no such device" in capsys.readouterr().out
