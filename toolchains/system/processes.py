"""Name a process so that a later one can tell whether it is dead, even if another process has its number then."""

from __future__ import annotations

import os
import socket
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")


def process_name() -> str:
    """Return the name of this process: machine, boot and PID namespace, number, start time in ticks since the boot."""
    return f"{_machine()} {os.getpid()} {_start(os.getpid())}"


def is_dead(name: str) -> bool:
    """Return whether a process is known to be dead; False for processes of other machines and of earlier boots."""
    machine, _, rest = name.partition(" ")
    number, _, start = rest.partition(" ")
    # A longer number is of no process, and too long for a path.
    if machine != _machine() or not number.isdecimal() or len(number) >= 10:
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass  # another user's
    # /proc may hide the processes of other users.
    return _start(int(number)) not in ("", start)


def ran_before_boot(name: str) -> bool:
    """Return whether a process ran on this machine before it was started, or on another machine of the same name."""
    host, _, boot = _machine().rpartition("/")[0].partition("/")
    return name.startswith(f"{host}/") and not name.startswith(f"{host}/{boot}/")


def describe(name: str) -> str:
    """Return a process's number and machine for people: "process 12 on host"."""
    machine, _, rest = name.partition(" ")
    return f"process {rest.partition(' ')[0] or '?'} on {machine.partition('/')[0] or '?'}"


def _machine() -> str:
    boot = _BOOT.read_text().strip() if _BOOT.is_file() else "unknown"
    return f"{socket.gethostname()}/{boot}/{Path('/proc/self/ns/pid').stat().st_ino}"


def _start(number: int) -> str:
    """Return the start time of a process, "ended" for a zombie; empty if it cannot be read."""
    try:
        # The second field is the program's name in parentheses, which may contain spaces and parentheses.
        fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return ""
    # A zombie only waits for its parent.
    return "ended" if fields[0] == "Z" else fields[19]
