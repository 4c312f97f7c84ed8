"""A container for kernels, tests and users' programs, with restrictions and limits, because they may do anything."""

from __future__ import annotations

import io
import math
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import docker.types

import docker
from toolchains.archives.folders import add_files
from toolchains.archives.tar_file import TarWriter
from toolchains.engine.answers import frames
from toolchains.engine.container import LIFELINE, Container
from toolchains.engine.diagnosis import FAILURES, reported
from toolchains.engine.gpus import Gpus
from toolchains.system.errors import EngineError, FoundryError, LimitError

# The user in a sandbox: any user but root. Images need no entry for it.
USER = 1000
# The most bytes that programs in a sandbox write, if nothing else is said.
DISK = 2 * 10**9
# The free bytes and files of the engine's disk below which a sandbox is ended that was started with more.
_RESERVE = (10**9, 10**5)
# Prints each second the used bytes of a folder's disk, and its free bytes and files. It starts no process, since there
# may be too many.
_REPORT = """
import os, sys, time
while True:
    found = os.statvfs(sys.argv[1])
    used, free = found.f_blocks - found.f_bfree, found.f_bavail
    print(found.f_frsize * used, found.f_frsize * free, found.f_favail, flush=True)
    time.sleep(1)
"""
_REMOVED = b": No such file or directory"
# The most bytes that a command in a sandbox prints.
_PRINTED = 1 << 30
# The folder that is always writable in a sandbox; other writable folders must be requested.
HOME = "/foundry"
_TEMPORARY = "/tmp"
# What programs usually read from /etc/passwd, which has no entry for this user.
_IDENTITY = {"HOME": f"{HOME}/home", "USER": "foundry", "LOGNAME": "foundry"}
# Caches are in /tmp, and drivers may load libraries from there: hence "exec".
_TEMPORARY_OPTIONS = "rw,exec,nosuid,nodev,mode=1777"
# A sandbox's share of the engine's memory; the rest is for the engine, the owner and other programs.
_MEMORY_SHARE = 0.75
# The limit on processes and threads in a sandbox: a constant, and an amount for each pair of processors. Tests run in
# as many processes as there are processors, and each has as many threads in PoCL, and again in OpenBLAS.
_PROCESSES, _PROCESSES_PER_PAIR = 4096, 4


@dataclass(frozen=True)
class Limits:
    """A sandbox's limits on the engine's machine; None if the engine cannot enforce one.

    Attributes:
        memory: bytes, for all its processes, including what they write to /tmp.
        processes: processes and threads at the same time.
        seconds: the container's lifetime; None for as long as its owner lives.
        disk: bytes that programs write to the writable folders inside Sandbox.disk_limited.
    """

    memory: int | None
    processes: int | None
    seconds: int | None
    disk: int = DISK

    @classmethod
    def of(cls, info: Mapping[str, Any], seconds: int | None, disk: int = DISK) -> Limits:
        """Return the limits for an engine, from its data about itself and its machine."""
        cpus = int(info.get("NCPU") or 1)
        return cls(
            memory=int(info["MemTotal"] * _MEMORY_SHARE) if info.get("MemoryLimit") and info.get("MemTotal") else None,
            processes=_PROCESSES + _PROCESSES_PER_PAIR * cpus**2 if info.get("PidsLimit") else None,
            seconds=seconds,
            disk=disk,
        )

    def __str__(self) -> str:
        """Return the limits for people: "17.7 GB of memory, 4112 processes, 3600 s"."""
        memory = f"{self.memory / 1e9:.1f} GB of memory" if self.memory else "memory without a limit"
        processes = f"{self.processes} processes" if self.processes else "processes without a limit"
        return ", ".join([memory, processes] + ([f"{self.seconds} s"] if self.seconds else []))


class Sandbox(Container):
    """A container for programs that may do anything: kernels, tests, users' programs.

    Its processes are not root, have no capability and cannot get one. Only /foundry, /tmp and the requested folders are
    writable, and they are removed with the container. It has no network, and limits on memory, processes and time.
    HOME is /foundry/home. Files that are copied into it belong to the user of its processes.

    Files are copied out only after all processes have ended: a process could replace what was checked, or what is being
    read. So the first copy ends the container, and after it only other copies can be made. If its owner is killed, its
    processes end, and the next command on the owner's machine removes it (client.Engine.sweep).

    Args:
        gpus: the GPUs that it gets; none if not given.

    Attributes:
        more_disk: what to type for a higher limit on what is written.
    """

    printable = _PRINTED
    more_disk = ""

    def __init__(self, api: Any, image: str, limits: Limits, folders: Sequence[str], gpus: Gpus | None = None) -> None:
        host = {
            "network_mode": "none",
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges"],
            "read_only": True,
            "tmpfs": {_TEMPORARY: _TEMPORARY_OPTIONS},
            # Volumes without a name, which the engine removes with the container. Unlike a tmpfs, the engine's archives
            # can write to them.
            "mounts": [docker.types.Mount(folder, None, type="volume") for folder in folders],
            # The limit with swap equals the limit without: no swap.
            "mem_limit": limits.memory,
            "memswap_limit": limits.memory,
            "pids_limit": limits.processes,
            # When it has ended, its files must stay until they are read.
            "auto_remove": False,
            **(gpus.settings() if gpus else {}),
        }
        super().__init__(api, image, {key: value for key, value in host.items() if value is not None})
        self.limits = limits
        if limits.seconds:
            self.first = ("timeout", "--signal=KILL", f"{limits.seconds}", *LIFELINE)
        self.settings = {
            "user": f"{USER}:{USER}",
            "environment": _IDENTITY | dict(gpus.environment if gpus else {}),
        }
        self.advice = gpus.advice if gpus else ""
        self._folders = folders
        self._end = math.inf
        # Why the container was ended before its programs did.
        self._broken = ""

    def _start(self) -> None:
        # Before the start: the container's own clock, which begins with it, must not be ahead of this one.
        self._end = time.monotonic() + (self.limits.seconds or math.inf)
        super()._start()
        # A new volume belongs to root, or with Podman to the container's user. Each can change its own files without a
        # capability; the engine's archives cannot.
        printed: list[bytes] = []
        words = ["chmod", "1777", *self._folders]
        if all(self._execute(words, lambda _, chunk: printed.append(chunk), user=user) for user in ("0", str(USER))):
            self._check_time("chmod")
            why = b"".join(printed).decode(errors="replace")
            raise EngineError(f"cannot prepare a container of {self._image}", why=why)
        self.call(["mkdir", "-p", _IDENTITY["HOME"]])

    def end(self) -> None:
        """End all processes in the container; then its files can be copied out, and nothing else can be done.

        Raises:
            EngineError: the engine did not end them.
        """
        with reported(f"cannot end the container of {self._image}"):
            self._api.stop(self.id, timeout=0)

    def _packed(self, source: str) -> Iterable[bytes]:
        self.end()
        return super()._packed(source)

    @contextmanager
    def disk_limited(self) -> Iterator[None]:
        """End the container if its programs write more than its limit; its files can then still be copied out.

        Engines have no limit for volumes, so a process of root in the container, which the programs cannot end or
        change, reports how full the engine's disk is. Only if it has grown by more than the limit is it counted who
        grew: other programs write there, too.

        Raises:
            LimitError: they wrote more.
        """
        with reported(f"cannot watch a container of {self._image}"):
            base, _ = self._written()
            id = self._api.exec_create(self.id, ["python3", "-I", "-c", _REPORT, HOME], user="0")["Id"]
            reports = frames(self._api.exec_start(id, socket=True))
        threading.Thread(target=self._watch, args=(reports, base), daemon=True).start()
        yield
        self._check_time("what ran")

    def _watch(self, reports: Iterator[tuple[int, bytes]], base: int) -> None:
        grown, first = self.limits.disk, list[int]()
        with suppress(*FAILURES, FoundryError, ValueError):
            for _, chunk in reports:
                used, *free = now = [int(word) for word in chunk.split(b"\n")[0].split()]
                first = first or now
                if any(
                    available < least <= before
                    for available, least, before in zip(free, _RESERVE, first[1:], strict=True)
                ):
                    self._break("the disk of the container engine is almost full")
                elif used - first[0] > grown:
                    written, complete = self._written()
                    if written - base > self.limits.disk or not complete:
                        self._break(f"it wrote more than {self.limits.disk / 1e9:g} GB")
                    grown = used - first[0] + self.limits.disk - (written - base)

    def _break(self, why: str) -> None:
        self._broken = why
        self.end()

    def _written(self) -> tuple[int, bool]:
        """Return the bytes on the disk in the writable folders, and whether all folders could be read."""
        # Root has no capability here, and so cannot read the user's private folders. The user's programs could end or
        # change a process of the user.
        for user in "0", str(USER):
            printed = [b"", b""]

            def take(stream: int, chunk: bytes, printed: list[bytes] = printed) -> None:
                printed[stream] += chunk

            status = self._execute(["du", "-skx", *self._folders], take, user=user)
            # What a program removes at the same moment is no error.
            complete = status in (0, 1) and all(line.endswith(_REMOVED) for line in printed[1].splitlines())
            if complete:
                break
        return sum(map(int, re.findall(rb"^[0-9]+", printed[0], re.MULTILINE))) << 10, complete

    def _check_time(self, program: str) -> None:
        if self._broken:
            raise LimitError(
                f"{program} in a container of {self._image} was ended", why=self._broken, next=self.more_disk
            )
        if time.monotonic() >= self._end:
            raise LimitError(
                f"{program} in a container of {self._image} was ended",
                why=f"it reached its time limit of {self.limits.seconds} s",
            )

    def _unpack(self, entries: Mapping[str, Path | bytes]) -> None:
        """Write files into the writable folders: the engine refuses other folders, and cannot write to a tmpfs.

        The files and their parent folders belong to the user of the sandbox.
        """
        for folder in self._folders:
            root = folder.strip("/") + "/"
            inner = {name.removeprefix(root): source for name, source in entries.items() if name.startswith(root)}
            if inner:
                packed = io.BytesIO()
                with TarWriter(packed, owner=USER) as tar:
                    parents = {str(parent) for name in inner for parent in PurePosixPath(name).parents}
                    for parent in sorted(parents - {"."}):
                        tar.folder(parent)
                    add_files(tar, inner)
                self._api.put_archive(self.id, folder, packed.getvalue())
        outside = [name for name in entries if not name.startswith(tuple(f"{f.strip('/')}/" for f in self._folders))]
        if outside:
            raise EngineError(f"cannot write /{outside[0]}", why=f"only {', '.join(self._folders)} can be written to")
