"""OpenCL as a target's runtime: finds a device that takes SPIR-V, builds a kernel, launches it on the caller's arrays.

A launch is synchronous: when it returns, the kernel has finished and its stores are in the caller's memory. Users read
NumPy arrays directly, so a driver has no later moment at which it could wait.

How a kernel reaches host memory is decided once per device (`MemoryMode`):

- SVM: the device shares the host's address space (fine-grained system SVM, as on CPU devices). Addresses are passed
  unchanged; nothing is copied or registered.
- BUFFER: any other device. During a launch, each allocation among the arguments becomes a cl_mem over the caller's
  memory (CL_MEM_USE_HOST_PTR), which the implementation maps or copies as necessary. Arguments that point into the same
  allocation share one cl_mem, so aliased arguments have the same meaning as in the other mode.

An implementation such as PoCL starts threads when it is first called. A child of fork() does not have them, and would
wait for ever. So a process that was forked after such a call is refused at once, and a question about devices, which
need not lead to a launch, is asked in a child (`inactive_reason`).

If a target's kernels are defined to take cl_mem, they get one over each argument on an SVM device too. Nothing must be
mapped there (OpenCL 3.0, 3.3.3: memory that host and device share is consistent after a kernel).
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import select
import signal
import struct
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyopencl as cl

from ..codegen.lines import add_scopes
from ..codegen.spirv import EMPTY, widest_call
from ..failure import Failure
from ..log import Log
from ..mapping.base.target import WorkItemTarget
from ..mapping.simt.target import SimtTarget
from ..scalars import Scalar, passed
from ..spans import TensorLike, memory_spans
from ..strings import StrEnum
from . import crash
from .device_report import DeviceReport, Kind
from .pocl import prepare


class OpenCLError(Failure):
    """An error on an OpenCL device: what failed, why, and the next thing to do."""


class DeviceError(OpenCLError):
    """No OpenCL device can be used, or the chosen one cannot do what is asked."""


class BuildError(OpenCLError):
    """The device's own compiler refused a kernel."""


class MemoryMode(StrEnum):
    """How a kernel reaches the caller's arrays."""

    SVM = "svm"
    BUFFER = "buffer"


# 16 numbers of 8 bytes: the widest vector of SPIR-V for OpenCL.
WIDEST_VECTOR = 128
_OVER_HOST_MEMORY = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR

Grid = tuple[int, int, int]
Table: TypeAlias = npt.NDArray[np.uint8] | cl.Buffer


def device_refusal(device: cl.Device) -> str | None:
    """Return why `device` cannot be used, or None if it can."""
    if not device.available:
        return "not available"
    try:
        languages = device.il_version
    except cl.Error:
        return "takes no SPIR-V (older than OpenCL 2.1)"
    if "SPIR-V" not in str(languages):
        return "takes no SPIR-V (CL_DEVICE_IL_VERSION is empty)"
    return None


# Seconds after which drivers that do not say which devices there are count as broken.
_PATIENCE = 120
# Whether this process has called OpenCL, and whether it was forked from one that had.
_started = _forked = False


def _note_fork() -> None:
    global _forked
    _forked = _started
    _not_started.clear()


os.register_at_fork(after_in_child=_note_fork)


def refuse_child() -> None:
    """Refuse to go on in a child of fork() that has none of its parent's threads.

    Raises:
        DeviceError: this process is such a child.
    """
    if _forked:
        raise DeviceError(
            "OpenCL cannot be used in a child of fork()",
            why="this process was forked from one that had used OpenCL, and has none of its threads",
            next='start new processes: multiprocessing.get_context("spawn"); or launch nothing before the fork',
        )


def inactive_reason(choose: Callable[[], object]) -> str:
    """Return why no device can be chosen, or "". This process can fork as before.

    Args:
        choose: returns a device, or raises the reason.
    """

    def reason() -> str:
        try:
            choose()
        except Failure as error:
            return str(error)
        return ""

    return reason() if _started else _in_child(reason)


def _in_child(question: Callable[[], str]) -> str:
    """Return what a function returns in a child of this process; what happened to the child if it does not return."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # Where this process has threads: the child needs none of their locks, and there is a limit.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            os.write(writing, json.dumps(question()).encode() + b"\n")
        finally:
            os._exit(0)
    os.close(writing)
    answer, end = b"", time.monotonic() + _PATIENCE
    try:
        # Another process that was forked meanwhile may keep the pipe open.
        while not answer.endswith(b"\n") and select.select([reading], [], [], max(0.0, end - time.monotonic()))[0]:
            if not (part := os.read(reading, 1 << 16)):
                break
            answer += part
    finally:
        os.close(reading)
        with suppress(ProcessLookupError, ChildProcessError):  # somebody else waits for all children
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    if not answer.endswith(b"\n"):
        return f"OpenCL's drivers did not say in {_PATIENCE} s which devices there are, or ended the process that asked"
    return str(json.loads(answer))


def platforms() -> list[cl.Platform]:
    """Return the installed OpenCL platforms. From now on, this process's children cannot use OpenCL.

    Raises:
        DeviceError: this process is such a child.
    """
    global _started
    refuse_child()
    _started = True
    prepare()
    try:
        return list(cl.get_platforms())
    except cl.Error:  # how the loader reports that no platform is installed
        return []


def devices() -> list[cl.Device]:
    """Return every OpenCL device of the machine, in the order of the installed platforms."""
    found: list[cl.Device] = []
    for platform in platforms():
        try:
            found += platform.get_devices()
        except cl.Error:  # a platform without a device, such as a GPU's driver on a machine without the GPU
            continue
    return found


def find(wanted: str, *, variable: str, refuse: Callable[[cl.Device], str | None] = device_refusal) -> cl.Device:
    """Return the device to use.

    Args:
        wanted: an index into `devices()`, or a part of a device's or platform's name; empty for the first usable one.
        variable: the environment variable that `wanted` came from, for the message.
        refuse: returns why a device cannot be used, or None if it can.

    Raises:
        DeviceError: no device fits; lists the devices and why each was refused.
    """
    lines = []
    for index, device in enumerate(devices()):
        name = f"{device.name.strip()} ({device.platform.name.strip()})"
        if wanted and wanted != str(index) and wanted.lower() not in name.lower():
            reason: str | None = f"not named by {variable}={wanted}"
        else:
            reason = refuse(device)
        if reason is None:
            return device
        lines.append(f"{index}: {name}: {reason}")
    install = "install an OpenCL driver that takes SPIR-V, such as PoCL 6 (Debian: pocl-opencl-icd)"
    choose = f"set {variable} to the number or to a part of the name of another of these devices, or {install}"
    raise DeviceError(
        f"no OpenCL device fits {variable}={wanted}" if wanted else "no OpenCL device takes SPIR-V",
        why="\n".join(lines) if lines else "no OpenCL platform is installed (see /etc/OpenCL/vendors)",
        next=choose if lines else install,
    )


# By the end of PoCL's CL_DEVICE_VERSION, such as "PoCL HSTR: cpu-x86_64-pc-linux-gnu-haswell": the processors that
# PoCL's library is compiled for, the widest vectors that C passes in registers on them (System V ABI of x86-64,
# section 3.2.3), and the number of vector registers.
_POCL = "Portable Computing Language"


class Processor(NamedTuple):
    """Vector registers: the bytes of one, and their number; and whether it has F16C.

    The default is any x86-64. An AArch64 has 32 registers of the same width.
    """

    vector_bytes: int = 16
    registers: int = 16
    converts_f16: bool = False


_PROCESSORS = {
    "skylake-avx512": Processor(64, 32, converts_f16=True),
    "haswell": Processor(32, converts_f16=True),
    "bdver1": Processor(32),
    "ivybridge": Processor(32, converts_f16=True),
    "sandybridge": Processor(32),
}


def is_pocl(device: cl.Device) -> bool:
    """Return whether the device is PoCL's, whose compiler is LLVM."""
    return bool(device.platform.name == _POCL)


def is_gpu(device: cl.Device) -> bool:
    return bool(device.type & cl.device_type.GPU)


def has_fma(device: cl.Device) -> bool:
    """Return whether the device has a fused multiply-add instruction, which rounds once."""
    return bool(device.single_fp_config & cl.device_fp_config.FMA)


def call_bytes(device: cl.Device) -> int:
    """Return the widest vectors that the device's library functions can be called with, in bytes.

    With wider vectors, PoCL's functions return wrong numbers, unrelated to the arguments.
    """
    return processor(device).vector_bytes if is_pocl(device) else WIDEST_VECTOR


def processor(device: cl.Device) -> Processor:
    """Return the kind of processor that PoCL compiles kernels for."""
    version = device.version.strip()
    return next((known for name, known in _PROCESSORS.items() if version.endswith(f"-gnu-{name}")), Processor())


def work_item_target(device: cl.Device) -> WorkItemTarget:
    """Return what the mapping to work-items must know."""
    vector_bytes = 4 * device.native_vector_width_float
    known = Processor()
    if is_pocl(device):
        # PoCL reports the vectors of the machine even if it compiles kernels for a lesser one. If it does not know
        # the machine, it reports none; each x86-64 and each AArch64 has the default's.
        known = processor(device)
        vector_bytes = max(min(vector_bytes, known.vector_bytes), Processor().vector_bytes)
    # Without the FMA instruction, LLVM calls C's fma: the result is right, but this is slow.
    intrinsics = is_pocl(device) and has_fma(device)
    return WorkItemTarget(
        vector_bytes,
        intrinsics,
        min(vector_bytes, call_bytes(device)),
        vector_registers=known.registers,
        converts_f16=intrinsics and known.converts_f16,
    )


_not_started: list[cl.Context] = []


def start_compilers() -> None:
    """Let each device of PoCL that was opened load its compiler and its library, in another thread.

    At the first kernel that it builds, PoCL takes up to 0.4 s of processor time for this, as long as our stages take.
    """

    def build_nothing(context: cl.Context) -> None:
        with suppress(cl.Error):  # the first kernel will say it
            cl.Program(context, EMPTY).build()

    with suppress(IndexError):  # there is none left; kernels may be compiled in several threads
        while True:
            threading.Thread(target=build_nothing, args=(_not_started.pop(),)).start()


class OpenCLDevice:
    """An OpenCL device with its context and queue.

    Attributes:
        cl: the device itself.
        shares: whether it works in the host's address space.
        memory: how kernels reach the caller's arrays.

    Args:
        device: a device from `find`.
        memory: None for the best mode that the device offers.

    Raises:
        DeviceError: `memory` is SVM and the device does not share the host's address space.
    """

    def __init__(self, device: cl.Device, memory: MemoryMode | None = None) -> None:
        shares = bool(device.svm_capabilities & cl.device_svm_capabilities.FINE_GRAIN_SYSTEM)
        if memory is MemoryMode.SVM and not shares:
            raise DeviceError(
                f"{device.name.strip()} cannot use host pointers",
                why="the device has no fine-grained system SVM (CL_DEVICE_SVM_FINE_GRAIN_SYSTEM)",
                next=f"use memory mode {MemoryMode.BUFFER}",
            )
        self.cl = device
        self.shares = shares
        self.memory = memory or (MemoryMode.SVM if shares else MemoryMode.BUFFER)
        self.context = cl.Context([device])
        self.queue = cl.CommandQueue(self.context)
        if is_pocl(device):
            _not_started.append(self.context)
            crash.install()

    def device_report(self) -> DeviceReport:
        cpu = bool(self.cl.type & cl.device_type.CPU)
        return DeviceReport(
            kind=Kind.CPU_OPENCL if cpu else Kind.HARDWARE,
            device=self.cl.name.strip(),
            driver=f"{self.cl.platform.name.strip()} {self.cl.driver_version.strip()} ({self.cl.version.strip()})",
            memory="zero-copy (system SVM)" if self.memory is MemoryMode.SVM else "OpenCL buffers",
        )

    def simt_target(self) -> SimtTarget:
        """Return what the mapping to workgroups must know.

        Raises:
            DeviceError: the device lacks something that the mapping needs.
        """
        known = self.cl
        if known.address_bits != 64 or not known.double_fp_config:
            raise DeviceError(
                f"{known.name.strip()} cannot execute a program by a workgroup",
                why="the mapping needs pointers of 64 bits (CL_DEVICE_ADDRESS_BITS) and f64 (cl_khr_fp64)",
                next="set FOUNDRY_SPIRV_MAPPING=workitem",
            )
        size, shuffles = self.lanes
        return SimtTarget(
            warp_size=size,
            workgroup_bytes=known.local_mem_size,
            argument_bytes=known.max_parameter_size,
            # In f64, OpenCL requires the instruction.
            fuses=(32, 64) if has_fma(known) else (64,),
            flavour="kernel",
            shuffles=shuffles,
            converts_f16="cl_khr_fp16" in known.extensions.split(),
            invocations=known.max_work_group_size,
        )

    @functools.cached_property
    def lanes(self) -> tuple[int, bool]:
        """How many invocations execute the same instruction at once, a power of two; and whether they are a subgroup
        in which each reads the registers of the others. PoCL 6 reads wrong ones in branches of a loop."""
        most: int = self.cl.preferred_work_group_size_multiple
        size = 1 << most.bit_length() - 1
        needed = {"cl_khr_subgroup_shuffle", "cl_intel_required_subgroup_size"}
        return size, not is_pocl(self.cl) and needed <= {*self.cl.extensions.split()} and self.swaps(size)

    def swaps(self, size: int) -> bool:
        """Find out by trying whether subgroups work: OpenCL has no query for what SPIR-V says of them."""
        from ..mapping.simt.spirv.opencl import swap_lanes

        found = np.full(2 * size, -1, np.int32)
        try:
            kernel = cl.Kernel(self.build(swap_lanes(size)), "swap_lanes")
            flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
            buffer = cl.Buffer(self.context, flags, hostbuf=found)
            kernel(self.queue, (2 * size,), (2 * size,), buffer, *[np.int32(1)] * 3)
            cl.enqueue_copy(self.queue, found, buffer)
        except (BuildError, cl.Error):
            return False
        return bool((found == np.arange(2 * size) ^ (size - 1)).all())

    @functools.cached_property
    def spare(self) -> cl.Buffer:
        """16 bytes of zeros, which loads read whose mask is not set."""
        flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
        return cl.Buffer(self.context, flags, hostbuf=np.zeros(16, np.uint8))

    def build(self, spirv: bytes) -> cl.Program:
        """Compile a SPIR-V module for the device.

        Raises:
            BuildError: contains the device's build log, or says that the module was compiled for another device.
        DeviceError: this process was forked.
        """
        refuse_child()
        calls, most = widest_call(spirv), call_bytes(self.cl)
        if calls > most:
            raise BuildError(
                f"the kernel was compiled for another device than {self.cl.name.strip()}",
                why=f"it calls library functions with vectors of {calls} bytes; this device takes up to {most}, and "
                "would compute wrong results without a message",
                next="compile it for this device: launch it without a target, or with the target of the active driver",
            )
        program = cl.Program(self.context, add_scopes(spirv) if is_pocl(self.cl) else spirv)
        try:
            program.build()
        except cl.RuntimeError as error:
            raise BuildError(f"{self.cl.name.strip()} did not accept the kernel", why=str(error)) from error
        return program

    @contextmanager
    def logging(self, log: Log | None) -> Iterator[list[cl.Buffer]]:
        """Give a launch inside the `with` its log, as the last of its tables; report what it wrote afterwards.

        Raises:
            DeviceAssertionError: an assertion failed.
            DeviceError: this process was forked.
        """
        refuse_child()
        if log is None:
            yield []
            return
        buffer = cl.Buffer(self.context, cl.mem_flags.READ_WRITE, log.bytes)
        header = log.header()
        cl.enqueue_copy(self.queue, buffer, header)
        yield [buffer]
        cl.enqueue_copy(self.queue, header, buffer)
        words = np.empty(log.used_bytes(header) // header.itemsize, header.dtype)
        cl.enqueue_copy(self.queue, words, buffer)
        buffer.release()
        log.report([words])

    def launcher(
        self,
        program: cl.Program,
        name: str,
        types: Sequence[str],
        *,
        threads: int = 1,
        tables: int = 0,
        cl_mem: bool = False,
        addresses: bool = False,
    ) -> OpenCLLauncher:
        """Return a callable that launches kernel `name` of `program`.

        Args:
            types: Triton's types of the kernel's parameters.
            threads: work-items along x that share a program.
            tables: number of buffers that the kernel takes after the grid.
            cl_mem: whether the kernel is defined to take cl_mem even if the device takes host addresses.
            addresses: whether the kernel makes pointers of numbers, which are addresses in the host's memory.

        Raises:
            DeviceError: a work-group of the device cannot have that many work-items, or the kernel uses the host's
                addresses and the device does not share the host's address space.
        """
        if addresses and not self.shares:
            raise DeviceError(
                f"kernel {name} makes pointers of numbers, which {self.cl.name.strip()} cannot follow",
                why="data_ptr() is an address of the host, and the device does not share the host's address space "
                "(no CL_DEVICE_SVM_FINE_GRAIN_SYSTEM)",
                next="pass each array as a separate argument",
            )
        kernel = cl.Kernel(program, name)
        most = kernel.get_work_group_info(cl.kernel_work_group_info.WORK_GROUP_SIZE, self.cl)
        if threads > most:
            raise DeviceError(
                f"kernel {name} cannot run with {threads} work-items a program",
                why=f"a work-group of it can have {most} on {self.cl.name.strip()}",
                next="use fewer warps: num_warps= of the launch or of its triton.Config",
            )
        kind: type[OpenCLLauncher] = BufferLauncher
        if self.memory is MemoryMode.SVM:
            kind = SharedLauncher if cl_mem else SvmLauncher
        return kind(self, kernel, types, threads, tables)


class OpenCLLauncher:
    """One kernel with the types of its parameters: `launcher(grid, arguments)` runs it until it has finished.

    The kernel's parameters are those of the Triton function that are not constexpr, then the grid's x, y and z as
    int32, then a cl_mem for each table. Each program is a work-group of `threads` work-items along x.

    Attributes:
        threads: work-items that share a program.
    """

    def __init__(
        self, device: OpenCLDevice, kernel: cl.Kernel, types: Sequence[str], threads: int, tables: int
    ) -> None:
        self._queue = device.queue
        self._context = device.context
        self._kernel = kernel
        self.threads = threads
        self._local = (threads, 1, 1)
        # Setting arguments and enqueueing are two steps on one object, so threads take turns.
        self._lock = threading.Lock()
        # What each parameter was set to, as an address or as the bytes of a number; None if that may not be used again.
        self._set: list[int | bytes | None] = [None] * (len(types) + 3 + tables)
        self._convert = [None if type.startswith("*") else _packing(passed(type)) for type in types]

    def __call__(self, grid: Grid, arguments: Sequence[Any], tables: Sequence[Table] = ()) -> None:
        """Run the kernel for every program of `grid`; return when it has finished.

        Args:
            grid: programs along x, y and z; if one is 0, no program runs.
            arguments: a tensor for each pointer, a number for each scalar.
            tables: bytes that the kernel reads from separate buffers, or the buffers themselves.
        """
        raise NotImplementedError

    def _enqueue(self, grid: Grid, values: Sequence[Any], tables: Sequence[Table]) -> cl.Event:
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        buffers = [
            table if isinstance(table, cl.Buffer) else cl.Buffer(self._context, flags, hostbuf=table)
            for table in tables
        ]
        x, y, z = grid
        passing = [*values, _INT32(x), _INT32(y), _INT32(z), *buffers]
        with self._lock:
            # Setting an argument takes longer than to see that it is the one of the launch before.
            for number, (value, before) in enumerate(zip(passing, self._set, strict=True)):
                if value is not None and value == before:
                    continue
                is_address = isinstance(value, int)
                self._kernel.set_arg(number, cl.SVM(_Byte.from_address(value)) if is_address else value)
                self._set[number] = value if isinstance(value, int | bytes) else None
            return cl.enqueue_nd_range_kernel(self._queue, self._kernel, (x * self.threads, y, z), self._local)


# The sides of the grid.
_INT32 = struct.Struct("i").pack


def _packing(type: Scalar) -> Callable[[Any], bytes]:
    """Return a function from a number to the bytes that are passed."""
    convert, pack = type.convert, struct.Struct(type.code).pack
    return lambda number: pack(convert(number))


class SvmLauncher(OpenCLLauncher):
    """Passes host addresses unchanged."""

    def __call__(self, grid: Grid, arguments: Sequence[Any], tables: Sequence[Table] = ()) -> None:
        if 0 in grid:
            return
        values = [
            convert(argument) if convert else self._pointer(argument)
            for convert, argument in zip(self._convert, arguments, strict=True)
        ]
        self._enqueue(grid, values, tables).wait()

    def _pointer(self, tensor: TensorLike) -> Any:
        return tensor.data_ptr()


# PyOpenCL makes an SVM pointer from any object with a buffer. Only the address reaches OpenCL, so one byte suffices.
_Byte = ctypes.c_char * 1


class SharedLauncher(SvmLauncher):
    """Passes a cl_mem over the memory of each argument, on a device that shares the host's address space."""

    def _pointer(self, tensor: TensorLike) -> Any:
        storage, low = tensor.untyped_storage(), tensor.data_ptr()
        size = storage.data_ptr() + storage.nbytes() - low
        if size <= 0:
            return None  # a tensor without elements
        return cl.Buffer(self._context, _OVER_HOST_MEMORY, hostbuf=(ctypes.c_char * size).from_address(low))


class BufferLauncher(OpenCLLauncher):
    """Wraps the memory of the arguments into cl_mem objects during a launch."""

    def __init__(
        self, device: OpenCLDevice, kernel: cl.Kernel, types: Sequence[str], threads: int, tables: int
    ) -> None:
        super().__init__(device, kernel, types, threads, tables)
        self._alignment = device.cl.mem_base_addr_align // 8

    def __call__(self, grid: Grid, arguments: Sequence[Any], tables: Sequence[Table] = ()) -> None:
        if 0 in grid:
            return
        spans = memory_spans(
            [argument for convert, argument in zip(self._convert, arguments, strict=True) if not convert]
        )
        buffers = {
            low: cl.Buffer(self._context, _OVER_HOST_MEMORY, hostbuf=(ctypes.c_char * (high - low)).from_address(low))
            for low, high in spans
        }
        values = [
            convert(argument) if convert else self._part(argument.data_ptr(), spans, buffers)
            for convert, argument in zip(self._convert, arguments, strict=True)
        ]
        self._enqueue(grid, values, tables)
        # Mapping makes the stores visible in the host memory over which a buffer was created.
        for low, high in spans:
            mapped, _ = cl.enqueue_map_buffer(
                self._queue, buffers[low], cl.map_flags.READ, 0, (high - low,), np.dtype(np.uint8), is_blocking=False
            )
            mapped.base.release(self._queue)
        self._queue.finish()
        for buffer in buffers.values():
            buffer.release()

    def _part(self, address: int, spans: Sequence[tuple[int, int]], buffers: dict[int, cl.Buffer]) -> cl.Buffer | None:
        for low, high in spans:
            if address == low:
                return buffers[low]
            if low < address < high:
                offset = address - low
                if offset % self._alignment:
                    raise DeviceError(
                        "two arguments share an allocation in a way that this device cannot express",
                        why=f"one starts {offset} bytes after the other; buffers of the device can start only at "
                        f"multiples of {self._alignment} bytes (CL_DEVICE_MEM_BASE_ADDR_ALIGN)",
                        next="pass a copy of one of the two",
                    )
                return buffers[low].get_sub_region(offset, high - address)
        return None  # a tensor without elements
