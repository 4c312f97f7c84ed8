"""The description of the device that a driver ran on; every report of the project prints it."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from ..strings import StrEnum


class Kind(StrEnum):
    """How close to the target's silicon a run was."""

    HARDWARE = "hardware"
    SIMULATOR = "vendor simulator"
    EMULATOR = "our emulator"
    CPU_OPENCL = "CPU OpenCL device"
    CPU_VULKAN = "CPU Vulkan device"


@dataclass(frozen=True)
class DeviceReport:
    """The device that a driver launches on.

    Attributes:
        kind: hardware, simulator, emulator or a CPU OpenCL device.
        device: the device's own name.
        driver: name and version of the software that drives it.
        memory: how a kernel reaches the caller's arrays, such as "zero-copy".
        features: what the device has of what kernels may need; "" if kernels need nothing special.
    """

    kind: Kind
    device: str
    driver: str
    memory: str
    features: str = ""

    def __str__(self) -> str:
        features = f"; features: {self.features}" if self.features else ""
        return f"{self.kind}: {self.device}; driver: {self.driver}; memory: {self.memory}{features}"

    def as_dict(self) -> dict[str, str]:
        """Return plain strings, for JSON and JUnit properties."""
        return {name: str(value) for name, value in asdict(self).items() if value}
