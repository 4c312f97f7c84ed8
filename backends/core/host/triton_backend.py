"""A plugin of pytest: tests of an image run on the machine in NumPy, which refuses races and accesses out of bounds.

    cd backends/core
    ../../foundry run spirv --results=/tmp/results --env=FOUNDRY_HOST_DEVICE=h100 -m pytest -p host.triton_backend \\
        tests/test_induction.py

FOUNDRY_HOST_DEVICE is one of devices.DEVICES; `lavapipe` without it.
"""

from __future__ import annotations

import ctypes
import functools
import os
import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import triton.backends
from foundry_core.backend.driver import SynchronousDriver, binary_info, properties
from foundry_core.log import FIRST_FAILURE
from foundry_core.runtime.device_report import DeviceReport
from foundry_core.runtime.launches import Grid, SynchronousLauncher
from foundry_core.scalars import passed
from foundry_core.spans import memory_spans
from triton.backends.compiler import GPUTarget
from triton_spirv_backend.compiler import SpirvBackend, target

from .devices import DEVICES, promised
from .machine import execute
from .memory import GlobalMemory
from .spirv import Module

TARGET = DEVICES[os.environ.get("FOUNDRY_HOST_DEVICE", "lavapipe")]
_module = functools.lru_cache(256)(Module)


class MachineLauncher(SynchronousLauncher[tuple[bytes, str]]):
    """Launches one compiled kernel."""

    def __init__(self, src: Any, metadata: Any) -> None:
        super().__init__(src, metadata)
        self._metadata = metadata

    def launch(self, grid: Grid, function: tuple[bytes, str], arguments: Sequence[Any]) -> None:
        known, types = self._metadata, self.parameters.types
        spans = memory_spans([arguments[number] for number in self.parameters.pointers], whole_allocations=True)
        # The launch's log, and what is read where a mask is not set; and the arguments.
        words = np.zeros((self.log.bytes if self.log else 0) // 8 + 64, np.uint64)
        if self.log:
            words[:FIRST_FAILURE] = self.log.header()
        block = np.zeros(-(-known.argument_bytes // 16) * 16 + 16, np.uint8)
        given = zip(arguments, types, strict=True)
        values = [_number(x.data_ptr() if type[0] == "*" else passed(type).convert(x), type) for x, type in given]
        values += [np.int64(words.ctypes.data)] * known.tables
        pushed: Any = [
            *values[: len(values) - known.tables],
            *map(np.int32, grid),
            *values[len(values) - known.tables :],
        ]
        if TARGET.flavour == "shader":
            trailing = map(np.int32, (0, *grid, 0) if TARGET.splits_grids else (0,))
            for offset, value in zip(known.argument_offsets, [*values, *trailing], strict=False):
                block[offset : offset + value.nbytes] = np.frombuffer(value.tobytes(), np.uint8)
            is_small = known.argument_bytes <= TARGET.argument_bytes
            pushed = block if is_small else np.frombuffer(np.int64(block.ctypes.data).tobytes(), np.uint8)
        spans = sorted([*spans, *((x.ctypes.data, x.ctypes.data + x.nbytes) for x in (words, block))])
        contents = [np.frombuffer(ctypes.string_at(low, high - low), np.uint8) for low, high in spans]
        memory = GlobalMemory(contents, [low for low, _ in spans])
        warps = known.threads // TARGET.warp_size
        execute(_module(function[0]), promised(replace(TARGET, warps=warps)), memory, grid, pushed, known.shared)
        after = memory.result(contents)
        for (low, high), array, written in zip(spans, after.arrays, after.written, strict=True):
            if written:
                ctypes.memmove(low, array.tobytes(), high - low)
        if self.log:
            self.log.report([words[: self.log.used_bytes(words[:FIRST_FAILURE]) // 8]])


def _number(value: Any, type: str) -> Any:
    """Return a NumPy number with the bits that a kernel gets."""
    code = "q" if type[0] == "*" else passed(type).code
    found = np.frombuffer(struct.pack(f"<{code}", value), np.dtype(code))[0]
    return found.view(f"i{found.nbytes}") if found.dtype.kind in "ub" else found


class MachineUtils:
    """What Triton's runtime asks of the device and of a binary."""

    def get_device_properties(self, device: int) -> dict[str, int]:
        return properties(shared=TARGET.workgroup_bytes, units=1, clock=0, warp=TARGET.warp_size, threads=1024)

    def load_binary(self, name: str, kernel: bytes, shared: int, device: int) -> tuple[Any, ...]:
        return binary_info(kernel, (kernel, name), 1024)

    def unload_module(self, module: Any) -> None:
        """Do nothing: Python frees it."""


class MachineDriver(SynchronousDriver):
    """The machine, as Triton's runtime sees it."""

    def __init__(self) -> None:
        super().__init__()
        self.launcher_cls, self.utils = MachineLauncher, MachineUtils()

    @classmethod
    def inactive_reason(cls) -> str:
        return ""

    def flushed(self) -> frozenset[str]:
        types = {16: ("f16",), 32: ("f32", "bf16"), 64: ("f64",)}
        return frozenset(name for width in types.keys() - TARGET.preserves_denormals for name in types[width])

    def get_current_target(self) -> GPUTarget:
        return target(TARGET)

    def device_report(self) -> DeviceReport:
        raise NotImplementedError


triton.backends.backends["spirv"] = triton.backends.Backend(SpirvBackend, MachineDriver)
