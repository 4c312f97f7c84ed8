"""Launches on a Vulkan device: where arrays are, how many arguments and programs there are, and their events."""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.runtime.launches import GridError
from foundry_core.vulkan import launcher, store
from foundry_core.vulkan.array import DeviceTensor
from foundry_core.vulkan.device import HostArrays, Pipeline, VulkanDevice, opened
from foundry_core.vulkan.library import library
from foundry_core.vulkan.memory import DeviceBuffer
from foundry_core.vulkan.timing import Event
from shared_kernels import place_kernel, scale_kernel


@triton.jit
def add_one_kernel(x_ptr):
    tl.store(x_ptr, tl.load(x_ptr) + 1)


# 40 pointers are more than 256 bytes of push constants.
@triton.jit
def many_kernel(
    out_ptr,
    n,
    p0,
    p1,
    p2,
    p3,
    p4,
    p5,
    p6,
    p7,
    p8,
    p9,
    p10,
    p11,
    p12,
    p13,
    p14,
    p15,
    p16,
    p17,
    p18,
    p19,
    p20,
    p21,
    p22,
    p23,
    p24,
    p25,
    p26,
    p27,
    p28,
    p29,
    p30,
    p31,
    p32,
    p33,
    p34,
    p35,
    p36,
    p37,
    p38,
    p39,
    BLOCK: tl.constexpr,
):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    total = tl.zeros((BLOCK,), tl.float32)
    total += 1 * tl.load(p0 + offsets, mask=mask)
    total += 2 * tl.load(p1 + offsets, mask=mask)
    total += 3 * tl.load(p2 + offsets, mask=mask)
    total += 4 * tl.load(p3 + offsets, mask=mask)
    total += 5 * tl.load(p4 + offsets, mask=mask)
    total += 6 * tl.load(p5 + offsets, mask=mask)
    total += 7 * tl.load(p6 + offsets, mask=mask)
    total += 8 * tl.load(p7 + offsets, mask=mask)
    total += 9 * tl.load(p8 + offsets, mask=mask)
    total += 10 * tl.load(p9 + offsets, mask=mask)
    total += 11 * tl.load(p10 + offsets, mask=mask)
    total += 12 * tl.load(p11 + offsets, mask=mask)
    total += 13 * tl.load(p12 + offsets, mask=mask)
    total += 14 * tl.load(p13 + offsets, mask=mask)
    total += 15 * tl.load(p14 + offsets, mask=mask)
    total += 16 * tl.load(p15 + offsets, mask=mask)
    total += 17 * tl.load(p16 + offsets, mask=mask)
    total += 18 * tl.load(p17 + offsets, mask=mask)
    total += 19 * tl.load(p18 + offsets, mask=mask)
    total += 20 * tl.load(p19 + offsets, mask=mask)
    total += 21 * tl.load(p20 + offsets, mask=mask)
    total += 22 * tl.load(p21 + offsets, mask=mask)
    total += 23 * tl.load(p22 + offsets, mask=mask)
    total += 24 * tl.load(p23 + offsets, mask=mask)
    total += 25 * tl.load(p24 + offsets, mask=mask)
    total += 26 * tl.load(p25 + offsets, mask=mask)
    total += 27 * tl.load(p26 + offsets, mask=mask)
    total += 28 * tl.load(p27 + offsets, mask=mask)
    total += 29 * tl.load(p28 + offsets, mask=mask)
    total += 30 * tl.load(p29 + offsets, mask=mask)
    total += 31 * tl.load(p30 + offsets, mask=mask)
    total += 32 * tl.load(p31 + offsets, mask=mask)
    total += 33 * tl.load(p32 + offsets, mask=mask)
    total += 34 * tl.load(p33 + offsets, mask=mask)
    total += 35 * tl.load(p34 + offsets, mask=mask)
    total += 36 * tl.load(p35 + offsets, mask=mask)
    total += 37 * tl.load(p36 + offsets, mask=mask)
    total += 38 * tl.load(p37 + offsets, mask=mask)
    total += 39 * tl.load(p38 + offsets, mask=mask)
    total += 40 * tl.load(p39 + offsets, mask=mask)
    tl.store(out_ptr + offsets, total, mask=mask)


@pytest.fixture(
    params=[(HostArrays.IMPORT, True), (HostArrays.COPY, True), (HostArrays.COPY, False)],
    ids=["import", "copy", "stage"],
)
def reach(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test in each way to reach arrays of the host; the last is that of a GPU with memory of its own."""
    reach, shares = request.param
    monkeypatch.setattr(opened(), "reach", reach)
    monkeypatch.setattr(VulkanDevice, "shares_memory", shares)


@pytest.mark.parametrize("skipped", [0, 1, 3])
def test_results_arrive_in_arrays_of_the_host_at_any_address(reach: None, skipped: int) -> None:
    x = np.arange(1000 + skipped, dtype=np.float32)[skipped:]
    whole = np.full(1010, np.nan, np.float32)
    y = whole[skipped : skipped + 1000]
    scale_kernel[(4,)](x, y, 1000, 3.0, BLOCK=256)
    assert np.array_equal(y, 3 * x)
    assert np.isnan(whole[:skipped]).all() and np.isnan(whole[skipped + 1000 :]).all()


def test_a_read_only_file_is_an_argument_that_the_driver_is_not_asked_to_share(
    reach: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launcher, "ImportedMemory", None)
    np.arange(100, dtype=np.float32).tofile(tmp_path / "x")
    x, y = np.memmap(tmp_path / "x", np.float32, "r"), np.full(100, np.nan, np.float32)
    scale_kernel[(1,)](np.asarray(x), y, 100, 3.0, BLOCK=256)
    assert np.array_equal(y, 3 * np.arange(100))


def test_arrays_of_the_host_and_of_the_device_mix(reach: None) -> None:
    x, y = np.arange(100, dtype=np.float32), DeviceTensor(100).poison_()
    scale_kernel[(1,)](x, y, 100, 2.0, BLOCK=256)
    z = np.full(100, np.nan, np.float32)
    scale_kernel[(1,)](y, z, 100, 2.0, BLOCK=256)
    assert np.array_equal(z, 4 * x)


def test_a_number_that_does_not_fit_is_refused_and_the_array_is_free_afterwards(reach: None) -> None:
    x = np.zeros(4, np.float32)
    scale_kernel[(1,)](x, x, 4, 2.0, BLOCK=256)
    with pytest.raises(Exception, match=r"(?i)range|int|argument"):
        scale_kernel[(1,)](x, x, 1 << 70, 2.0, BLOCK=256)
    scale_kernel[(1,)](x, x, 4, 2.0, BLOCK=256)


def test_launches_on_device_arrays_happen_in_order_without_waiting() -> None:
    x = DeviceTensor.zeros(1)
    add_one_kernel[(1,)](x)
    before, count = library().submitted(opened().handle), 1300
    for _ in range(count):
        add_one_kernel[(1,)](x)
    assert x.numpy()[0] == count + 1
    assert 0 < library().submitted(opened().handle) - before < count


@triton.jit
def add_three_kernel(x_ptr, a, b, c):
    tl.store(x_ptr, tl.load(x_ptr) + a + b + c)


def test_a_launch_on_device_arrays_calls_no_function_of_python_for_a_number() -> None:
    x = DeviceTensor.zeros(1)

    def called(launch: Any) -> list[str]:
        launch()
        launch()
        names: list[str] = []

        def note(frame: Any, event: str, _: object) -> None:
            if event == "call" and re.search("foundry_core|triton_spirv_backend", frame.f_code.co_filename):
                names.append(frame.f_code.co_name)

        sys.setprofile(note)
        try:
            launch()
        finally:
            sys.setprofile(None)
        return names

    without = called(lambda: add_one_kernel[(1,)](x))
    assert called(lambda: add_three_kernel[(1,)](x, 2, 3.0, 0.5)) == without
    assert {"bound", "__call__", "launch_directly"} <= {*without} and len(without) <= 8
    # It is too large for f32.
    add_three_kernel[(1,)](x, 2, 3.0, 1e39)
    assert np.isinf(x.numpy()[0])


@triton.jit
def passed_kernel(
    out_ptr,
    i8: tl.int8,
    i16: tl.int16,
    i32: tl.int32,
    i64: tl.int64,
    u8: tl.uint8,
    u16: tl.uint16,
    u32: tl.uint32,
    u64: tl.uint64,
    f32: tl.float32,
    f64: tl.float64,
    bool: tl.int1,
):
    tl.store(out_ptr + 0, i8.to(tl.int64))
    tl.store(out_ptr + 1, i16.to(tl.int64))
    tl.store(out_ptr + 2, i32.to(tl.int64))
    tl.store(out_ptr + 3, i64)
    tl.store(out_ptr + 4, u8.to(tl.int64))
    tl.store(out_ptr + 5, u16.to(tl.int64))
    tl.store(out_ptr + 6, u32.to(tl.int64))
    tl.store(out_ptr + 7, u64.to(tl.int64, bitcast=True))
    tl.store(out_ptr + 8, f32.to(tl.int32, bitcast=True).to(tl.int64))
    tl.store(out_ptr + 9, f64.to(tl.int64, bitcast=True))
    tl.store(out_ptr + 10, bool.to(tl.int64))


class Five:
    """A number that is not one of Python's."""

    def __index__(self) -> int:
        return 5


_HUGE: list[Any] = [(1 << 63) - 1, -(1 << 63), 1 << 63, (1 << 64) - 1, 1 << 64, -(1 << 63) - 1]
_LIMITS: list[Any] = [
    sign * (1 << bits) + more for bits in (7, 8, 15, 16, 31, 32) for sign in (1, -1) for more in (-1, 0)
]
_FLOATS: list[Any] = [0.0, -0.0, 3.4028235677973366e38, 1e39, -1e300, 1e-46, 5e-324, float("inf"), float("nan"), 0.1]


def test_numbers_that_c_packs_are_those_that_python_packs() -> None:
    out = DeviceTensor(11, np.int64).poison_()
    fixed = dict.fromkeys(("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"), 1) | {
        "f32": 1.0,
        "f64": 1.0,
        "bool": True,
    }
    run = passed_kernel[(1,)](out, **fixed).run
    assert out.numpy()[:8].tolist() == [1] * 8 and run._direct is not None
    names = list(passed_kernel.arg_names)

    def outcome(name: str, value: Any) -> list[int] | str:
        out.poison_()
        try:
            run(1, 1, 1, 0, b"", *[None] * 4, out, *(fixed | {name: value}).values())
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return [int(each) for each in out.numpy()]

    for name in names[1:]:
        for value in (*_HUGE, *_LIMITS, *_FLOATS, True, None, "2", Five(), np.int8(-3), np.float32(0.1)):
            packed = outcome(name, value)
            direct, run._direct = run._direct, None
            try:
                assert packed == outcome(name, value), (name, value)
            finally:
                run._direct = direct
    assert outcome("u64", (1 << 64) - 1)[7] == -1 and outcome("f32", 1e39)[8] == 0x7F800000


@pytest.mark.parametrize("side", [0, -1, 1.0, True, 1 << 31, 1 << 40, 1 << 70, None, Five(), np.int32(2)])
def test_grids_that_c_reads_are_those_that_python_reads(side: Any) -> None:
    out = DeviceTensor(64, np.int32)

    def outcome(*grid: Any) -> list[int] | str:
        out.poison_()
        try:
            run(*grid, 0, b"", *[None] * 4, out)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return [int(each) for each in out.numpy()]

    run = place_kernel[(1,)](out).run
    for grid in ((side, 1, 1), (1, side, 1), (1, 1, side)):
        packed = outcome(*grid)
        direct, run._direct = run._direct, None
        try:
            assert direct is not None and packed == outcome(*grid)
        finally:
            run._direct = direct


def test_a_kernel_takes_arrays_of_the_device_after_some_of_the_host() -> None:
    host, device, grids = np.zeros(1, np.float32), DeviceTensor.zeros(1), []

    def grid(meta: dict[str, Any]) -> tuple[int]:
        grids.append(meta["x_ptr"])
        return (1,)

    for array in (device, host, device, host):
        add_three_kernel[grid](array, 1, 2, 4.0)
    assert host[0] == device.numpy()[0] == 14
    assert [type(array) for array in grids] == [DeviceTensor, np.ndarray] * 2
    with pytest.raises(GridError):
        add_three_kernel[(1.0,)](device, 1, 2, 4.0)
    assert device.numpy()[0] == 14


def test_an_interrupt_ends_a_wait_and_leaves_the_device_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    x = DeviceTensor.zeros(1)
    native, calls = library().wait, []

    def busy(*arguments: Any) -> int:
        calls.append(arguments)
        signal.raise_signal(signal.SIGINT)
        return -1

    add_one_kernel[(1,)](x)
    monkeypatch.setattr(library(), "wait", busy)
    with pytest.raises(KeyboardInterrupt):
        x.numpy()
    monkeypatch.setattr(library(), "wait", native)
    add_one_kernel[(1,)](x)
    assert x.numpy()[0] == 2 and len(calls) == 1


def test_arguments_that_cannot_be_pushed_are_in_a_buffer() -> None:
    arrays = [np.full(32, number, np.float32) for number in range(40)]
    expected = sum((number + 1) * array for number, array in enumerate(arrays))
    y, on_device = DeviceTensor(32).poison_(), [DeviceTensor.from_numpy(array) for array in arrays]
    # More launches than a batch's buffer has room for.
    for _ in range(1100):
        kernel = many_kernel[(1,)](y, 32, *on_device, BLOCK=32)
    assert kernel.metadata.argument_bytes > opened().properties.push_bytes
    assert np.array_equal(y.numpy(), expected)
    z = np.full(32, np.nan, np.float32)
    many_kernel[(1,)](z, 32, *arrays, BLOCK=32)
    assert np.array_equal(z, expected)


def test_a_grid_may_be_larger_than_a_dispatch() -> None:
    count = 3 * 65535 + 7
    out = DeviceTensor(count, np.int32).poison_()
    place_kernel[(count,)](out)
    assert np.array_equal(out.numpy(), np.arange(count))
    small = DeviceTensor((4, 3, 2), np.int32).poison_()
    place_kernel[(2, 3, 4)](small)
    z, y, x = np.indices(small.shape)
    assert np.array_equal(small.numpy(), x + 10 * y + 100 * z)


def test_loads_whose_mask_is_not_set_read_zeros_whatever_their_memory_had(monkeypatch: pytest.MonkeyPatch) -> None:
    def dirty(owner: VulkanDevice, size: int, *, of_host: bool) -> DeviceBuffer:
        found = DeviceBuffer(owner, size, of_host=of_host)
        owner.fill(found, 0, size, 0x7FC00000)
        return found

    device = opened()
    with monkeypatch.context() as patch:
        patch.setattr("foundry_core.vulkan.device.DeviceBuffer", dirty)
        # Another one than that of launches.
        spare = vars(VulkanDevice)["spare"].func(device)
    found = np.full(16, 0xFF, np.uint8)
    device.download(spare, 0, found.ctypes.data, found.nbytes)
    np.testing.assert_array_equal(found, 0)


def test_events_measure_what_is_between_them() -> None:
    interface = triton.runtime.driver.active.get_device_interface()
    x, y = DeviceTensor.zeros(1 << 20), DeviceTensor.zeros(1 << 20)
    scale_kernel[(4096,)](x, y, 1 << 20, 2.0, BLOCK=256)
    interface.synchronize()
    events = [Event(enable_timing=True) for _ in range(4)]
    started = time.perf_counter()
    for event in events[:3]:
        event.record()
        scale_kernel[(4096,)](x, y, 1 << 20, 2.0, BLOCK=256)
    events[3].record()
    interface.synchronize()
    wall = (time.perf_counter() - started) * 1e3
    assert all(event.query() for event in events)
    parts = [before.elapsed_time(after) for before, after in itertools.pairwise(events)]
    # Each part has a launch in it, together they are the whole, and the whole was waited for.
    assert all(part > 0 for part in parts)
    assert sum(parts) == pytest.approx(events[0].elapsed_time(events[3]))
    assert sum(parts) <= wall


def test_a_launch_is_in_one_batch_with_the_events_around_it() -> None:
    x = DeviceTensor.zeros(1)
    start, end = Event(enable_timing=True), Event(enable_timing=True)

    def together() -> bool:
        opened().wait()
        start.record()
        time.sleep(5e-4)  # in which the thread that submits would take the start alone
        add_one_kernel[(1,)](x)
        end.record()
        return start._number == end._number

    # A busy machine may let this process rest for longer than a batch is left open.
    assert any(together() for _ in range(100))


def test_an_event_can_be_recorded_again_before_it_is_reached() -> None:
    x = DeviceTensor.zeros(1)
    start, end = Event(enable_timing=True), Event(enable_timing=True)
    started = time.perf_counter()
    for _ in range(3):
        for event in (start, end):
            event.record()
            add_one_kernel[(1,)](x)
    assert 0 < start.elapsed_time(end) < (time.perf_counter() - started) * 1e3
    assert x.numpy()[0] == 6


def test_an_event_that_nobody_waits_for_is_reached() -> None:
    event = Event(enable_timing=True)
    event.record()
    end = time.monotonic() + 60
    while not event.query():
        assert time.monotonic() < end, "it was not submitted"


def test_do_bench_and_autotune_work_unchanged() -> None:
    tuned = triton.autotune(
        configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 256}, num_warps=8)],
        key=["n"],
        restore_value=["out"],
        do_bench=lambda call, quantiles: triton.testing.do_bench(call, warmup=1, rep=2, quantiles=quantiles),
    )(scale_kernel)
    x, y = DeviceTensor.full(1000, 2.0), DeviceTensor(1000).poison_()
    tuned[lambda meta: (triton.cdiv(1000, meta["BLOCK"]),)](x, y, 1000, 3.0)
    assert (y.numpy() == 6).all()


def test_hooks_surround_a_launch() -> None:
    x, seen = DeviceTensor.zeros(1), []
    runtime = triton.knobs.runtime
    enter, leave = (lambda data, name=name: seen.append((name, data.get()["name"])) for name in ("enter", "leave"))
    runtime.launch_enter_hook.add(enter)
    runtime.launch_exit_hook.add(leave)
    try:
        add_one_kernel[(1,)](x)
    finally:
        runtime.launch_enter_hook.remove(enter)
        runtime.launch_exit_hook.remove(leave)
    assert seen == [("enter", "add_one_kernel"), ("leave", "add_one_kernel")]
    assert x.numpy()[0] == 1


def test_a_compiled_kernel_is_kept_on_disk_and_a_damaged_file_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = DeviceTensor.zeros(1)
    # The launch may keep the kernel on disk, too: elsewhere.
    kernel = add_one_kernel[(1,)](x)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    device, spirv = opened(), kernel.asm["spv"]
    given: list[object] = []

    def noted(*arguments: Any) -> Any:
        given.append(arguments[-2])
        return native(*arguments)

    native = library().pipeline
    monkeypatch.setattr(library(), "pipeline", noted)

    def compile() -> None:
        Pipeline(device, spirv, "add_one_kernel", kernel.metadata.argument_bytes, device.properties.subgroup)

    file = store.kernel_file(device.properties, spirv)
    assert file.is_relative_to(tmp_path)
    compile()
    kept = file.read_bytes()
    compile()
    assert given == [b"", store.read_kernel_file(file)] and given[1]
    file.write_bytes(kept[:-1] + bytes([kept[-1] ^ 1]))
    compile()
    assert given[2] == b"" and store.read_kernel_file(file)
    assert [each.name for each in file.parent.iterdir()] == [file.name]


def test_answers_of_a_device_are_kept_on_disk_and_it_is_tried_again_if_the_file_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    device, tried = opened(), []

    def fuses(width: int) -> bool:
        tried.append(width)
        return width == 64

    monkeypatch.setattr(device, "_fuses", fuses)
    find = vars(VulkanDevice)["fuses"].func
    assert find(device) == find(device) == (64,) and tried == [32, 64]
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    file.write_bytes(file.read_bytes()[:-1] + b"\x20")
    assert find(device) == (64,) and tried == [32, 64] * 2


def test_a_kernel_from_the_caches_is_launched_without_what_compiles_one(tmp_path: Path) -> None:
    script = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent.parent)!r})
from foundry_core.vulkan.array import DeviceTensor
from shared_kernels import place_kernel
out = DeviceTensor(2, "int32").poison_()
place_kernel[(1,)](out)
assert out.numpy().tolist() == [0, -1]
print("xdsl" in sys.modules)
"""
    variables = os.environ | {"TRITON_CACHE_DIR": str(tmp_path), "FOUNDRY_VULKAN_VALIDATION": "0"}
    words = [sys.executable, "-c", script]
    said = [subprocess.run(words, env=variables, check=True, capture_output=True, text=True).stdout for _ in range(2)]
    assert said == ["True\n", "False\n"]


def test_threads_launch_the_same_kernel() -> None:
    arrays = [(DeviceTensor.full(5000, number), DeviceTensor(5000)) for number in range(4)]
    wrong: list[int] = []

    def work(number: int) -> None:
        x, y = arrays[number]
        for _ in range(20):
            y.poison_()
            scale_kernel[(20,)](x, y, 5000, 3.0, BLOCK=256)
            if not (y.numpy() == 3 * number).all():
                wrong.append(number)

    work(0)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
