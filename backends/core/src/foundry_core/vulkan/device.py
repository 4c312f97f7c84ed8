"""A Vulkan device: its properties, its memory, and the kernels that are launched on it.

Environment:
    FOUNDRY_VULKAN_DEVICE: the device: its number, or a part of its name. Default: the first GPU, else the first device.
    FOUNDRY_VULKAN_VALIDATION: 1 switches the validation layer on, and has spirv-val check each compiled kernel. A
        message of the layer is an error of the next call.
    FOUNDRY_VULKAN_TIMEOUT: seconds after which a launch is given up. Default: 60.
"""

from __future__ import annotations

import ctypes
import functools
import os
from functools import cache
from typing import Any

from ..mapping.simt.shader import ShaderWorkgroup
from ..mapping.simt.target import Fragment, SimtTarget
from ..ran import Kind, Ran
from .library import Messages, Properties, VulkanError, library

DEVICE_VARIABLE = "FOUNDRY_VULKAN_DEVICE"
VALIDATION_VARIABLE = "FOUNDRY_VULKAN_VALIDATION"
TIMEOUT_VARIABLE = "FOUNDRY_VULKAN_TIMEOUT"
# A device's type, where it is no GPU but software on the CPU.
CPU = 4
_NVIDIA = 0x10DE
# What every kernel needs, and how a refusal names it.
_NEEDED = {
    "device_address": "bufferDeviceAddress",
    "memory_model": "vulkanMemoryModel",
    "explicit_layout": "VK_KHR_workgroup_memory_explicit_layout",
    "int64": "shaderInt64",
    "shuffle": "subgroup shuffles",
    "size_control": "subgroupSizeControl",
}
_said: list[str] = []


def _say(text: bytes) -> None:
    _said.append(text.decode(errors="replace"))


_note = Messages(_say)


@cache
def _start() -> None:
    validates = os.environ.get(VALIDATION_VARIABLE) == "1"
    if not library().start(ctypes.cast(_note, ctypes.c_void_p) if validates else None):
        raise VulkanError(
            "Vulkan cannot be used",
            why=library().why(),
            next="install a Vulkan loader and a driver, such as Debian's libvulkan1 and mesa-vulkan-drivers",
        )


def properties() -> list[Properties]:
    """Return what each device of the machine says of itself.

    Raises:
        VulkanError: there is no loader, or it is older than 1.3.
    """
    _start()
    found = []
    for index in range(library().count()):
        found.append(Properties())
        if not library().properties(index, found[-1]):
            raise VulkanError("a Vulkan device cannot be described", why=library().why())
    return found


# VkComponentTypeKHR. Products of integers are those of signed ones, as Triton's are.
_COMPONENTS = {0: "f16", 1: "f32", 3: "i8", 5: "i32", 1000141000: "bf16"}
_MOST_FRAGMENTS = 256


@cache
def fragments(index: int) -> tuple[Fragment, ...]:
    """Return the cooperative matrices that the subgroups of a device multiply."""
    shapes = (ctypes.c_uint32 * 5 * _MOST_FRAGMENTS)()
    count = library().fragments(index, shapes, _MOST_FRAGMENTS)
    found = []
    for rows, columns, depth, factor, total in shapes[:count]:
        if factor not in _COMPONENTS or total not in _COMPONENTS:
            continue
        if _COMPONENTS[factor] == "bf16" and not properties()[index].bfloat16:
            continue
        found.append(Fragment(_COMPONENTS[factor], _COMPONENTS[total], rows, columns, depth))
    return tuple(sorted(set(found)))


def lacks(device: Properties) -> str:
    """Return what a device would need to run kernels; "" if it has all."""
    return ", ".join(label for name, label in _NEEDED.items() if not getattr(device, name))


def choose() -> int:
    """Return the number of the device that the environment names; else of the first GPU, else of the first device.

    Raises:
        VulkanError: no device fits; the message lists the devices.
    """
    wanted = os.environ.get(DEVICE_VARIABLE, "")
    lines, fitting = [], []
    for index, device in enumerate(properties()):
        name = device.name.decode()
        if wanted and wanted != str(index) and wanted.lower() not in name.lower():
            reason = f"not named by {DEVICE_VARIABLE}={wanted}"
        else:
            reason = lacks(device) and f"without {lacks(device)}"
        lines.append(f"{index}: {name}" + f": {reason}" * bool(reason))
        if not reason:
            fitting.append((device.type == CPU, index))
    if not fitting:
        raise VulkanError(
            f"no Vulkan device fits {DEVICE_VARIABLE}={wanted}" if wanted else "no Vulkan device can run kernels",
            why="\n".join(lines) or "the loader found no driver (see /usr/share/vulkan/icd.d)",
            next="install a driver, such as Debian's mesa-vulkan-drivers",
        )
    return min(fitting)[1]


class Buffer:
    """Memory that the device reaches; that of the host is mapped.

    Attributes:
        address: the address as kernels see it.
        size: in bytes.
    """

    def __init__(self, device: Device, size: int, *, of_host: bool) -> None:
        self._device = device
        self.size = size
        self.handle = device.check(
            library().allocate(device.handle, size, of_host), f"{size} bytes cannot be allocated"
        )
        self.address = library().address(self.handle)
        self.mapped = library().mapped(self.handle)

    def __del__(self) -> None:
        if (handle := getattr(self, "handle", None)) and self._device.handle:
            # A launch in flight may use it.
            self._device.wait()
            library().free(self._device.handle, handle)


class Pipeline:
    """A compiled kernel.

    Args:
        spirv: the module.
        name: the entry point.
        argument_bytes: size of its block of arguments.
        warp_size: invocations in a subgroup.
    """

    def __init__(self, device: Device, spirv: bytes, name: str, argument_bytes: int, warp_size: int) -> None:
        self._device = device
        made = library().pipeline(device.handle, spirv, len(spirv), name.encode(), argument_bytes, warp_size)
        self.handle = device.check(made, f"{device.name} did not accept the kernel {name}")

    def describe(self) -> dict[str, float]:
        """Return what the driver's compiler says of the kernel, such as how many registers it uses; {} if nothing."""
        text = ctypes.create_string_buffer(1 << 14)
        library().describe(self._device.handle, self.handle, text, len(text))
        pairs = (line.rpartition(": ") for line in text.value.decode(errors="replace").splitlines())
        return {name: float(number) for name, _, number in pairs}


class Device:
    """A device with its queue.

    Attributes:
        properties: what it says of itself.
        handle: its pointer, for library().
    """

    def __init__(self, index: int) -> None:
        self._index = index
        self.properties = properties()[index]
        self.name = self.properties.name.decode()
        self.handle = None
        self.handle = self.check(library().open(index, None, 0), f"{self.name} cannot be opened")
        self._timeout = round(float(os.environ.get(TIMEOUT_VARIABLE) or 60) * 1e9)

    def check(self, result: Any, what: str) -> Any:
        """Return a result that is not 0.

        Raises:
            VulkanError: it is 0, or the validation layer has said something.
        """
        if _said:
            messages = "\n".join(_said)
            _said.clear()
            raise VulkanError("Vulkan is used wrongly: a defect of ours", why=messages)
        if not result:
            raise VulkanError(what, why=library().why())
        return result

    def launch(self, pipeline: Pipeline, grid: tuple[int, int, int], arguments: bytes) -> int:
        """Put a launch into the queue; return its number."""
        return int(self.check(library().launch(self.handle, pipeline.handle, *grid, arguments), "a launch failed"))

    def wait(self) -> None:
        """Wait for everything that is in the queue.

        Raises:
            VulkanError: it takes too long, or the device was lost.
        """
        number = library().submitted(self.handle)
        if number and self.check(library().wait(self.handle, number, self._timeout), "the device was lost") < 0:
            raise VulkanError(
                f"a launch did not end within {self._timeout / 1e9:g} s",
                why="the kernel does not end, or is slow",
                next=f"set {TIMEOUT_VARIABLE} to more seconds",
            )

    def target(self, warps: int) -> SimtTarget:
        """Return what the mapping must know."""
        known = self.properties

        def widths(name: str) -> tuple[int, ...]:
            return tuple(width for width in (16, 32, 64) if getattr(known, f"{name}{width}"))

        return SimtTarget(
            known.subgroup,
            warps,
            known.workgroup_bytes,
            known.push_bytes,
            self.fuses,
            known.vendor == _NVIDIA,
            widths("denorm"),
            widths("special"),
            widths("nearest"),
            fragments(self._index),
        )

    @functools.cached_property
    def spare(self) -> Buffer:
        """16 bytes that loads whose mask is not set may read."""
        return Buffer(self, 16, of_host=True)

    @functools.cached_property
    def fuses(self) -> tuple[int, ...]:
        """The widths of floats whose fused multiply and add is rounded once, found by trying: Vulkan allows twice."""
        known = {32: self._fuses(32), 64: bool(self.properties.float64) and self._fuses(64)}
        return tuple(width for width, fuses in known.items() if fuses)

    def _fuses(self, width: int) -> bool:
        group = ShaderWorkgroup(SimtTarget(self.properties.subgroup, 1))
        group.pointer()
        (base,) = group.begin()
        size = width // 8
        x, y, z = (
            group.load(
                group.code.binary("arith.addi", base, group.code.integer(at * size, "i64")), f"f{width}", 1, size
            )[0]
            for at in range(3)
        )
        group.store(base, [group.code.extended("fma", x, y, z)], size)
        pipeline = Pipeline(self, group.finish("fuses"), "fuses", 8, self.properties.subgroup)
        buffer = Buffer(self, 32, of_host=True)
        numbers = ((ctypes.c_float if width == 32 else ctypes.c_double) * 3).from_address(buffer.mapped)
        # The square of 1 + e is 1 + 2e + e^2, of which a product that is rounded has no e^2.
        little = 2.0**-12 if width == 32 else 2.0**-27
        numbers[:] = [1 + little, 1 + little, -(1 + 2 * little)]
        self.launch(pipeline, (1, 1, 1), buffer.address.to_bytes(8, "little"))
        self.wait()
        return numbers[0] == little**2

    def flushed(self) -> frozenset[str]:
        """Return the float types whose subnormal numbers the device may take for zeros in arithmetic."""
        # A bf16 is an f32 in registers, with the same exponents.
        types = {16: ("f16",), 32: ("f32", "bf16"), 64: ("f64",)}
        return frozenset(name for width, names in types.items() for name in names * (not self._keeps(width)))

    def _keeps(self, width: int) -> bool:
        return bool(getattr(self.properties, f"denorm{width}"))

    def ran(self) -> Ran:
        """Return the description of this device for reports."""
        kind = Kind.CPU_VULKAN if self.properties.type == CPU else Kind.HARDWARE
        flushed = ", ".join(sorted(self.flushed()))
        note = f"; subnormal numbers of {flushed} may be zeros" if flushed else ""
        return Ran(kind, self.name, self.properties.driver.decode() + note, "copied for each launch")


@cache
def opened() -> Device:
    """Return the device that the environment names, opened once in a process."""
    return Device(choose())
