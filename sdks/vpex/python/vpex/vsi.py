"""torch.vsi: the device's part of PyTorch's interface, as torch.cuda and torch.xpu have it.

There is one device. What is asked of it is done when the call returns: a stream is a name, synchronising is at once,
and an event is the time at which it was recorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import torch

_NAME = "VeriSilicon reference device (host memory)"


@dataclass(frozen=True)
class Properties:
    """Properties of the device.

    Attributes:
        total_memory: bytes; the host's. multi_processor_count: the host's processors. warp_size: what Triton takes a
            warp to be on `vsi`.
    """

    name: str
    total_memory: int
    multi_processor_count: int
    warp_size: int = 32


# ---- the device


def is_available() -> bool:
    return True


def is_initialized() -> bool:
    return True


def init() -> None:
    """Nothing to do: importing vpex did it."""


_lazy_init = init


def _is_in_bad_fork() -> bool:
    """Return False: a forked child process can go on using the device, which is memory."""
    return False


def device_count() -> int:
    return 1


def current_device() -> int:
    return 0


def _index(device: Any) -> int:
    """The number that a device goes by; None is the current one.

    Raises:
        ValueError: a device of another type. RuntimeError: there is no such device.
    """
    if device is None:
        return 0
    if not isinstance(device, int):
        device = torch.device(device)
        if device.type != "vsi":
            raise ValueError(f"{device} is no device of type vsi")
        device = device.index or 0
    if device not in (-1, 0):
        raise RuntimeError(f"vsi:{device} is no device: there is one, vsi:0")
    return 0


def set_device(device: Any) -> None:
    _index(device)


def _exchange_device(device: int) -> int:
    """Make a device the current one, unless it is negative; returns the one that was."""
    return _index(device)


_maybe_exchange_device = _exchange_device


class device:
    """A context in which a device is the current one."""

    def __init__(self, device: Any) -> None:
        self.idx = _index(device)

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, type: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass


_DeviceGuard = device


def device_of(tensor: torch.Tensor) -> device:
    """The context of a tensor's device; for a tensor that is elsewhere, one that changes nothing."""
    return device(tensor.device if tensor.device.type == "vsi" else None)


def get_device_properties(device: Any = None) -> Properties:
    import os

    _index(device)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return Properties(_NAME, memory, len(os.sched_getaffinity(0)))


def get_device_name(device: Any = None) -> str:
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Return torch.cuda's pair; zeros mean that the device has no generation."""
    _index(device)
    return 0, 0


# ---- streams and events


class Stream(torch.Stream):
    """A new stream of the device, or with `stream_id` the stream of that number."""

    def __new__(cls, device: Any = None, priority: int = 0, **known: int) -> Stream:
        if known:
            return super().__new__(cls, priority=priority, **known)  # type: ignore[call-arg, no-any-return, misc]
        return super().__new__(cls, torch.device("vsi", _index(device)), priority=priority)  # type: ignore[no-any-return, misc]

    @property
    def vsi_stream(self) -> int:
        """Return the number that a launch gets."""
        return self.stream_id

    def __repr__(self) -> str:
        return f"<torch.vsi.Stream {self.stream_id} of {self.device}>"


class Event(torch.Event):
    """A point in time on a stream; `elapsed_time` is in milliseconds, of events with enable_timing=True."""

    def __new__(cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> Event:
        if interprocess:
            raise NotImplementedError("events of the reference device are not shared between processes")
        return super().__new__(cls, "vsi", enable_timing=enable_timing, blocking=blocking)  # type: ignore[no-any-return, misc]


def _as_ours(stream: torch.Stream) -> Stream:
    return Stream(stream_id=stream.stream_id, device_index=stream.device_index, device_type=stream.device_type)


def current_stream(device: Any = None) -> Stream:
    return _as_ours(torch._C._accelerator_getStream(_index(device)))


def default_stream(device: Any = None) -> Stream:
    device_type = current_stream(device).device_type
    return Stream(stream_id=0, device_index=0, device_type=device_type)


def set_stream(stream: torch.Stream | None) -> None:
    if stream is not None:
        torch._C._accelerator_setStream(stream)


def _set_stream_by_id(stream_id: int, device_index: int, device_type: int) -> None:
    set_stream(Stream(stream_id=stream_id, device_index=device_index, device_type=device_type))


@contextmanager
def stream(stream: torch.Stream | None) -> Iterator[None]:
    """A context in which a stream is the current one; None changes nothing."""
    before = current_stream()
    set_stream(stream)
    try:
        yield
    finally:
        set_stream(before)


StreamContext = stream


def synchronize(device: Any = None) -> None:
    """Wait for the device, which has always finished."""
    _index(device)


# ---- memory


def memory_allocated(device: Any = None) -> int:
    """Bytes that tensors hold."""
    _index(device)
    return _memory()[1]


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that tensors held since the start, or since reset_peak_memory_stats()."""
    _index(device)
    return _memory()[2]


def reset_peak_memory_stats(device: Any = None) -> None:
    _index(device)
    torch.ops.vpex_reference.reset_peak()


def memory_blocks() -> int:
    """Allocations that tensors hold; only the reference device tells."""
    return _memory()[0]


def damaged_blocks() -> int:
    """Allocations that were written to in front or behind, of those released so far; the reference alone tells."""
    return _memory()[3]


def empty_cache() -> None:
    """Nothing to do: memory that no tensor holds is given back at once."""


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Bytes that are free and that there are, of the host's memory."""
    import os

    _index(device)
    page = os.sysconf("SC_PAGE_SIZE")
    return os.sysconf("SC_AVPHYS_PAGES") * page, os.sysconf("SC_PHYS_PAGES") * page


def _memory() -> tuple[int, int, int, int]:
    return torch.ops.vpex_reference.memory()  # type: ignore[no-any-return]


def fallbacks() -> dict[str, int]:
    """How often each operator was computed on the CPU in the device's place; only the reference device tells."""
    return dict(torch.ops.vpex_reference.fallbacks())


# ---- random numbers, which are drawn on the CPU


def manual_seed(seed: int) -> None:
    torch.default_generator.manual_seed(int(seed))


manual_seed_all = manual_seed


def seed() -> None:
    torch.default_generator.seed()


seed_all = seed


def initial_seed() -> int:
    return torch.default_generator.initial_seed()


def get_rng_state(device: Any = "vsi") -> torch.Tensor:
    _index(device)
    return torch.default_generator.get_state()


def set_rng_state(new_state: torch.Tensor, device: Any = "vsi") -> None:
    _index(device)
    torch.default_generator.set_state(new_state)


# ---- what element types there are


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether kernels take bf16: they do, and compute it in f32."""
    return including_emulation


def get_amp_supported_dtype() -> list[torch.dtype]:
    return [torch.float16, torch.bfloat16]
