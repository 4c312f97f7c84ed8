"""The log of a launch in memory that a Vulkan device and the host share."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ..log import FIRST_FAILURE, Log
from .device import VulkanDevice
from .memory import DeviceBuffer


@contextmanager
def logging(device: VulkanDevice, log: Log | None) -> Iterator[list[int]]:
    """Give a launch inside the `with` the address of its log; wait for it, and report what it wrote.

    Yields nothing if there is no log.

    Raises:
        DeviceAssertionError: an assertion failed.
    """
    if log is None:
        yield []
        return
    buffer = DeviceBuffer(device, log.bytes, of_host=True)
    assert buffer.mapped is not None
    words = np.ctypeslib.as_array((ctypes.c_uint64 * (log.bytes // 8)).from_address(buffer.mapped))
    words[:FIRST_FAILURE] = log.header()
    yield [buffer.address]
    device.wait()
    log.report([words[: log.used_bytes(words[:FIRST_FAILURE]) // 8]])
