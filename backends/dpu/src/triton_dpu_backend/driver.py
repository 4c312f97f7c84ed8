"""Launch kernels on DPUs, and describe the DPUs to Triton.

The first of these that is given sets the number of DPUs of a launch. It is never more than the number of programs:
    num_dpus= of the launch, or of the triton.Config that it uses
    TRITON_DPU_NUM_DPUS, as a variable at the top of the kernel's Python file or in the environment; if both are set,
        they must be equal
    otherwise one DPU for 11 programs, which fill its pipeline, and at most 64 DPUs, which are one rank

Environment:
    TRITON_DPU_SHARD: how arguments are spread over DPUs, instead of what the analysis of their addresses found. It
        uses the parameters' names: `x=replicated,y=sharded` (see plan.py).
    TRITON_DPU_VERBOSE: 1 prints for each launch, on standard error, what is sharded or replicated, why, and the bytes.
    TRITON_DPU_MRAM_BYTES: how much of a DPU's 64 MiB to use, to test how a launch behaves on larger arrays.
    UPMEM_HOME: the SDK. Default: the SDK whose dpu-pkg-config is on PATH.

A launch returns when the kernel has finished and the caller's arrays have its results. Arguments may be
foundry_core.tensor.Tensor (NumPy), torch CPU tensors, or anything with `data_ptr`, `dtype` and `untyped_storage`.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foundry_core.backend.driver import SynchronousDriver, binary_info, properties
from foundry_core.once import once
from foundry_core.runtime.device_report import DeviceReport, Kind
from triton.backends.compiler import GPUTarget

from . import launches
from .compiler import target
from .host import sdk
from .launches import LaunchCost

if TYPE_CHECKING:
    from foundry_core.packed.roads import Road

    from .launcher import DpuLauncher, DpuProgram

_WRAM_BYTES = 64 << 10
# Clock of a v1A in Hz (UPMEM's product sheet).
_CLOCK = 350e6
# More than any num_warps, which has no effect here.
_THREADS = 1 << 10


def launcher(src: Any, metadata: Any) -> DpuLauncher:
    """Return the launcher of a compiled kernel. It is imported at first use: Triton imports every plugin at start."""
    from .launcher import DpuLauncher

    return DpuLauncher(src, metadata)


class DpuUtils:
    """Answers what Triton's runtime asks a driver about devices and binaries."""

    def get_device_properties(self, device: int) -> dict[str, int]:
        """Describe one DPU."""
        return properties(shared=_WRAM_BYTES, units=1, clock=int(_CLOCK / 1000), warp=1, threads=_THREADS)

    def load_binary(self, name: str, kernel: bytes, shared: int, device: int) -> tuple[Any, ...]:
        """Write the DPU program to a file, from which dpu_load reads it when the kernel is launched.

        Returns:
            See foundry_core.backend.driver.binary_info; module and function are the DpuProgram.
        """
        from .launcher import DpuProgram

        path = Path(_folder(), f"{name[:80]}-{hashlib.sha256(kernel).hexdigest()[:16]}")
        # Renamed into place, because another thread may write the same file, or launch it already.
        beside = path.with_name(f"{path.name}-{threading.get_ident()}")
        beside.write_bytes(kernel)
        beside.replace(path)
        program = DpuProgram(path, name)
        return binary_info(program, program, _THREADS)

    def unload_module(self, module: DpuProgram) -> None:
        """Do nothing: the file stays until the process ends, because another kernel may have the same program."""


@once
def _folder() -> str:
    """Return the folder of DPU programs of this process and its forks. It is removed when this process ends."""
    folder, owner = tempfile.mkdtemp(prefix="triton-dpu-"), os.getpid()
    atexit.register(lambda: shutil.rmtree(folder, ignore_errors=True) if os.getpid() == owner else None)
    return folder


class DpuDriver(SynchronousDriver):
    """The DPUs of this machine, for Triton's runtime: one device, of which a launch uses as many DPUs as it needs."""

    # The project's reports call this for each driver that has a cost model.
    profile = staticmethod(launches.profile)
    # C's type of an MRAM address.
    pointer = "uint32_t"

    def __init__(self) -> None:
        super().__init__()
        self.utils = DpuUtils()
        self.launcher_cls = launcher

    @classmethod
    def inactive_reason(cls) -> str:
        return "" if sdk.locate() else sdk.missing_reason()

    @property
    def last_launch(self) -> LaunchCost | None:
        """The cost of the last launch that finished. Its cycles and DMA bytes are modelled."""
        return launches.last()

    def device_report(self) -> DeviceReport:
        """Describe what launches run on, for reports. The number of DPUs is that of the last launch."""
        from .host.dpus import is_emulator

        installed = sdk.find()
        last = launches.last()
        dpus = f", {last.dpus} DPUs" if last else ""
        if is_emulator():
            kind, cycles = Kind.EMULATOR, "; cycles are modelled"
        else:
            # The SDK selects its simulator by these variables, too.
            profile = os.environ.get("UPMEM_PROFILE_BASE", "") + os.environ.get("UPMEM_PROFILE", "")
            kind, cycles = Kind.SIMULATOR if "simulator" in profile else Kind.HARDWARE, ""
        return DeviceReport(
            kind=kind,
            device=f"UPMEM {target().arch}{dpus}{cycles}",
            driver=f"dpu.h {installed.version} ({installed.pkg_config})",
            memory="copied to MRAM before a launch and back after it",
        )

    def road(self) -> Road:
        """Return how kernels are packed."""
        from .packing import DpuRoad

        return DpuRoad()

    def get_current_target(self) -> GPUTarget:
        return target()

    def get_benchmarker(self) -> Callable[..., Any]:
        return benchmark


def benchmark(
    call: Callable[[], Any], *, quantiles: Sequence[float] | None = None, **others: Any
) -> float | list[float]:
    """Measure a configuration for triton.autotune: milliseconds of DPU time, without transfers.

    On the emulator this is the modelled cycles divided by a DPU's clock. They are the same each time, so one run is
    enough; the wall time of an emulation says nothing about DPUs. With the vendor's SDK it is the wall time of
    triton.testing.do_bench.
    """
    with launches.profile() as costs:
        call()
    cycles = [launch.cycles for launch in costs]
    if not cycles or None in cycles:
        from triton.testing import do_bench

        return do_bench(call, quantiles=quantiles, **others)  # type: ignore[no-any-return]
    milliseconds = sum(count for count in cycles if count is not None) / _CLOCK * 1e3
    return [milliseconds] * len(quantiles) if quantiles else milliseconds
