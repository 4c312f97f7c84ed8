"""The image: validation is on, any message of it is an error, and lavapipe is of a Mesa with cooperative matrices."""

from __future__ import annotations

import os
import re

import pytest
from foundry_core.runtime.device_report import Kind
from foundry_core.vulkan.device import Pipeline, opened
from foundry_core.vulkan.library import VulkanError
from foundry_core.vulkan.memory import DeviceBuffer

# A header of SPIR-V 1.6 and nothing behind it: a module without a memory model and without an entry point.
EMPTY = b"".join(word.to_bytes(4, "little") for word in (0x07230203, 0x00010600, 0, 1, 0))


def test_validation_message_raises_an_error_and_leaves_the_device_usable() -> None:
    assert os.environ["FOUNDRY_VULKAN_VALIDATION"] == "1"
    device = opened()
    with pytest.raises(VulkanError, match=r"(?i)memory model|entry ?point"):
        Pipeline(device, EMPTY, "kernel", 0, device.properties.subgroup)
    assert DeviceBuffer(device, 64, of_host=True).address


def test_the_device_is_mesas_lavapipe_with_cooperative_matrices() -> None:
    ran, known = opened().device_report(), opened().properties
    if ran.kind is not Kind.CPU_VULKAN:
        pytest.skip("a GPU is used")
    version = re.search(r"Mesa (\d+)\.(\d+)", ran.driver)
    assert version and tuple(map(int, version.groups())) >= (26, 1)
    assert known.cooperative and known.name.startswith(b"llvmpipe")
