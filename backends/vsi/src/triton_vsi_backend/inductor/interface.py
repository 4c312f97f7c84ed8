"""Answer what torch.compile asks about a device at run time, from `torch.vsi` and Triton's driver."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch._dynamo.device_interface import DeviceInterface


class Properties(NamedTuple):
    """Properties of a device, as Inductor reads them."""

    multi_processor_count: int
    warp_size: int


def _driver() -> Any:
    import triton

    return triton.runtime.driver.active


class VsiInterface(DeviceInterface):  # type: ignore[misc]
    """Uses of torch.vsi only what every device's module has, so that it works with vpex and with its stand-in."""

    device = torch.vsi.device
    Event = getattr(torch.vsi, "Event", torch.Event)
    Stream = getattr(torch.vsi, "Stream", torch.Stream)

    class Worker:
        """What processes that only compile ask for."""

        @staticmethod
        def set_device(device: int) -> None:
            torch.vsi.set_device(device)

        @staticmethod
        def current_device() -> int:
            return torch.vsi.current_device()  # type: ignore[no-any-return]

        @staticmethod
        def get_device_properties(device: Any = None) -> Properties:
            known = _driver().utils.get_device_properties(VsiInterface.index(device))
            return Properties(known["multiprocessor_count"], known["warpSize"])

    current_device = staticmethod(torch.vsi.current_device)
    set_device = staticmethod(torch.vsi.set_device)
    device_count = staticmethod(torch.vsi.device_count)
    is_available = staticmethod(torch.vsi.is_available)
    synchronize = staticmethod(torch.vsi.synchronize)

    @staticmethod
    def index(device: Any) -> int:
        """Return the number of a device, given as a number, a name, a torch.device, or None for the current device."""
        number = device if device is None or isinstance(device, int) else torch.device(device).index
        return torch.vsi.current_device() if number is None else number

    @staticmethod
    def exchange_device(device: int) -> int:
        before = torch.vsi.current_device()
        torch.vsi.set_device(device)
        return before  # type: ignore[no-any-return]

    @staticmethod
    def maybe_exchange_device(device: int) -> int:
        """Exchange the current device; a negative number changes nothing."""
        return torch.vsi.current_device() if device < 0 else VsiInterface.exchange_device(device)

    @staticmethod
    def get_raw_stream(device: int) -> int:
        return _driver().get_current_stream(device)  # type: ignore[no-any-return]

    @staticmethod
    def _set_stream_by_id(stream_id: int, device_index: int, device_type: int) -> None:
        torch.vsi.set_stream(torch.vsi.Stream(stream_id=stream_id, device_index=device_index, device_type=device_type))

    @staticmethod
    def get_compute_capability(device: Any = None) -> int | str:
        """Return what Inductor puts into the target that it compiles for: the architecture that the driver names."""
        return _driver().get_current_target().arch  # type: ignore[no-any-return]

    @staticmethod
    def is_bf16_supported(including_emulation: bool = False) -> bool:
        return True


# Only code that uses streams or measures memory asks for these. Without them, PyTorch's own methods raise an error.
for _name in ("stream", "current_stream", "set_stream", "memory_allocated"):
    if hasattr(torch.vsi, _name):
        setattr(VsiInterface, _name, staticmethod(getattr(torch.vsi, _name)))
