"""Says which line of which kernel ended the process, where a CPU device runs kernels in it: PoCL's, or lavapipe.

On such a device, an access of a kernel to memory that does not exist is a fault of the process itself: it ends with
SIGSEGV, and nothing names the kernel. `install` adds a handler. Where the instruction at fault, or one that called the
function that has it, is in an object that PoCL compiled for a kernel, the handler writes a message with its line to
stderr. Then the process goes on to what it would have done without: the handler before (as Python's faulthandler), or
its end.

The handler is Python code, which no handler of a signal may be in general: the interpreter may be in any state. At a
fault in a kernel it is not. The thread is one of PoCL's, or called PoCL's functions from outside the interpreter, so it
waits for the interpreter's lock as any other thread. Faults elsewhere are passed on at once.

A signal that a process sent (os.kill, signal.raise_signal) has the effect that it would have without PoCL. The handlers
of LLVM, which PoCL installs, take every signal for a fault: they return, so that the instruction is executed again, and
the process would live.

Lavapipe compiles kernels into memory without a name and without lines. There the handler names the launches that are
not known to have finished.
"""

from __future__ import annotations

import ctypes
import platform
import re
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from os import write
from pathlib import Path
from typing import Any, NamedTuple

from ..failure import Failure

_FAULTS = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL)
_SENT = (signal.SIGABRT, signal.SIGQUIT, signal.SIGTRAP, signal.SIGSYS, signal.SIGXCPU)
# The path of an object of PoCL: CACHE/AB/DIGEST/KERNEL/LOCAL-SIZES-AND-MORE/KERNEL.so
OBJECT = re.compile(r"/(?P<kernel>[^/]+)/\d+-\d+-\d+[^/]*/(?P=kernel)\.so$")
_MAPPED = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) \S+ ([0-9a-f]+) \S+ \d+ +(/.*)$", re.MULTILINE)
# Executable memory without a file.
_WITHOUT_FILE = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) ..x\S* \S+ 00:00 0 *$", re.MULTILINE)
_SA_SIGINFO = 4
# Handlers of LLVM have this flag: they are for one fault.
_SA_RESETHAND = 0x80000000
# Where siginfo_t has the cause and the address at fault, and ucontext_t the registers, in bytes (glibc,
# sys/ucontext.h): the instruction pointer and the stack pointer.
_CAUSE, _ADDRESS = 8, 16
_REGISTERS = {"x86_64": (168, 160), "aarch64": (440, 432)}
# Bytes of the stack in which the caller is looked for.
_STACK = 1024
_STDERR = 2


class Crash(Failure):
    """A fault in a kernel."""


class _Action(ctypes.Structure):
    """struct sigaction, as glibc has it on 64-bit Linux."""

    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_ulong * 16),
        ("flags", ctypes.c_uint),
        ("restorer", ctypes.c_void_p),
    )


class PendingLaunch(NamedTuple):
    """A launch on a device whose code has no lines: the kernel, where it is defined, and the grid."""

    kernel: str
    place: str
    grid: tuple[int, int, int]

    def __str__(self) -> str:
        place = f" ({self.place})" if self.place else ""
        return f"{self.kernel}{place} on a grid of {' x '.join(map(str, self.grid))} programs"


# The last launches on such a device that are not known to have finished; the oldest ones are forgotten.
unfinished: deque[PendingLaunch] = deque(maxlen=8)


class _Found(NamedTuple):
    """A kernel's object, and the address of an instruction in it."""

    kernel: str
    object: str
    address: int
    called: bool


_libc = ctypes.CDLL(None)


def _action(number: int, new: _Action | None = None) -> _Action:
    """Return what a signal does, and set it if given."""
    old = _Action()
    _libc.sigaction(number, ctypes.byref(new) if new else None, ctypes.byref(old))
    return old


# What signals do when this module is imported, and before there is its handler.
_at_import: dict[int, _Action] = {number: _action(number) for number in (*_FAULTS, *_SENT)}
_before: dict[int, _Action] = {}
_first = threading.Lock()


def install() -> None:
    """Report faults in kernels from now on; once for a process."""
    if _before or platform.machine() not in _REGISTERS:
        return
    action = _Action(ctypes.cast(_handler, ctypes.c_void_p), (ctypes.c_ulong * 16)(), _SA_SIGINFO, None)
    for number in _FAULTS:
        _before[number] = _action(number, action)
    for number in _SENT:
        _let_through(number, _action(number))


@contextmanager
def kept_handlers() -> Iterator[None]:
    """Restore at the end what signals do: LLVM installs handlers when MLIR's passes may write a reproducer.

    With those, a fault in a kernel would be reported from where LLVM raises it again, with another line.
    """
    before = {number: _action(number) for number in _at_import}
    try:
        yield
    finally:
        for number, action in before.items():
            _action(number, action)


def _let_through(number: int, action: _Action) -> None:
    """Set what a signal does to an action. If that is LLVM's, take what it did before; if that is, too, the default."""
    actions = action, _at_import[number], _Action()
    _action(number, next(each for each in actions if not each.flags & _SA_RESETHAND))


def _report(number: int, information: int, context: int) -> None:
    # The kernel's own causes are positive; SI_USER, SI_TKILL and SI_QUEUE are not.
    if ctypes.c_int.from_address(information + _CAUSE).value <= 0:
        _let_through(number, _before[number])
        # It is blocked until this function returns.
        signal.raise_signal(number)
        return
    # Several threads execute one launch, and fault together. The first one reports, then ends the process.
    while not _first.acquire(blocking=False):
        time.sleep(1)
    instruction, stack = (_word(context + offset) for offset in _REGISTERS[platform.machine()])
    maps, address = Path("/proc/self/maps").read_text(), _word(information + _ADDRESS)
    found = _find(instruction, stack, maps)
    if found is not None:
        write(_STDERR, f"{message(number, address, found)}\n".encode())
    elif unfinished and _is_without_file(instruction, stack, maps):
        write(_STDERR, f"{_without_lines(number, address, list(unfinished))}\n".encode())
    # The instruction at fault is executed again when this function returns. Its fault then has the effect that it would
    # have without this module.
    for each, before in _before.items():
        _action(each, before)


_handler = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(_report)


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


def _find(instruction: int, stack: int, maps: str) -> _Found | None:
    """Return the kernel that an instruction is in, or the one that called its function."""
    objects: list[tuple[int, int, int, Any]] = []
    for low, high, offset, path in _MAPPED.findall(maps):
        if kernel := OBJECT.search(path):
            objects.append((int(low, 16), int(high, 16), int(offset, 16), kernel))
    if not objects:
        return None
    for called, address in [(False, instruction), *((True, each) for each in _returns(stack))]:
        for low, high, offset, kernel in objects:
            if low <= address < high:
                # PoCL's objects are linked to address 0, each part at its offset.
                return _Found(kernel["kernel"], kernel.string, address - low + offset, called)
    return None


def _returns(stack: int) -> Iterator[int]:
    """Yield what may be instructions that called others, from the innermost call on."""
    return (_word(stack + offset) - 1 for offset in range(0, _STACK, 8))


def _is_without_file(instruction: int, stack: int, maps: str) -> bool:
    """Return whether an instruction, or one that called its function, is in memory that a compiler has written."""
    ranges = [(int(low, 16), int(high, 16)) for low, high in _WITHOUT_FILE.findall(maps)]
    return any(low <= each < high for each in (instruction, *_returns(stack)) for low, high in ranges)


def _without_lines(number: int, address: int, launches: list[PendingLaunch]) -> Crash:
    """Build the message for a crash on a device that compiles into memory."""
    name = signal.Signals(number).name
    why = f"it accesses address {address:#x}, where this process has no memory, or none that it may write"
    if len(launches) == 1:
        what = f"kernel {launches[0]} crashed ({name})"
    else:
        what = f"one of the last {len(launches)} launches crashed ({name})"
        why += "\nthey are, from the first: " + "\n".join(map(str, launches))
    return Crash(
        what,
        why=f"{why}\nthe device compiles into memory and does not tell lines",
        next="run it with FOUNDRY_CHECK=1, which names the line, the access, the argument and the index",
    )


def message(number: int, address: int, found: _Found) -> Crash:
    """Build the message for a crash.

    Args:
        number: of the signal.
        address: at fault.
    """
    line = fault_line(found.object, found.address)
    if number == signal.SIGILL:
        why = "the processor does not know an instruction of it"
    else:
        why = f"it accesses address {address:#x}, where this process has no memory, or none that it may write"
    if found.called:
        why += ", in a function that this line calls"
    return Crash(
        f"kernel {found.kernel} crashed at {line or 'an unknown line'} ({signal.Signals(number).name})",
        why=why,
        next="run it with FOUNDRY_CHECK=1, which names the access, the argument and the index"
        if number != signal.SIGILL
        else "compile it on this machine: clear PoCL's cache (POCL_CACHE_DIR)",
    )


def fault_line(path: str, address: int) -> str:
    """Return FILE:LINE of an instruction in an object, as binutils' addr2line finds it; "" if it finds none."""
    try:
        done = subprocess.run(
            ["addr2line", "-e", path, hex(address)], capture_output=True, text=True, check=False, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    said = done.stdout.strip().split(" (discriminator")[0]
    return "" if done.returncode != 0 or said.startswith("??") or said.endswith((":0", ":?")) else said
