"""A Vulkan device: its properties, its memory, and the kernels that are launched on it.

Environment:
    FOUNDRY_VULKAN_DEVICE: the device: its number, or a part of its name. Default: the first GPU, else the first device.
    FOUNDRY_VULKAN_VALIDATION: 1 switches the validation layer on, and has spirv-val check each compiled kernel. A
        message of the layer is an error of the next call.
    FOUNDRY_VULKAN_TIMEOUT: seconds after which a launch is given up. Default: 60.
    FOUNDRY_VULKAN_MATRICES: 1 or 0: whether products use cooperative matrices where a device has them. Default: not on
        a CPU device, which has no instructions for them, and takes minutes to compile those of a large tile.
    FOUNDRY_VULKAN_MEMORY: how kernels reach arrays of the host: `import`, in place (VK_EXT_external_memory_host), or
        `copy`. Default: in place on devices that share the host's memory, where they can.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import json
import math
import os
import re
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING, Any

from ..mapping.simt.target import FEATURES, Arrangement, Fragment, SimtTarget
from ..once import once
from ..runtime import crash
from ..runtime.device_report import DeviceReport, Kind
from ..runtime.launches import MOST_PROGRAMS
from ..strings import StrEnum
from . import VALIDATION_VARIABLE, store
from .cuda import Border
from .library import DeviceProperties, Messages, VulkanError, library
from .memory import NVIDIA, DeviceBuffer, MemoryPool

if TYPE_CHECKING:
    from ..mapping.simt.matrices.instructions import Matrix

DEVICE_VARIABLE = "FOUNDRY_VULKAN_DEVICE"
TIMEOUT_VARIABLE = "FOUNDRY_VULKAN_TIMEOUT"
# A device's type, where it is no GPU but software on the CPU.
CPU = 4
_INTEGRATED = 1
MATRICES_VARIABLE = "FOUNDRY_VULKAN_MATRICES"
MEMORY_VARIABLE = "FOUNDRY_VULKAN_MEMORY"
_WAIT = 100_000_000  # nanoseconds between looks at Python's signals
_PIECE = 32 << 20  # bytes that are copied at once
# What is taken of a driver's statistics of a kernel.
_MOST_STATISTICS, _LONGEST_NAME, _MOST_STATISTIC = 64, 60, 1 << 36
_UNPRINTABLE = re.compile("[^ -~]")
# What every kernel needs, and how a refusal names it.
_NEEDED = {
    "bufferDeviceAddress": "bufferDeviceAddress",
    "vulkanMemoryModel": "vulkanMemoryModel",
    "explicit_layout": "VK_KHR_workgroup_memory_explicit_layout",
    "shaderInt64": "shaderInt64",
    "shuffle": "subgroup shuffles",
    # Shuffles of other widths than 32 bits. Vulkan 1.2 requires it, but a driver may be none that conforms.
    "shaderSubgroupExtendedTypes": "shaderSubgroupExtendedTypes",
    "subgroupSizeControl": "subgroupSizeControl",
}
# What library().launch takes in front of the arguments, for `struct`: a Pipeline's handle, and the grid.
LAUNCH = "QIII4x"
_said: list[str] = []
# What PipelineLauncher.direct returns.
Direct = Callable[..., int | None]


class HostArrays(StrEnum):
    """How kernels reach arrays of the host."""

    IMPORT = "import"
    COPY = "copy"


class _State(IntEnum):
    """What foundry_vulkan_state returns."""

    WELL = 0
    LOST = 1
    GIVEN_UP = 2
    FORKED = 3


_note = Messages(lambda text: _said.append(text.decode(errors="replace")))


@once
def _start() -> None:
    validates = os.environ.get(VALIDATION_VARIABLE) == "1"
    if not library().start(_note if validates else Messages()):
        raise VulkanError(
            "Vulkan cannot be used",
            why=library().last_error(),
            next="install a Vulkan loader and a driver, such as Debian's libvulkan1 and mesa-vulkan-drivers",
        )


def list_properties() -> list[DeviceProperties]:
    """Return what each device of the machine says of itself.

    Raises:
        VulkanError: there is no loader, or it is older than 1.3.
    """
    _start()
    found = []
    for index in range(library().count()):
        found.append(DeviceProperties())
        if not library().properties(index, ctypes.byref(found[-1])):
            raise VulkanError("a Vulkan device cannot be described", why=library().last_error())
    return found


# VkComponentTypeKHR. Products of integers are those of signed ones, as Triton's are.
_COMPONENTS = {0: "f16", 1: "f32", 3: "i8", 5: "i32", 1000141000: "bf16"}
_MOST_FRAGMENTS = 256


@cache
def fragments(index: int) -> tuple[Fragment, ...]:
    """Return the cooperative matrices that the subgroups of a device multiply."""
    shapes = (ctypes.c_uint32 * 5 * _MOST_FRAGMENTS)()
    count = library().fragments(index, shapes, _MOST_FRAGMENTS)
    has_bf16 = list_properties()[index].bfloat16
    found = []
    for rows, columns, depth, factor, total in shapes[:count]:
        if factor not in _COMPONENTS or total not in _COMPONENTS:
            continue
        if _COMPONENTS[factor] == "bf16" and not has_bf16:
            continue
        found.append(Fragment(_COMPONENTS[factor], _COMPONENTS[total], rows, columns, depth))
    return tuple(sorted(set(found)))


def lacks(device: DeviceProperties) -> str:
    """Return what a device would need to run kernels; "" if it has all."""
    return ", ".join(label for name, label in _NEEDED.items() if not getattr(device, name))


def select_device() -> int:
    """Return the number of the device that the environment names; else of the first GPU, else of the first device.

    Raises:
        VulkanError: no device fits; the message lists the devices.
    """
    wanted = os.environ.get(DEVICE_VARIABLE, "")
    lines, fitting = [], []
    for index, device in enumerate(list_properties()):
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


class Pipeline:
    """A compiled kernel.

    Args:
        spirv: the module.
        name: the entry point.
        argument_bytes: size of its block of arguments.
        warp_size: invocations in a subgroup.
        place: where the kernel's source is; "" if that is not known.
    """

    def __init__(
        self, device: VulkanDevice, spirv: bytes, name: str, argument_bytes: int, warp_size: int, place: str = ""
    ) -> None:
        self._device = device
        self.name, self.place = name, place
        file = store.kernel_file(device.properties, spirv)
        known = store.read_kernel_file(file)
        pushed = device.properties.push_bytes
        made = library().pipeline(
            device.handle, spirv, len(spirv), name.encode(), argument_bytes, pushed, warp_size, known, len(known)
        )
        self.handle = device.check(
            made,
            f"the driver of {device.name} did not compile the kernel {name}",
            "give each invocation less to keep: smaller blocks, or a larger num_warps=",
        )
        data = ctypes.create_string_buffer(library().cache(device.handle, self.handle, None, 0))
        size = library().cache(device.handle, self.handle, data, len(data))
        if data.raw[:size] != known:
            store.write_kernel_file(file, data.raw[:size])

    def describe(self) -> dict[str, float]:
        """Return what the driver's compiler says of the kernel, such as how many registers it uses; {} if nothing."""
        text = ctypes.create_string_buffer(1 << 14)
        library().describe(self._device.handle, self.handle, text, len(text))
        return read_statistics(text.value)


def read_statistics(text: bytes) -> dict[str, float]:
    """Return the numbers by name of what a driver said, a line each; a name is short, and printable ASCII."""
    found = {}
    for line in text.decode("ascii", errors="replace").split("\n")[:_MOST_STATISTICS]:
        name, _, number = line.rpartition(": ")
        with suppress(ValueError):
            # NVIDIA 580 says 2^36 more bytes of local memory than a kernel has.
            if math.isfinite(value := float(number)):
                found[_UNPRINTABLE.sub("?", name)[:_LONGEST_NAME]] = value % _MOST_STATISTIC
    return found


class VulkanDevice:
    """A device with its queue.

    Attributes:
        properties: what it says of itself.
        handle: its pointer, for library().
        memory: what this process has of its memory.
        reach: how kernels reach arrays of the host.
        abandoned: what launches may still use that were given up.
        shared: where work passes to CUDA and back, once `border` was asked for.
    """

    shared: Border | None = None

    def __init__(self, index: int) -> None:
        self._index = index
        self.properties = list_properties()[index]
        self.name = self.properties.name.decode()
        self._seconds = float(os.environ.get(TIMEOUT_VARIABLE) or 60)
        self.handle = None
        made = library().open(index, round(self._seconds * 1e9))
        self.handle = self.check(made, f"{self.name} cannot be opened")
        self._launch = library().launch
        atexit.register(self._close)
        self.memory = MemoryPool(self)
        self.reach = self._reach()
        self.abandoned: list[Any] = []
        # A fault in a kernel is then one of this process.
        self._runs_here = self.is_cpu
        if self._runs_here:
            crash.install()

    def _close(self) -> None:
        """Finish what was launched: a driver must not be at work while the process ends."""
        with suppress(VulkanError):
            self.wait()
        library().close(self.handle)

    def _reach(self) -> HostArrays:
        wanted = os.environ.get(MEMORY_VARIABLE)
        if wanted and wanted not in list(HostArrays):
            raise VulkanError(f"{MEMORY_VARIABLE}={wanted} is not a memory mode", why=f"known: {', '.join(HostArrays)}")
        # Arrays are seldom aligned, but the pages around them are the process's, too.
        can = 0 < self.properties.host_alignment <= os.sysconf("SC_PAGE_SIZE")
        if wanted == HostArrays.IMPORT and not can:
            raise VulkanError(
                f"{self.name} cannot use arrays of the host in place",
                why="it has no VK_EXT_external_memory_host with the alignment of a page",
                next=f"set {MEMORY_VARIABLE}={HostArrays.COPY}",
            )
        return HostArrays(wanted) if wanted else HostArrays.IMPORT if can and self.shares_memory else HostArrays.COPY

    @property
    def is_cpu(self) -> bool:
        return bool(self.properties.type == CPU)

    @property
    def splits_grids(self) -> bool:
        """Whether a grid may have more programs along x than a dispatch."""
        return bool(self.properties.grid[0] < MOST_PROGRAMS)

    @property
    def shares_memory(self) -> bool:
        """Whether its memory is the host's: it is the CPU, or a GPU without memory of its own."""
        return self.properties.type in (CPU, _INTEGRATED)

    def check(self, result: Any, what: str, next: str = "") -> Any:
        """Return a result that is not 0; what failed otherwise, and what to do, is for the message.

        Raises:
            VulkanError: it is 0, or the validation layer has said something.
        """
        if _said:
            messages = "\n".join(_said)
            _said.clear()
            raise VulkanError("Vulkan is used wrongly: a defect of ours", why=messages)
        if not result:
            raise self.error(what, library().last_error(), next)
        return result

    def error(self, what: str, why: str, next: str = "") -> VulkanError:
        """Return the error of a call that failed; or one that says that the device takes nothing more."""
        state = library().state(self.handle) if self.handle else _State.WELL
        if state == _State.LOST:
            return VulkanError(
                f"{self.name} was lost",
                why=f"{why}. A driver resets a device if a kernel does not end or reaches memory outside its arrays",
                next="start the process again: its DeviceTensors and its kernels are gone",
            )
        if state == _State.GIVEN_UP:
            return VulkanError(
                f"{self.name} does not finish its launches",
                why=f"{why}: it is slow, or never ends",
                next=f"if it is slow, set {TIMEOUT_VARIABLE} to more seconds; if it never ends, start the process "
                "again: until the kernel ends, the device takes nothing else from this process",
            )
        if state == _State.FORKED:
            return VulkanError(
                f"{self.name} cannot be used in a child of fork()",
                why=why,
                next='start new processes: multiprocessing.get_context("spawn")',
            )
        return VulkanError(what, why=why, next=next)

    def check_state(self) -> None:
        """Raise the error of a device that takes nothing more."""
        if library().state(self.handle) != _State.WELL:
            raise self.error("the device cannot be used", library().last_error())

    @functools.cached_property
    def border(self) -> Border:
        """Where CUDA gets memory of the device.

        Raises:
            SharingError: it cannot.
        """
        self.shared = Border(self)
        return self.shared

    def launch(self, pipeline: Pipeline, grid: tuple[int, int, int], packed: bytes) -> None:
        """Launch a kernel behind everything that was launched before; return at once.

        Args:
            packed: LAUNCH, and behind it the block of arguments.
        """
        if self.shared:
            self.shared.before()
        if self._runs_here:
            crash.unfinished.append(crash.PendingLaunch(pipeline.name, pipeline.place, grid))
        number = self._launch(self.handle, packed)
        if not number or _said:
            self.check(number, "a launch failed")
        if self.shared:
            self.shared.after()

    def launch_directly(self, pipeline: Pipeline, direct: Direct, arguments: tuple[Any, ...]) -> bool:
        """Launch as `launch` does, where a function of launch.c can; return whether it did.

        Args:
            arguments: those of Triton's call of a launcher; the first three are the grid.
        """
        if self.shared:
            return False
        if self._runs_here:
            x, y, z, *_ = arguments
            noted = crash.PendingLaunch(pipeline.name, pipeline.place, (x, y, z))
            crash.unfinished.append(noted)
        number = direct(*arguments)
        if number is None:
            if self._runs_here:
                # Another thread may have added its launch meanwhile, or have waited for all.
                with suppress(ValueError):
                    crash.unfinished.remove(noted)
            return False
        if not number or _said:
            self.check(number, "a launch failed")
        return True

    def wait(self, number: int = 0) -> None:
        """Wait for the batch with this number and all before it; 0 for everything that was launched.

        Raises:
            VulkanError: a launch takes too long, or the device was lost.
        """
        while (found := library().wait(self.handle, number, _WAIT)) < 0:
            pass
        if not found or _said:
            self.check(found, "the device cannot be waited for")
        if not number:
            self.abandoned.clear()
            crash.unfinished.clear()

    def copy(self, to: DeviceBuffer, at: int, source: DeviceBuffer, source_at: int, size: int) -> int:
        """Copy bytes between buffers, in the order of launches; return the number of the batch."""
        if self.shared:
            self.shared.before()
        number = library().copy(self.handle, to.handle, to.offset + at, source.handle, source.offset + source_at, size)
        self.check(number, "a copy failed")
        if self.shared:
            self.shared.after()
        return int(number)

    def upload(self, to: DeviceBuffer, at: int, address: int, size: int) -> None:
        """Copy bytes of the host to a buffer; they may be changed when this returns.

        A buffer in the host's memory is written at once: no launch may use it.
        """
        if to.mapped is not None:
            ctypes.memmove(to.mapped + at, address, size)
            return
        numbers: list[int] = []
        for done in range(0, size, _PIECE):
            if len(numbers) > 1:
                self.wait(numbers[-2])
            piece = min(_PIECE, size - done)
            staging = DeviceBuffer(self, piece, of_host=True)
            assert staging.mapped is not None
            ctypes.memmove(staging.mapped, address + done, piece)
            numbers.append(self.copy(to, at + done, staging, 0, piece))

    def download(self, source: DeviceBuffer, at: int, address: int, size: int) -> None:
        """Copy bytes of a buffer to the host, after everything that was launched."""
        if source.mapped is not None:
            self.wait()
            ctypes.memmove(address, source.mapped + at, size)
            return
        for done in range(0, size, _PIECE):
            piece = min(_PIECE, size - done)
            staging = DeviceBuffer(self, piece, of_host=True)
            assert staging.mapped is not None
            self.wait(self.copy(staging, 0, source, at + done, piece))
            ctypes.memmove(address + done, staging.mapped, piece)

    def fill(self, to: DeviceBuffer, at: int, size: int, word: int) -> None:
        """Write a 32-bit word everywhere, in the order of launches; place and size are multiples of 4."""
        if self.shared:
            self.shared.before()
        number = library().fill(self.handle, to.handle, to.offset + at, size, word)
        self.check(number, "a fill failed")
        if self.shared:
            self.shared.after()

    def target(self) -> SimtTarget:
        """Return what the mapping must know."""
        known = self._described
        return replace(known, arrangements=self.arrangements) if known.fragments else known

    @property
    def _described(self) -> SimtTarget:
        """What the device says of itself. A field of SimtTarget that has the name of a property has its value."""
        known = self.properties

        def widths(name: str) -> tuple[int, ...]:
            return tuple(width for width in (16, 32, 64) if getattr(known, f"{name}{width}"))

        same = [field.name for field in fields(SimtTarget) if hasattr(known, field.name)]
        return SimtTarget(
            # The C has numbers for bool, too.
            **{name: type(getattr(SimtTarget, name))(getattr(known, name)) for name in same},
            warp_size=known.subgroup,
            argument_bytes=known.push_bytes,
            fuses=self.fuses,
            splits_grids=self.splits_grids,
            accurate_exp2=known.vendor == NVIDIA,
            preserves_denormals=widths("denorm"),
            preserves_special=widths("special"),
            rounds_to_nearest=widths("nearest"),
            fragments=fragments(self._index) if self.multiplies_matrices else (),
            atomic_adds=(16,) * bool(known.half_atomics and known.shaderFloat16)
            + (32,) * bool(known.float_atomics)
            + (64,) * bool(known.float_atomic_add64),
            lacks=tuple(name for name, feature in FEATURES.items() if not getattr(known, feature)),
            compiles_slowly=self.is_cpu,
        )

    @property
    def multiplies_matrices(self) -> bool:
        """Whether products use cooperative matrices."""
        wanted = os.environ.get(MATRICES_VARIABLE)
        return wanted == "1" if wanted else self.properties.type != CPU

    @functools.cached_property
    def spare(self) -> DeviceBuffer:
        """16 bytes of zeros, which loads read whose mask is not set."""
        found = DeviceBuffer(self, 16, of_host=False)
        self.fill(found, 0, found.size, 0)
        return found

    def _try(self, pipeline: Pipeline, buffer: DeviceBuffer, arguments: int) -> None:
        """Run one program of a kernel of ours, whose first argument is an array."""
        packed = struct.pack(f"<{LAUNCH}Q{arguments - 8}x", pipeline.handle, 1, 1, 1, buffer.address)
        self.launch(pipeline, (1, 1, 1), packed)
        self.wait()

    @functools.cached_property
    def arrangements(self) -> tuple[Arrangement, ...]:
        """Which invocation holds which element of matrices, found by trying; kept on disk as `fuses` is."""
        fragments = self._described.fragments
        if not fragments:
            return ()
        file = store.kernel_file(self.properties, f"the arrangement of {fragments}".encode())
        kept = store.read_kernel_file(file)
        if kept:
            lists = json.loads(kept)
        else:
            from ..mapping.simt.matrices.arrangements import probed_kinds

            lists = self._try_matrices(list(probed_kinds(self._described).items()))
            store.write_kernel_file(file, json.dumps(lists).encode())
        return tuple(
            Arrangement(use, elem, rows, columns, tuple(components), tuple(lanes))
            for use, elem, rows, columns, components, lanes in lists
        )

    def _try_matrices(self, kinds: Sequence[tuple[Matrix, Fragment]]) -> tuple[Arrangement, ...]:
        """Find the arrangements of some kinds of matrices; of fewer, if the driver fails on one of them."""
        from ..errors import LoweringError
        from ..mapping.simt.matrices.arrangements import read_probe, write_probe

        lanes = self.properties.subgroup
        try:
            probe = write_probe(replace(self._described, warps=1), dict(kinds))
            buffer = DeviceBuffer(self, 4 * probe.words, of_host=True)
            assert buffer.mapped is not None
            ctypes.memset(buffer.mapped, -1, 4 * probe.words)
            pipeline = Pipeline(self, probe.module, "probe", probe.argument_bytes, lanes)
            self._try(pipeline, buffer, probe.argument_bytes)
        except (LoweringError, VulkanError) as error:
            self.check_state()
            if isinstance(error, VulkanError) and os.environ.get(VALIDATION_VARIABLE) == "1":
                raise
            half = len(kinds) // 2
            return self._try_matrices(kinds[:half]) + self._try_matrices(kinds[half:]) if half else ()
        return read_probe(probe, (ctypes.c_int32 * probe.words).from_address(buffer.mapped)[:], lanes)

    @functools.cached_property
    def fuses(self) -> tuple[int, ...]:
        """The widths of floats whose fused multiply and add is rounded once, found by trying: Vulkan allows twice.

        What was found is kept on disk with the kernels of the same driver.
        """
        file = store.kernel_file(self.properties, b"the widths of fused operations that are rounded once")
        known = store.read_kernel_file(file)
        if not known:
            widths = [32, 64] if self.properties.shaderFloat64 else [32]
            known = bytes([len(widths), *(width for width in widths if self._fuses(width))])
            store.write_kernel_file(file, known)
        return tuple(known[1:])

    def _fuses(self, width: int) -> bool:
        from ..mapping.simt.fused import fused_probe

        probe, lanes = fused_probe(self.properties.subgroup, width), self.properties.subgroup
        buffer = DeviceBuffer(self, len(probe.before), of_host=True)
        assert buffer.mapped is not None
        ctypes.memmove(buffer.mapped, probe.before, len(probe.before))
        self._try(Pipeline(self, probe.module, "probe", probe.argument_bytes, lanes), buffer, probe.argument_bytes)
        return ctypes.string_at(buffer.mapped, len(probe.after)) == probe.after

    def flushed(self) -> frozenset[str]:
        """Return the float types whose subnormal numbers the device may take for zeros in arithmetic."""
        # A bf16 is an f32 in registers, with the same exponents.
        types = {16: ("f16",), 32: ("f32", "bf16"), 64: ("f64",)}
        return frozenset(
            name for width, names in types.items() if not getattr(self.properties, f"denorm{width}") for name in names
        )

    def device_report(self) -> DeviceReport:
        known = self.properties
        kind = Kind.CPU_VULKAN if self.is_cpu else Kind.HARDWARE
        memory = (
            "in place (VK_EXT_external_memory_host)" if self.reach is HostArrays.IMPORT else "copied for each launch"
        )
        version = f"Vulkan {known.api >> 22}.{known.api >> 12 & 1023}.{known.api & 4095}"
        limits = (
            f"{known.subgroup} invocations a subgroup, {known.invocations} a workgroup, {known.workgroup_bytes} bytes "
            f"of workgroup memory, {known.push_bytes} of push constants"
        )
        has = [feature for feature in FEATURES.values() if getattr(known, feature)]
        features = ", ".join(has + ["cooperativeMatrix"] * bool(known.cooperative))
        flushed = ", ".join(sorted(self.flushed()))
        note = f"; subnormal numbers of {flushed} may be zeros" if flushed else ""
        return DeviceReport(
            kind, self.name, f"{known.driver.decode()}, {version}", memory, f"{limits}; {features}{note}"
        )


@once
def opened() -> VulkanDevice:
    """Return the device that the environment names, opened once in a process."""
    return VulkanDevice(select_device())
