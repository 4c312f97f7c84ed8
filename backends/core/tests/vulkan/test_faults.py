"""Faults of a Vulkan machine: each error says what is wrong and what to do, and the process goes on where it can."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.errors import UnsupportedOperation
from foundry_core.runtime.launches import GridError
from foundry_core.vulkan import device as vulkan
from foundry_core.vulkan.array import DeviceTensor
from foundry_core.vulkan.library import VulkanError, library
from foundry_core.vulkan.memory import DeviceMemoryError
from triton.runtime.errors import OutOfResources


@triton.jit
def double_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y_ptr + offsets, 2 * tl.load(x_ptr + offsets, mask=mask), mask=mask)


@triton.jit
def astray_kernel(x_ptr, by, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK) + by
    tl.store(x_ptr + offsets, 2 * tl.load(x_ptr + offsets))


@triton.jit
def half_kernel(x_ptr):
    value = tl.load(x_ptr)
    tl.store(x_ptr, (value.to(tl.float64) * 3).to(tl.float32))


@triton.jit
def byte_kernel(x_ptr, n: tl.int8):
    tl.store(x_ptr, n.to(tl.float32))


@triton.jit
def product_kernel(x_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    places = x_ptr + i[:, None] * BLOCK + i[None, :]
    x = tl.load(places)
    tl.store(places, tl.dot(x, x, input_precision="ieee"))


def python(body: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a process of its own."""
    script = f"import sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\n" + textwrap.dedent(body)
    return subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **variables},
    )


OPEN = "from foundry_core.vulkan.device import opened\nprint(opened().name)"


def test_without_a_loader_the_error_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "libvulkan.so.1").write_text("not a library")
    done = python(OPEN, LD_LIBRARY_PATH=str(tmp_path))
    assert "Vulkan cannot be used\n  why:  no Vulkan loader: " in done.stderr
    assert "next: install a Vulkan loader and a driver, such as Debian's libvulkan1" in done.stderr


def test_without_a_driver_the_error_says_what_to_install() -> None:
    done = python(OPEN, VK_DRIVER_FILES="/nonexistent", VK_ICD_FILENAMES="/nonexistent")
    assert "no" in done.stderr and "driver" in done.stderr and "mesa-vulkan-drivers" in done.stderr


def test_a_crash_on_the_cpu_names_the_kernel_its_place_and_its_grid() -> None:
    if not vulkan.opened().is_cpu:
        pytest.skip("kernels end the process only where they run in it")
    found = python("""
        import numpy as np
        from foundry_core.tensor import Tensor
        from test_faults import astray_kernel
        x = np.ones(64, np.float32)
        astray_kernel[(2,)](Tensor(x), 0, BLOCK=32)
        print(x[0], flush=True)
        astray_kernel[(2,)](Tensor(x), 1 << 40, BLOCK=32)
    """)
    assert found.stdout == "2.0\n" and found.returncode < 0
    lines = Path(__file__).read_text().splitlines()
    place = f"{__file__}:{lines.index('def astray_kernel(x_ptr, by, BLOCK: tl.constexpr):')}"
    assert f"kernel astray_kernel ({place}) on a grid of 2 x 1 x 1 programs crashed (SIG" in found.stderr


def test_a_device_that_is_not_there_is_refused_with_those_that_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(vulkan.DEVICE_VARIABLE, "no such device")
    with pytest.raises(VulkanError, match="no Vulkan device fits FOUNDRY_VULKAN_DEVICE=no such device") as caught:
        vulkan.select_device()
    assert f"0: {vulkan.list_properties()[0].name.decode()}" in str(caught.value)


def test_a_device_that_lacks_what_every_kernel_needs_is_refused_by_the_features_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = vulkan.list_properties()
    for each in known:
        each.vulkanMemoryModel = each.shuffle = 0
    monkeypatch.setattr(vulkan, "list_properties", lambda: known)
    with pytest.raises(VulkanError, match="without vulkanMemoryModel, subgroup shuffles"):
        vulkan.select_device()


def test_a_kernel_that_needs_a_feature_is_refused_with_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vulkan.opened().properties, "shaderFloat64", 0)
    monkeypatch.setattr(vulkan.opened().properties, "storagePushConstant8", 0)
    x = DeviceTensor.zeros(1)
    with pytest.raises(UnsupportedOperation, match="shaderFloat64") as caught:
        half_kernel[(1,)](x)
    line = half_kernel.starting_line_number + 3
    assert f"{Path(__file__).name}:{line}" in str(caught.value)
    with pytest.raises(UnsupportedOperation, match="storagePushConstant8"):
        byte_kernel[(1,)](x, 3)


def test_too_large_tiles_are_refused_with_the_line_by_the_error_that_the_autotuner_skips() -> None:
    # 1 MiB for each operand, more than any device has.
    x = DeviceTensor.zeros((512, 512))
    with pytest.raises(OutOfResources, match=r"workgroup memory.*test_faults\.py:\d+.*512x512xf32"):
        product_kernel[(1,)](x, BLOCK=512)


def test_too_many_invocations_are_refused() -> None:
    known = vulkan.opened().properties
    x = DeviceTensor.zeros(16)
    with pytest.raises(OutOfResources, match=f"threads, .* Hardware limit: {known.invocations}"):
        double_kernel[(1,)](x, x, 16, BLOCK=16, num_warps=2 * known.invocations // known.subgroup)


def test_largest_workgroup_of_the_device_runs() -> None:
    known = vulkan.opened().properties
    x, y = (DeviceTensor.from_numpy(each) for each in (np.arange(16, dtype=np.float32), np.full(16, -1, np.float32)))
    double_kernel[(1,)](x, y, 16, BLOCK=16, num_warps=known.invocations // known.subgroup)
    assert y.numpy().tolist() == [2.0 * number for number in range(16)]


def test_a_kernel_that_the_driver_does_not_compile_names_what_to_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library(), "pipeline", lambda *arguments: None)
    with pytest.raises(VulkanError, match="did not compile the kernel empty") as caught:
        vulkan.Pipeline(vulkan.opened(), b"", "empty", 0, 8)
    assert "smaller blocks, or a larger num_warps=" in str(caught.value)


def test_a_grid_beyond_the_device_is_refused() -> None:
    x = DeviceTensor.zeros(16)
    with pytest.raises(GridError, match="use the first axis"):
        double_kernel[(1, 1, 1 << 17)](x, x, 16, BLOCK=16)


def test_out_of_memory_says_what_is_held_and_the_device_is_usable_after_it() -> None:
    with pytest.raises(DeviceMemoryError, match=r"This process holds [0-9]+ bytes") as caught:
        DeviceTensor(1 << 50)
    assert "next: delete DeviceTensors" in str(caught.value)
    assert DeviceTensor.full(4, 3.0).numpy().tolist() == [3] * 4


def test_memory_that_is_kept_is_released_before_an_allocation_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    del_me = DeviceTensor(9 << 20, np.uint8)
    del del_me
    native, failures = library().allocate, [0]
    freed: list[Any] = []
    monkeypatch.setattr(library(), "allocate", lambda *arguments: failures.pop() if failures else native(*arguments))
    free = library().free

    def noted(*arguments: Any) -> Any:
        freed.append(arguments)
        return free(*arguments)

    monkeypatch.setattr(library(), "free", noted)
    assert DeviceTensor(77 << 20, np.uint8).numel() == 77 << 20
    assert freed


def test_a_device_that_was_lost_is_said_to_be_and_takes_nothing_more() -> None:
    done = python(
        """
        from foundry_core.vulkan.array import DeviceTensor
        from foundry_core.vulkan.library import library
        x = DeviceTensor.zeros(4)
        # As the C library answers after VK_ERROR_DEVICE_LOST.
        library().wait = lambda *arguments: 0
        library().state = lambda *arguments: 1
        library().error = lambda: b"waiting for the device: the device was lost (VkResult -4)"
        x.numpy()
        """
    )
    assert "was lost\n  why:  waiting for the device: the device was lost (VkResult -4)" in done.stderr
    assert "next: start the process again" in done.stderr


def test_a_kernel_that_does_not_end_is_given_up_and_the_device_is_usable_once_it_ends() -> None:
    if not vulkan.opened().shares_memory:
        pytest.skip("a device with memory of its own keeps the flag, so the host cannot let a running kernel end")
    done = python(
        """
        import numpy as np
        from foundry_core.vulkan.array import DeviceTensor
        from foundry_core.vulkan.device import opened
        from foundry_core.vulkan.library import VulkanError
        from waiting import wait_kernel

        flag, seen = np.zeros(1, np.int32), DeviceTensor.zeros(1, np.int32)
        for use in (lambda: wait_kernel[(1,)](flag, seen), lambda: seen.numpy()):
            try:
                use()
            except VulkanError as error:
                print(error, len(opened().abandoned))
        flag[0] = 1  # the host lets it end: its array is used in place
        for _ in range(1000):
            try:
                value = seen.numpy()[0]
                opened().wait()
                print(value, opened().abandoned)
                break
            except VulkanError:
                pass
        """,
        FOUNDRY_VULKAN_TIMEOUT="1",
        FOUNDRY_VULKAN_MEMORY="import",
    )
    said = done.stdout
    assert "a kernel did not end within 1 s" in said, done.stderr
    assert "a kernel that did not end within 1 s still runs" in said
    assert said.count("takes nothing else from this process 1\n") == 2
    assert "set FOUNDRY_VULKAN_TIMEOUT to more seconds; if it never ends, start the process again" in said
    # What it used is kept until it has ended.
    assert said.splitlines()[-1] == "1 []"


def test_a_process_with_a_kernel_that_never_ends_can_end() -> None:
    done = python(
        """
        from foundry_core.vulkan.array import DeviceTensor
        from foundry_core.vulkan.device import opened
        from waiting import wait_kernel

        wait_kernel[(1,)](DeviceTensor.zeros(1, "int32"), DeviceTensor.zeros(1, "int32"))
        opened().wait()
        """,
        FOUNDRY_VULKAN_TIMEOUT="1",
    )
    assert "a kernel did not end within 1 s" in done.stderr
    assert done.returncode == 1


def test_a_child_of_fork_is_refused() -> None:
    done = python(
        """
        import os
        from foundry_core.vulkan.array import DeviceTensor
        from foundry_core.vulkan.library import VulkanError
        x = DeviceTensor.full(4, 2.0)
        assert x.numpy().sum() == 8
        if os.fork() == 0:
            try:
                x.numpy()
            except VulkanError as error:
                print(error, flush=True)
            finally:
                os._exit(0)
        os.wait()
        assert x.numpy().sum() == 8
        print("parent is well")
        """
    )
    assert "cannot be used in a child of fork()" in done.stdout, done.stderr
    assert 'next: start new processes: multiprocessing.get_context("spawn")' in done.stdout
    assert "parent is well" in done.stdout


def test_two_processes_share_a_device() -> None:
    body = """
        import numpy as np
        from foundry_core.vulkan.array import DeviceTensor
        from test_faults import double_kernel
        x = DeviceTensor.from_numpy(np.arange(64, dtype=np.float32))
        for _ in range(200):
            y = DeviceTensor(64).poison_()
            double_kernel[(1,)](x, y, 64, BLOCK=64)
        assert (y.numpy() == 2 * np.arange(64)).all()
        print("right")
        """
    script = f"import sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\n" + textwrap.dedent(body)
    both = [subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [each.communicate(timeout=300)[0].strip() for each in both] == ["right"] * 2


def test_tensors_of_cuda_are_refused_by_name() -> None:
    class OfCuda:
        device = type("device", (), {"type": "cuda"})
        dtype = "float32"

        def data_ptr(self) -> int:
            return 16

        def untyped_storage(self) -> Any:
            raise AssertionError("its memory is not touched")

    x = DeviceTensor.zeros(16)
    with pytest.raises(VulkanError, match="cannot take a tensor on cuda"):
        double_kernel[(1,)](OfCuda(), x, 16, BLOCK=16)
