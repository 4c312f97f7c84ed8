"""torch.vsi, as the reference device makes it: tensors, copies, views, streams, events, memory, the fallback."""

from __future__ import annotations

import ctypes
import gc
import io
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
import torch
import vpex

TYPES = (
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.bool,
)


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """No test may leak device memory, nor write beside a tensor."""
    gc.collect()
    before = torch.vsi.memory_blocks(), torch.vsi.memory_allocated(), torch.vsi.damaged_blocks()
    yield
    gc.collect()
    assert (torch.vsi.memory_blocks(), torch.vsi.memory_allocated(), torch.vsi.damaged_blocks()) == before


def test_the_reference_says_that_it_is_one() -> None:
    assert vpex.IS_REFERENCE
    assert "reference" in torch.vsi.get_device_name()


def test_device_is_known_by_the_name_vsi() -> None:
    assert torch.vsi.is_available() and torch.vsi.device_count() == 1 and torch.vsi.current_device() == 0
    tensor = torch.empty(3, device="vsi")
    assert tensor.device == torch.device("vsi", 0) and tensor.is_vsi and str(tensor.device) == "vsi:0"
    assert torch.accelerator.current_accelerator().type == "vsi"  # type: ignore[attr-defined]


def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(RuntimeError, match="there is one"):
        torch.empty(3, device="vsi:1")
    with pytest.raises(RuntimeError, match="there is one"):
        torch.vsi.set_device(1)
    with pytest.raises(ValueError, match="no device of type vsi"):
        torch.vsi.synchronize("cpu")
    with torch.vsi.device(0), torch.vsi.device("vsi:0"), torch.vsi._DeviceGuard(0):
        assert torch.vsi.current_device() == 0


def test_properties_are_the_hosts() -> None:
    properties = torch.vsi.get_device_properties()
    free, total = torch.vsi.mem_get_info()
    assert properties.total_memory == total > free > 0
    assert properties.multi_processor_count >= 1 and properties.warp_size == 32


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (3, 5), (2, 0, 3), (2, 3, 4, 5)], ids=str)
def test_copies_there_and_back_are_the_same(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    values = (torch.randn(shape) * 50).to(dtype)
    on_device = values.to("vsi")
    assert on_device.device.type == "vsi" and on_device.shape == values.shape and on_device.dtype == dtype
    assert torch.equal(on_device.cpu(), values)
    assert torch.equal(on_device.clone().cpu(), values)


def test_copies_change_type_and_layout() -> None:
    values = torch.arange(12.0).reshape(3, 4)
    on_device = torch.empty(4, 3, dtype=torch.int32, device="vsi")
    on_device.copy_(values.t())
    assert on_device.cpu().tolist() == values.t().int().tolist()
    assert torch.equal(on_device.to(torch.float64).cpu(), values.t().double())
    assert on_device.t().contiguous().cpu().tolist() == values.int().tolist()
    elsewhere = torch.zeros(2, 4)
    elsewhere.copy_(values.to("vsi")[1:])
    assert torch.equal(elsewhere, values[1:])


def test_a_broadcast_copy_fills_all_rows() -> None:
    target = torch.empty(3, 4, device="vsi")
    target.copy_(torch.arange(4.0))
    assert torch.equal(target.cpu(), torch.arange(4.0).expand(3, 4))


def test_views_share_memory() -> None:
    base = torch.arange(24.0).to("vsi")
    views = [base.view(4, 6), base.reshape(2, 3, 4).transpose(0, 2), base[3:9:2], base.as_strided((2, 2), (5, 1), 4)]
    expected = torch.arange(24.0)
    for view, same in zip(
        views,
        [
            expected.view(4, 6),
            expected.reshape(2, 3, 4).transpose(0, 2),
            expected[3:9:2],
            expected.as_strided((2, 2), (5, 1), 4),
        ],
        strict=True,
    ):
        assert torch.equal(view.cpu(), same)
        assert view.untyped_storage().data_ptr() == base.untyped_storage().data_ptr()
    views[0][1, 2] = -1
    assert base[8].item() == -1
    assert torch.equal(base.unfold(0, 4, 2).cpu(), base.cpu().unfold(0, 4, 2))


def test_uninitialised_memory_is_nan() -> None:
    assert torch.empty(1000, device="vsi").isnan().all().item()
    assert torch.empty_strided((3, 4), (8, 2), dtype=torch.float64, device="vsi").isnan().all().item()


@pytest.mark.parametrize("elements", [1, 3, 33, 1000])
def test_memory_is_aligned_for_every_opencl_type(elements: int) -> None:
    assert torch.empty(elements, device="vsi").data_ptr() % 128 == 0


def test_memory_is_host_memory() -> None:
    tensor = torch.zeros(4, dtype=torch.int32, device="vsi")
    (ctypes.c_int32 * 4).from_address(tensor.data_ptr())[2] = 5
    assert tensor.tolist() == [0, 0, 5, 0]


def test_memory_is_counted_and_given_back() -> None:
    torch.vsi.reset_peak_memory_stats()
    before = torch.vsi.memory_allocated()
    tensor = torch.empty(1000, device="vsi")
    view = tensor[10:]
    assert torch.vsi.memory_allocated() == before + 4000
    del tensor
    assert torch.vsi.memory_allocated() == before + 4000
    del view
    assert torch.vsi.memory_allocated() == before
    assert torch.vsi.max_memory_allocated() == before + 4000


@pytest.mark.parametrize("offset", [-1, 12])
def test_a_write_beside_a_tensor_is_noticed(offset: int) -> None:
    """In a process of its own: the damage is counted for good."""
    script = f"""
import ctypes, torch, vpex
tensor = torch.empty(3, device="vsi")
ctypes.c_char.from_address(tensor.data_ptr() + {offset}).value = 0
assert torch.vsi.damaged_blocks() == 0
del tensor
assert torch.vsi.damaged_blocks() == 1
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert ("before" if offset < 0 else "behind") + " a tensor" in done.stderr


def test_resizing_keeps_what_was_there() -> None:
    tensor = torch.arange(4.0).to("vsi")
    tensor.resize_(2, 3)
    assert tensor.flatten()[:4].tolist() == [0, 1, 2, 3] and tensor.flatten()[4:].isnan().all().item()
    storage = tensor.untyped_storage()
    storage.resize_(8)
    assert storage.nbytes() == 8
    tensor.resize_(2)
    assert tensor.tolist() == [0, 1]


def test_a_tensor_can_take_another_ones_storage() -> None:
    one, other = torch.arange(6.0).to("vsi"), torch.empty(0, device="vsi")
    other.set_(one.untyped_storage())  # type: ignore[call-overload]
    assert torch.equal(other.cpu(), one.cpu())
    other.set_(one.untyped_storage(), 1, (2, 2), (3, 1))
    assert other.tolist() == [[1, 2], [4, 5]]
    other.set_(one)
    assert other.data_ptr() == one.data_ptr()


def test_other_operators_are_computed_on_the_cpu_and_counted() -> None:
    a, b = torch.randn(5, 7), torch.randn(7, 3)
    before = torch.vsi.fallbacks()
    on_device = a.to("vsi") @ b.to("vsi")
    assert on_device.device.type == "vsi" and torch.equal(on_device.cpu(), a @ b)
    after = torch.vsi.fallbacks()
    assert {name for name in after if after[name] != before.get(name, 0)} == {"aten::mm.out"}


def test_operators_in_place_and_into_results_change_the_devices_memory() -> None:
    tensor = torch.arange(5.0).to("vsi")
    address = tensor.data_ptr()
    tensor.mul_(2).add_(1)
    tensor[1:3].zero_()
    assert tensor.tolist() == [1, 0, 0, 7, 9] and tensor.data_ptr() == address
    result = torch.empty(0, device="vsi")
    torch.add(tensor, tensor, out=result)
    assert result.tolist() == [2, 0, 0, 14, 18]
    first, second = torch.split(torch.cat([tensor, tensor]), 5)
    assert torch.equal(first.cpu(), second.cpu())


def test_gradients_flow_through_the_device() -> None:
    torch.manual_seed(5)
    model = torch.nn.Sequential(torch.nn.Linear(6, 9), torch.nn.GELU(), torch.nn.Linear(9, 2))
    values = torch.randn(4, 6)
    model(values).square().sum().backward()
    expected = [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]
    model.zero_grad()
    model.vsi()
    model(values.vsi()).square().sum().backward()  # type: ignore[attr-defined]
    gradients = [parameter.grad for parameter in model.parameters()]
    assert len(expected) == 4
    for one, other in zip(expected, gradients, strict=True):
        assert other is not None and other.device.type == "vsi"
        assert torch.equal(one, other.cpu())


@pytest.mark.parametrize("transposed", [False, True])
def test_convolutions_and_their_gradients_are_computed(transposed: bool) -> None:
    convolution = torch.nn.functional.conv_transpose2d if transposed else torch.nn.functional.conv2d
    torch.manual_seed(9)
    inputs = [torch.randn(2, 4, 9, 8), torch.randn(4, 3, 3, 3) if transposed else torch.randn(6, 2, 3, 3)]
    groups = 2
    inputs.append(torch.randn(6))
    results = []
    for device in ("cpu", "vsi"):
        leaves = [tensor.detach().to(device).requires_grad_() for tensor in inputs]
        result = convolution(*leaves, stride=2, padding=1, groups=groups)
        result.square().sum().backward()
        results.append([result.detach(), *(leaf.grad for leaf in leaves)])
    for one, other in zip(*results, strict=True):
        assert other.device.type == "vsi" and other.is_contiguous()
        torch.testing.assert_close(other.cpu(), one)


def test_a_convolutions_result_is_contiguous_whatever_its_inputs_are() -> None:
    inputs = [torch.randn(2, 4, 9, 8), torch.randn(6, 4, 3, 3)]
    last = [tensor.to("vsi").to(memory_format=torch.channels_last) for tensor in inputs]
    result = torch.nn.functional.conv2d(*last)
    assert result.is_contiguous()
    torch.testing.assert_close(result.cpu(), torch.nn.functional.conv2d(*inputs))


def test_conjugated_and_negated_views_are_copied_as_what_they_mean() -> None:
    values = torch.randn(3, 5, dtype=torch.complex64)
    on_device = values.to("vsi")
    assert torch.equal(on_device.conj().cpu(), values.conj())
    assert torch.equal(on_device.conj().imag.cpu(), values.conj().imag)
    target = torch.zeros(3, 5, dtype=torch.complex64)
    target.conj().copy_(on_device)
    assert torch.equal(target, values.conj())
    assert torch.view_as_real(on_device).untyped_storage().data_ptr() == on_device.untyped_storage().data_ptr()


def test_events_tell_time() -> None:
    start, end = (torch.vsi.Event(enable_timing=True) for _ in range(2))
    start.record()
    time.sleep(0.02)
    end.record()
    end.synchronize()
    assert end.query() and 20 <= start.elapsed_time(end) < 20_000


def test_streams_are_chosen_by_thread_and_context() -> None:
    default = torch.vsi.default_stream()
    assert torch.vsi.current_stream() == default and default.stream_id == 0
    one, other = torch.vsi.Stream(), torch.vsi.Stream()
    assert one != other and one.device == torch.device("vsi:0")
    seen = []
    with torch.vsi.stream(one):
        with torch.vsi.stream(other):
            assert torch.vsi.current_stream() == other
        with torch.vsi.stream(None):
            assert torch.vsi.current_stream() == one
        thread = threading.Thread(target=lambda: seen.append(torch.vsi.current_stream()))
        thread.start()
        thread.join()
    assert torch.vsi.current_stream() == default and seen == [default]
    one.wait_stream(other)
    one.wait_event(other.record_event())
    one.synchronize()
    assert one.query()
    torch.vsi.synchronize()


def test_random_numbers_follow_the_seed() -> None:
    torch.manual_seed(7)
    state = torch.vsi.get_rng_state()
    one = torch.rand(5, device="vsi").cpu()
    torch.vsi.manual_seed(7)
    assert torch.equal(torch.rand(5, device="vsi").cpu(), one)
    torch.vsi.set_rng_state(state)
    assert torch.equal(torch.rand(5, device="vsi").cpu(), one)
    assert not torch.equal(torch.rand(5, device="vsi").cpu(), one)
    generators = [torch.Generator("vsi").manual_seed(3) for _ in range(2)]
    drawn = [torch.randn(4, generator=generator, device="vsi").cpu() for generator in generators]
    assert torch.equal(*drawn)


def test_tensors_are_saved_and_loaded() -> None:
    tensor = torch.arange(6.0).reshape(2, 3).to("vsi")
    file = io.BytesIO()
    torch.save({"weight": tensor}, file)
    file.seek(0)
    loaded = torch.load(file)["weight"]
    assert loaded.device.type == "vsi" and torch.equal(loaded.cpu(), tensor.cpu())
    file.seek(0)
    assert torch.equal(torch.load(file, map_location="cpu")["weight"], tensor.cpu())


def test_another_release_of_torch_is_refused() -> None:
    script = "import torch; torch.__version__ = '2.99.0'; import vpex"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 1 and "compiled for PyTorch" in done.stderr and "2.99.0" in done.stderr
