"""Check the text that describes a device to Triton."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest
from foundry_core.mapping.arch import Device, arch, read_arch
from foundry_core.mapping.base.target import WorkItemTarget
from foundry_core.mapping.simt.target import FEATURES, Arrangement, Fragment, SimtTarget

CHANGED: dict[Any, Callable[[Any], Any]] = {
    int: lambda x: x + 1,
    bool: lambda x: not x,
    tuple: lambda x: (*x, 16),
}


def changed(device: Device) -> list[Device]:
    """Return the device with each of its fields changed, one at a time."""
    found: list[Device] = []
    if isinstance(device, SimtTarget):
        found.append(replace(device, fragments=(Fragment("f16", "f32", 8, 8, 16),)))
        found.append(replace(device, arrangements=(Arrangement(2, "f32", 8, 8, (1, 2, 4), (8, 16, 32)),)))
    for field in fields(device):
        if field.name not in ("flavour", "fragments", "arrangements", "lacks"):
            found.append(replace(device, **{field.name: CHANGED[type(field.default)](getattr(device, field.name))}))
    return found


@pytest.mark.parametrize(
    "device", [SimtTarget(), SimtTarget(8, flavour="kernel", lacks=("Float16",)), WorkItemTarget()]
)
def test_text_of_a_device_is_read_back_whatever_the_value_of_a_field(device: Device) -> None:
    texts = [arch(each) for each in changed(device)]
    assert [read_arch(text) for text in texts] == changed(device)
    assert len(set(texts)) == len(texts)


def test_text_names_what_differs_from_the_default() -> None:
    assert arch(SimtTarget()) == "vulkan {}"
    assert arch(SimtTarget(8, fuses=())) == 'vulkan {"warp_size": 8, "fuses": []}'
    assert arch(SimtTarget(flavour="kernel")) == "opencl {}"
    assert arch(WorkItemTarget(64, True)) == 'workitem {"vector_bytes": 64, "llvm_intrinsics": true}'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "v64c64r32-llvm",
        "vulkan-s8-l32768",
        "vulkan {",
        "vulkan []",
        'vulkan {"warp": 8}',
        'vulkan {"warp_size": "8"}',
        'vulkan {"splits_grids": 1}',
        'vulkan {"fuses": 32}',
        'vulkan {"fragments": [["f16", 8]]}',
        'workitem {"warp_size": 8}',
    ],
)
def test_text_that_describes_no_device_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="describes no device"):
        read_arch(text)


def test_vulkan_reports_each_feature_that_a_kernel_may_need() -> None:
    from foundry_core.vulkan.library import DeviceProperties

    assert set(FEATURES.values()) <= {name for name, _ in DeviceProperties._fields_}
