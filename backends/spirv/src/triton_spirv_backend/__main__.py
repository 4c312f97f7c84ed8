"""Say what this machine has for Triton kernels in SPIR-V, and check it: `python -m triton_spirv_backend`.

    python -m triton_spirv_backend                 all roads that work here
    python -m triton_spirv_backend --api=vulkan    this one
    python -m triton_spirv_backend --json          for programs

It lists the devices of each road, what each of them lacks, and which one is chosen and why. Then it runs small kernels
on the chosen device of each road and compares the results with NumPy. The exit status is 0 only if a check ran, and all
that ran passed. FOUNDRY_SPIRV_API limits it to one road, as --api does.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import platform
import sys
from dataclasses import asdict, dataclass, field
from importlib import metadata
from typing import Any

import triton
from foundry_core.failure import Failure

from . import activate
from .apis import NAMES, unavailable
from .check import CheckResult, run_checks
from .conflicts import API_VARIABLE

_FEATURES = {
    "shaderFloat16": "f16",
    "shaderFloat64": "f64",
    "shaderInt8": "i8",
    "shaderInt16": "i16",
    "float_atomics": "float atomics",
    "half_atomics": "atomics of two f16",
    "shaderBufferInt64Atomics": "i64 atomics",
    "cooperative": "cooperative matrices",
    "bfloat16": "cooperative matrices of bf16",
    "timestamps": "timestamps",
}


@dataclass(frozen=True)
class DeviceEntry:
    """A device that was found.

    Attributes:
        number: as the variable that chooses a device takes it.
        features: what the device has and lacks of what some kernels need.
        refused: why it cannot be used; "" if it can.
    """

    number: int
    name: str
    driver: str
    features: dict[str, bool | int | str]
    refused: str


@dataclass
class ApiReport:
    """What was found for a road.

    Attributes:
        devices: all of them.
        chosen: the number of the device that kernels run on; None if there is none.
        reason: why it was chosen, or why the road cannot be taken.
        verdicts: of the checks on the chosen device.
    """

    api: str
    devices: list[DeviceEntry] = field(default_factory=list)
    chosen: int | None = None
    reason: str = ""
    verdicts: list[CheckResult] = field(default_factory=list)


def find_vulkan() -> ApiReport:
    """Look for the loader and its devices."""
    from foundry_core.vulkan import device

    report = ApiReport("vulkan")
    try:
        known = device.list_properties()
        report.devices = [
            DeviceEntry(
                number,
                entry.name.decode(),
                entry.driver.decode(),
                {
                    "version": f"Vulkan {entry.api >> 22 & 127}.{entry.api >> 12 & 1023}.{entry.api & 4095}",
                    "subgroup": entry.subgroup,
                    "workgroup memory": entry.workgroup_bytes,
                    "memory": entry.memory_bytes,
                    **{label: bool(getattr(entry, name)) for name, label in _FEATURES.items()},
                },
                (lacking := device.lacks(entry)) and f"lacks {lacking}",
            )
            for number, entry in enumerate(known)
        ]
        report.chosen = device.select_device()
    except Failure as error:
        report.reason = str(error)
        return report
    wanted = os.environ.get(device.DEVICE_VARIABLE)
    first = "the first device: there is no GPU" if known[report.chosen].type == device.CPU else "the first GPU"
    report.reason = f"{device.DEVICE_VARIABLE}={wanted} names it" if wanted else first
    return report


def find_opencl() -> ApiReport:
    """Look for OpenCL's platforms and their devices."""
    report = ApiReport("opencl")
    if error := unavailable("opencl"):
        report.reason = str(error)
        return report
    from foundry_core.runtime import opencl

    from .opencl import DEVICE_VARIABLE, choose_device

    known = opencl.devices()
    for number, entry in enumerate(known):
        features: dict[str, bool | int | str] = {"version": entry.version.strip(), "memory": entry.global_mem_size}
        report.devices.append(
            DeviceEntry(
                number, entry.name.strip(), entry.driver_version.strip(), features, opencl.device_refusal(entry) or ""
            )
        )
    try:
        report.chosen = known.index(choose_device())
    except Failure as error:
        report.reason = str(error)
        return report
    wanted = os.environ.get(DEVICE_VARIABLE)
    report.reason = f"{DEVICE_VARIABLE}={wanted} names it" if wanted else "the first that accepts SPIR-V"
    return report


def examine_api(api: str) -> ApiReport:
    """Look for a road's devices, and check the chosen one."""
    report = find_vulkan() if api == "vulkan" else find_opencl()
    if report.chosen is not None:
        activate(api)
        report.verdicts = list(run_checks())
    return report


def check_passed(results: list[ApiReport]) -> bool:
    """Return whether a check ran, and all that ran passed."""
    verdicts = [verdict for road in results for verdict in road.verdicts]
    return bool(verdicts) and not any(verdict.problem for verdict in verdicts)


def versions() -> dict[str, str]:
    """Return the versions of what takes part."""
    return {
        "Triton": triton.__version__,
        "triton-spirv-backend": metadata.version("triton-spirv-backend"),
        "Python": platform.python_version(),
    }


def format_api(result: ApiReport) -> str:
    """Return what was found for people to read."""
    lines = [f"{ {'vulkan': 'Vulkan', 'opencl': 'OpenCL'}[result.api] }"]
    for device in result.devices:
        lines.append(
            f"  {'*' if device.number == result.chosen else ' '} {device.number}: {device.name} ({device.driver})"
        )
        plain = [f"{name}: {_size(value)}" for name, value in device.features.items() if not isinstance(value, bool)]
        lines.append(f"       {', '.join(plain)}")
        for label, value in (("has", True), ("has no", False)):
            if names := [name for name, known in device.features.items() if known is value]:
                lines.append(f"       {label}: {', '.join(names)}")
        if device.refused:
            lines.append(f"       cannot be used: {device.refused}")
    if result.chosen is None:
        lines.append("  " + result.reason.replace("\n", "\n  "))
        return "\n".join(lines)
    lines.append(f"  chosen: {result.chosen}, {result.reason}")
    for verdict in result.verdicts:
        outcome = (
            verdict.problem.replace("\n", "\n      ")
            if verdict.problem
            else f"right, error {verdict.error:.2f} of what is allowed"
        )
        lines.append(f"  {verdict.name}: {outcome}")
    return "\n".join(lines)


def _size(value: object) -> str:
    if isinstance(value, int) and value >= 1 << 30:
        return f"{value / 2**30:.0f} GiB"
    return f"{value >> 10} KiB" if isinstance(value, int) and value >= 1 << 12 else str(value)


def main(words: list[str]) -> int:
    """Do what the module says; return the exit status."""
    parser = argparse.ArgumentParser(
        "python -m triton_spirv_backend",
        description=inspect.cleandoc(__doc__ or ""),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--api", choices=NAMES, default=os.environ.get(API_VARIABLE) or None, help="this road only")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(words)
    roads = [examine_api(api) for api in ([options.api] if options.api else NAMES)]
    if options.json:
        report: dict[str, Any] = {"versions": versions(), "roads": [asdict(road) for road in roads]}
        # Not a number is not JSON.
        text = json.dumps({**report, "passed": check_passed(roads)}, indent=2).replace(": NaN", ": null")
        print(text)
    else:
        print(", ".join(f"{name} {version}" for name, version in versions().items()))
        print("\n".join(map(format_api, roads)))
        print("the check passed" if check_passed(roads) else "THE CHECK DID NOT PASS")
    return 0 if check_passed(roads) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
