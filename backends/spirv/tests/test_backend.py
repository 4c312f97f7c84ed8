"""The plugin in Triton: stages, caches, hooks, autotuning, and its errors."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.codegen.fingerprint import triton_fingerprint
from foundry_core.errors import UnsupportedOperation
from foundry_core.mapping.workitem.target import WorkItemTarget
from foundry_core.tensor import Tensor
from triton.compiler import CompiledKernel
from triton_spirv_backend.compiler import SpirvBackend, target
from triton_spirv_backend.opencl import DEVICE_VARIABLE, MEMORY_VARIABLE, SpirvDriver, open_device


@triton.jit
def increment_kernel(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + 1, mask=mask)


@triton.jit
def assembly_kernel(x_ptr):
    value = tl.load(x_ptr)
    tl.store(x_ptr, tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [value], tl.float32, is_pure=True, pack=1))


def increment(x: np.ndarray, block: int = 64) -> Any:
    return increment_kernel[(triton.cdiv(x.size, block),)](Tensor(x), x.size, BLOCK=block)


def test_every_stage_is_in_the_cache() -> None:
    kernel = increment(np.zeros(100, np.float32))
    # The first stage is Triton's own IR before its passes; 3.2 does not keep it.
    assert [stage for stage in kernel.asm if stage != "source"] == ["ttir", "tile", "mlir", "llir", "spv"]
    assert kernel.asm["spv"][:4] == b"\x03\x02\x23\x07"
    assert "spir_kernel void @increment_kernel" in kernel.asm["llir"]


def test_the_key_of_the_cache_identifies_triton_without_reading_libtriton() -> None:
    increment(np.zeros(100, np.float32))
    having = [module for module in (triton.runtime.cache, triton.compiler.compiler) if hasattr(module, "triton_key")]
    assert having and all(module.triton_key().endswith(triton_fingerprint()) for module in having)


def test_an_unsupported_operation_is_refused_with_its_name_and_line() -> None:
    line = assembly_kernel.starting_line_number + 3
    with pytest.raises(UnsupportedOperation) as caught:
        assembly_kernel[(1,)](Tensor(np.zeros(1, np.float32)))
    assert f"tt.elementwise_inline_asm at {__file__}:{line}" in str(caught.value)


def test_a_numpy_array_is_written_in_place_without_the_wrapper() -> None:
    array = np.arange(4, dtype=np.float32)
    increment_kernel[(1,)](array, 3, BLOCK=64)
    assert array.tolist() == [1, 2, 3, 3]


@contextmanager
def hooks(enter: Callable[[object], None], leave: Callable[[object], None]) -> Iterator[None]:
    """Call two functions before and after every launch."""
    if hasattr(triton, "knobs"):
        runtime = triton.knobs.runtime
        runtime.launch_enter_hook.add(enter)
        runtime.launch_exit_hook.add(leave)
        try:
            yield
        finally:
            runtime.launch_enter_hook.remove(enter)
            runtime.launch_exit_hook.remove(leave)
        return
    with pytest.MonkeyPatch.context() as patch:  # 3.2
        patch.setattr(CompiledKernel, "launch_enter_hook", enter)
        patch.setattr(CompiledKernel, "launch_exit_hook", leave)
        yield


def test_launch_hooks_surround_a_launch() -> None:
    x = np.zeros(10, np.float32)
    seen: list[tuple[str, str, float]] = []

    def enter(metadata: Any) -> None:
        seen.append(("enter", metadata.get()["name"], x[0]))

    def leave(metadata: Any) -> None:
        seen.append(("exit", metadata.get()["name"], x[0]))

    with hooks(enter, leave):
        increment(x)
    assert seen == [("enter", "increment_kernel", 0.0), ("exit", "increment_kernel", 1.0)]


def test_autotuning_picks_a_config_and_leaves_the_right_result() -> None:
    tuned = triton.autotune(
        configs=[triton.Config({"BLOCK": 64}, num_warps=8), triton.Config({"BLOCK": 256}, num_stages=4)],
        key=["n"],
        restore_value=["x_ptr"],
        do_bench=lambda call, quantiles: triton.testing.do_bench(call, warmup=1, rep=2, quantiles=quantiles),
    )(increment_kernel)
    x = np.zeros(1000, np.float32)
    tuned[lambda meta: (triton.cdiv(1000, meta["BLOCK"]),)](Tensor(x), 1000)
    assert tuned.best_config.kwargs["BLOCK"] in (64, 256)
    assert (x == 1).all()


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


def test_a_kernel_out_of_the_cache_does_not_load_the_lowering(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import numpy as np
import triton
from foundry_core.tensor import Tensor
from cached_kernel import store_kernel
x = np.zeros(1, np.float32)
store_kernel[(1,)](Tensor(x))
assert x[0] == 1
print("xdsl" in sys.modules)
"""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    loaded = [
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip()
        for _ in range(2)
    ]
    assert loaded == ["True", "False"]
