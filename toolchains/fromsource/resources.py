"""The resources that a build from source needs on the engine's machine (processors, memory, disk), and signs of a lack.

They are measured inside the container: an engine may be on another machine, and a container has its own limits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from toolchains.engine.container import Container
from toolchains.system.errors import EngineError, FileError

# Bytes that one compilation and one link may need, with a margin. Measured as the largest resident set that the kernel
# reported (wait4's ru_maxrss), release builds without debug information:
# - clang 14 for the slowest file of LLVM 13 with MLIR, SPIRVDialect.cpp: 1.11 GB; for ArmSVEDialect.cpp: 0.39 GB.
# - lld 14 for 93 MB of LLVM's and MLIR's objects: 0.29 GB; for all 176 archives of LLVM 14, 255 MB: 0.60 GB. That is
#   2.4 bytes per byte of input; a program that links 800 MB of archives needs this much.
PER_COMPILE = 1_500_000_000
PER_LINK = 2_000_000_000
# A container's memory limits, cgroups v2 and v1; "max", or a number that no machine has, means no limit.
_MEMORY_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_CPU_QUOTA = "/sys/fs/cgroup/cpu.max"
_CPU_QUOTA_1 = ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu/cpu.cfs_period_us")
# The output about a process that the kernel ended: by shells, by clang, gcc and collect2 as drivers, by Ninja's code of
# the step, by make. A compiler within clang's own process prints nothing; then the shell prints it.
_KILLED = re.compile(
    r"^(?:/bin/sh: .*)?Killed$|unable to execute command: Killed|Killed signal terminated program \S+"
    r"|\S+ terminated with signal 9|FAILED: \[code=137\]|Error 137$"
)
# The output of a program that requested memory and did not get it.
_REFUSED = re.compile(
    r"^LLVM ERROR: out of memory|^virtual memory exhausted"
    r"|^(?:terminate called|libc\+\+abi: terminating).*std::bad_alloc"
    r"|: out of memory allocating \d+ bytes|: memory exhausted$|: Cannot allocate memory$|^MemoryError$"
)
_FULL = re.compile(r"No space left on device|Disk quota exceeded")
_FAILED = re.compile(r"FAILED: (?:\[code=\d+\] )?(\S+)")
_SIGKILL_STATUS = 137


@dataclass(frozen=True)
class Machine:
    """Processors, and bytes of free memory, as a container sees them."""

    cpus: int
    memory: int


@dataclass(frozen=True)
class Jobs:
    """How many compilations, and how many links among them, may run at a time; its string includes the reason."""

    compile: int
    link: int
    reason: str = ""

    def __str__(self) -> str:
        return f"{_count(self.compile, 'compile job')}, {_count(self.link, 'link job')}: {self.reason}"


def machine(container: Container) -> Machine:
    """Return the resources that the container may use.

    Raises:
        EngineError: the container does not report them.
    """

    def read(path: str) -> str:
        return container.run(["cat", path]).stdout.strip()

    free = re.search(r"^MemAvailable: +(\d+) kB$", read("/proc/meminfo"), re.MULTILINE)
    count = container.run(["nproc"]).stdout.strip()
    if not free or not count.isdigit():
        raise EngineError("the container does not tell its processors and memory", why="/proc/meminfo, nproc")
    limits = (int(text) for path in _MEMORY_LIMITS if (text := read(path)).isdigit())
    # The quota is a time per period, and has other words if there is none.
    quota = read(_CPU_QUOTA).split() or [read(path) for path in _CPU_QUOTA_1]
    cpus = int(count)
    if len(quota) == 2 and all(word.isdigit() for word in quota):
        cpus = min(cpus, max(int(quota[0]) // int(quota[1]), 1))
    return Machine(max(cpus, 1), min(int(free[1]) * 1024, *limits, 1 << 62))


def jobs(cpus: int, memory: int, *, per_compile: int = PER_COMPILE, per_link: int = PER_LINK, asked: int = 0) -> Jobs:
    """Return how many steps may run at a time with the available memory: at least one, at most one per processor.

    Args:
        cpus: number of processors.
        memory: free memory in bytes.
        per_compile: bytes that a compilation needs.
        per_link: bytes that a link needs; other steps run at the same time.
        asked: the user's own number of compile jobs, which is used unchanged; 0 for none.
    """
    compile = asked or max(min(cpus, memory // per_compile), 1)
    while True:
        room = [link for link in range(1, compile + 1) if link * per_link + (compile - link) * per_compile <= memory]
        if room or compile == 1 or asked:
            break
        compile -= 1
    reason = (
        f"{_count(cpus, 'processor')}, {_gb(memory)} of memory free, {_gb(per_compile)} a compilation, "
        f"{_gb(per_link)} a link"
    )
    if asked:
        reason += f"; {asked} asked for"
    if memory < per_compile * asked or memory < max(per_compile, per_link):
        reason += "; that is more than there is, so compilers may be killed"
    return Jobs(compile, max(room, default=1), reason)


def check_disk(container: Container, path: str, needed: int) -> None:
    """Stop before hours of work if the disk below a folder of the container is too small.

    Args:
        container: measures the free space.
        path: the build's folder; the size of its content is subtracted from the need.
        needed: bytes of the whole build.

    Raises:
        FileError: the free space is too small.
    """
    present = int(container.call(["du", "-sk", path]).split()[0]) * 1024
    # POSIX's format: a line of titles, then a line with device, size, used, available.
    free = int(container.call(["df", "-Pk", path]).splitlines()[-1].split()[3]) * 1024
    if present + free < needed:
        raise FileError(
            "the container engine's disk has no room for this build",
            why=f"{_gb(needed)} are needed at {path}: {_gb(present)} are there from before, and {_gb(free)} are free",
            next="remove images and volumes that you do not need (docker system df shows them), or use an engine "
            "with more room (DOCKER_HOST)",
        )


def cause_of_death(lines: Sequence[str], status: int, oom_killed: bool) -> str | None:
    """Return why a build died, if the reason was memory or disk and not the code; None otherwise.

    Args:
        lines: the end of the output, or all of it.
        status: exit status of the build's command.
        oom_killed: whether the kernel killed a process for lack of memory, Container.oom_killed().
    """
    step, sign, full, refused = "", "", "", False
    for line in lines:
        if failed := _FAILED.match(line):
            step = failed[1]
        if not sign and (_KILLED.search(line) or _REFUSED.search(line)):
            sign = f"{step}: {line.strip()}" if step and step not in line else line.strip()
            refused = not _KILLED.search(line)
        if not full and _FULL.search(line):
            full = f"{step}: {line.strip()}" if step else line.strip()
    if full:
        return f"the container engine's disk is full: {full}"
    if status == 0 or not (sign or oom_killed or status == _SIGKILL_STATUS):
        return None
    if oom_killed:
        reason = "the kernel killed a compiler or linker for lack of memory"
    elif refused:
        reason = "a compiler or linker got no more memory"
    else:
        killed = "a compiler or linker" if sign else "the whole build"
        reason = f"{killed} was killed (signal 9), most often for lack of memory"
    return f"{reason}: {sign}" if sign else reason


def _gb(size: int) -> str:
    return f"{size / 1e9:.1f} GB"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
