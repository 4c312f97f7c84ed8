"""OpenCL: how memory is grouped into buffers, how a missing device is reported, and how PoCL reads its library."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import triton
from foundry_core.spans import memory_spans
from foundry_core.tensor import Tensor

pytest.importorskip("pyopencl", reason="this image has no OpenCL")

import pyopencl as cl
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


@pytest.mark.parametrize(
    ("platform", "version", "reported", "used"),
    [
        ("Portable Computing Language", "OpenCL 3.0 PoCL HSTR: cpu-aarch64-unknown-linux-gnu-(null)", 1, 16),
        ("Portable Computing Language", "OpenCL 3.0 PoCL HSTR: cpu-x86_64-pc-linux-gnu-sandybridge", 16, 32),
        ("Some Platform", "OpenCL 3.0", 1, 4),
    ],
)
def test_vectors_are_those_of_the_processor_that_pocl_does_not_know(
    platform: str, version: str, reported: int, used: int
) -> None:
    device: Any = FakeDevice("cpu", "SPIR-V_1.2")
    device.platform = SimpleNamespace(name=platform)
    device.version, device.native_vector_width_float, device.single_fp_config = version, reported, 0
    assert opencl.work_item_target(device).vector_bytes == used


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


# Functions that call others, of several types, with tables; an own function with the name of one; and printf.
SOURCE = """
float recip(float x) { return 1 / x; }
kernel void f(global float4 *x, global double *d, global int *i) {
    int g = get_global_id(0);
    float4 v = x[g];
    x[g] = sin(v) + lgamma(v) * pow(v, v.wzyx) + convert_float4(convert_int4_sat_rte(v)) + recip(v.x);
    d[g] = tgamma(d[g]) + sinpi(d[g]);
    atomic_add(i, clz(g) + mul_hi(g, g));
    barrier(CLK_LOCAL_MEM_FENCE);
    if (g == 0) printf("%f\\n", d[0]);
}
"""
SCRIPT = f"""
import sys
from pathlib import Path
import numpy, pyopencl as cl
from foundry_core.runtime import opencl
from foundry_core.runtime import pocl
if sys.argv[1] == "whole":
    pocl._LAZY_READER = Path("/missing")
device = next(each for each in opencl.devices() if "Portable Computing Language" in each.platform.name)
context = cl.Context([device])
kernel = cl.Kernel(cl.Program(context, {SOURCE!r}).build(), "f")
buffers = [cl.Buffer(context, cl.mem_flags.READ_WRITE, 1024) for _ in range(3)]
kernel(cl.CommandQueue(context), (8,), (4,), *buffers).wait()
"""


@pytest.mark.skipif(
    not any("Portable Computing Language" in each.name for each in cl.get_platforms()), reason="PoCL is not here"
)
def test_pocl_compiles_the_same_bytes_with_the_lazy_library_reader(tmp_path: Path) -> None:
    objects = {}
    for how in ("whole", "lazily"):
        folder, said = tmp_path / how, tmp_path / f"{how}.txt"
        folder.mkdir()
        traced = {"LD_DEBUG": "bindings", "LD_DEBUG_OUTPUT": str(said)}
        own = {"POCL_CACHE_DIR": str(folder), "PYOPENCL_NO_CACHE": "1"}
        subprocess.run([sys.executable, "-c", SCRIPT, how], env=os.environ | own | traced, check=True)
        (objects[how],) = (path.read_bytes() for path in folder.rglob("*.so"))
        bindings = "".join(path.read_text() for path in tmp_path.glob(f"{how}.txt.*")).splitlines()
        ours = [line for line in bindings if "/libpocl.so" in line and "/pocl.so" in line]
        assert bool(ours) == (how == "lazily")
    assert objects["lazily"] == objects["whole"]
