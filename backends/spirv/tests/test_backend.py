"""The plugin in Triton: its stages, the keys of its caches, its benchmarks, and its errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton
from foundry_core.codegen.programs import triton_fingerprint
from foundry_core.mapping.base.target import WorkItemTarget
from foundry_core.tensor import Tensor
from launch_cases import increment_kernel
from triton_spirv_backend.compiler import SpirvBackend, target
from triton_spirv_backend.opencl import DEVICE_VARIABLE, MEMORY_VARIABLE, SpirvDriver, open_device


def increment(x: np.ndarray) -> Any:
    return increment_kernel[(triton.cdiv(x.size, 64),)](Tensor(x), x.size, BLOCK=64)


def test_the_last_stages_are_llvm_ir_and_spirv() -> None:
    kernel = increment(np.zeros(100, np.float32))
    assert kernel.asm["spv"][:4] == b"\x03\x02\x23\x07"
    assert "spir_kernel void @increment_kernel" in kernel.asm["llir"]


def test_the_key_of_the_cache_identifies_triton_without_reading_libtriton() -> None:
    increment(np.zeros(100, np.float32))
    having = [module for module in (triton.runtime.cache, triton.compiler.compiler) if hasattr(module, "triton_key")]
    assert having and all(module.triton_key().endswith(triton_fingerprint()) for module in having)


def test_the_drivers_benchmarker_measures_a_launch() -> None:
    x = np.zeros(1000, np.float32)
    measured = triton.runtime.driver.active.get_benchmarker()(
        lambda: increment(x), warmup=1, rep=2, quantiles=(0.5, 0.2, 0.8)
    )
    assert len(measured) == 3
    assert all(milliseconds > 0 for milliseconds in measured)


def test_options_of_gpus_are_accepted_and_part_of_the_key() -> None:
    backend = SpirvBackend(target(WorkItemTarget()))
    plain, other = backend.parse_options({}), backend.parse_options({"num_warps": 8, "num_stages": 3})
    assert (other.num_warps, other.num_stages) == (8, 3)
    assert plain.hash() != other.hash()


def test_devices_of_different_vector_width_do_not_share_compiled_kernels() -> None:
    assert SpirvBackend(target(WorkItemTarget(32))).hash() != SpirvBackend(target(WorkItemTarget(64))).hash()


def test_a_device_that_is_not_there_makes_the_driver_inactive_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    assert SpirvDriver.is_active()
    monkeypatch.setenv(DEVICE_VARIABLE, "no such device")
    assert not SpirvDriver.is_active()
    reason = SpirvDriver.inactive_reason()
    assert f"no OpenCL device fits {DEVICE_VARIABLE}=no such device" in reason
    assert open_device().device_report().device in reason


def test_an_unknown_memory_mode_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MEMORY_VARIABLE, "telepathy")
    open_device.cache_clear()
    try:
        with pytest.raises(Exception, match="the modes are svm and buffer"):
            open_device()
    finally:
        monkeypatch.undo()
        open_device.cache_clear()
