"""OpenCL without a device: how memory is grouped into buffers, how a missing device is reported."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
import pytest
import triton
from foundry_core.spans import memory_spans
from foundry_core.tensor import Tensor

pytest.importorskip("pyopencl", reason="this image has no OpenCL")

from foundry_core.runtime import opencl


class FakePlatform:
    name = "Some Platform"


class FakeDevice:
    """The part of an OpenCL device that `find` reads."""

    platform = FakePlatform()
    available = True

    def __init__(self, name: str, il_version: str) -> None:
        self.name = name
        self.il_version = il_version


def spans(*arrays: np.ndarray) -> list[tuple[int, int]]:
    return memory_spans([Tensor(array) for array in arrays])


def address(array: np.ndarray) -> int:
    return Tensor(array).data_ptr()


def test_separate_arrays_get_a_span_each() -> None:
    x, y = np.zeros(100, np.int8), np.zeros(200, np.int8)
    assert sorted(high - low for low, high in spans(x, y)) == [100, 200]


def test_the_same_array_twice_is_one_span() -> None:
    x = np.zeros(100, np.int8)
    assert spans(x, x) == [(address(x), address(x) + 100)]


def test_views_into_one_array_share_a_span_from_the_lowest_to_the_end() -> None:
    x = np.zeros(100, np.int8)
    assert spans(x[60:], x[20:30]) == [(address(x) + 20, address(x) + 100)]


def test_a_view_alone_reaches_to_the_end_of_its_allocation() -> None:
    x = np.zeros((10, 10), np.int8)
    assert spans(x[3, :2]) == [(address(x) + 30, address(x) + 100)]


def test_a_tensor_without_elements_needs_no_memory() -> None:
    assert spans(np.zeros(0, np.float32)) == []


def test_a_devices_compiler_starts_while_tritons_front_end_works(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    monkeypatch.setattr(opencl, "start_compilers", lambda: started.append("all"))
    target = triton.runtime.driver.active.get_current_target()
    triton.compiler.make_backend(target).get_codegen_implementation()
    assert started == ["all"]


def test_the_first_device_that_takes_spirv_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = FakeDevice("old", ""), FakeDevice("new", "SPIR-V_1.2 ")
    monkeypatch.setattr(opencl, "devices", lambda: [first, second])
    assert opencl.find("", variable="V").name == second.name


@pytest.mark.parametrize("wanted", ["1", "second", "SECOND CPU"])
def test_a_device_is_chosen_by_number_or_by_part_of_its_name(wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = FakeDevice("first cpu", "SPIR-V_1.2"), FakeDevice("second cpu", "SPIR-V_1.2")
    monkeypatch.setattr(opencl, "devices", lambda: [first, second])
    assert opencl.find(wanted, variable="V").name == second.name


def test_a_missing_device_is_reported_with_all_that_were_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opencl, "devices", lambda: [FakeDevice("gpu", ""), FakeDevice("cpu", "SPIR-V_1.2")])
    with pytest.raises(opencl.DeviceError) as caught:
        opencl.find("gpu", variable="FOUNDRY_SPIRV_DEVICE")
    report = str(caught.value)
    assert "0: gpu (Some Platform): takes no SPIR-V" in report
    assert "1: cpu (Some Platform): not named by FOUNDRY_SPIRV_DEVICE=gpu" in report
    # The images have no clinfo.
    assert "clinfo" not in report and "set FOUNDRY_SPIRV_DEVICE to the number" in report


def test_without_any_platform_the_report_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opencl, "devices", list)
    with pytest.raises(opencl.DeviceError, match="install an OpenCL driver"):
        opencl.find("", variable="V")


def test_a_device_with_an_address_space_of_its_own_refuses_kernels_that_make_pointers_of_numbers() -> None:
    device: Any = opencl.OpenCLDevice.__new__(opencl.OpenCLDevice)
    device.cl, device.shares = FakeDevice("Own Memory", "SPIR-V_1.2"), False
    with pytest.raises(opencl.DeviceError, match="kernel k makes pointers of numbers, which Own Memory cannot follow"):
        device.launcher(None, "k", ["*fp32"], addresses=True)


def test_drivers_that_end_or_hold_the_process_that_asks_them_are_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opencl, "_started", False)
    monkeypatch.setattr(opencl, "_PATIENCE", 5)
    assert opencl.inactive_reason(lambda: None) == ""

    none = opencl.DeviceError("there is no device", why="nobody made one")

    def no_device() -> None:
        raise none

    assert opencl.inactive_reason(no_device) == str(none)
    for broken in (os.abort, lambda: time.sleep(60), lambda: 1 / 0):
        assert "OpenCL's drivers did not say" in opencl.inactive_reason(broken)
