"""A container for kernels, tests and users' programs, which may do anything: what it cannot do, and its limits."""

from __future__ import annotations

import io
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import docker.types

import docker
from toolchains.archives.folders import add_files
from toolchains.archives.tar_file import TarWriter
from toolchains.engine.container import LIFELINE, Container
from toolchains.system.errors import EngineError, LimitError

# The user in a sandbox: any but root. No image needs to know it.
USER = 1000
# The folder that a sandbox can always write to; others must be asked for.
HOME = "/foundry"
_TEMPORARY = "/tmp"
# What programs take from /etc/passwd, which has no line for that user.
_IDENTITY = {"HOME": f"{HOME}/home", "USER": "foundry", "LOGNAME": "foundry"}
# Caches go to /tmp, and a driver's library may be loaded from there: hence "exec".
_TEMPORARY_OPTIONS = "rw,exec,nosuid,nodev,mode=1777"
# A sandbox may take this share of the engine's memory; the rest is for the engine, the owner and other programs.
_MEMORY_SHARE = 0.75
# Processes and threads in a sandbox: this many, and for each pair of processors this many more. Tests run in as many
# processes as there are processors, and each has as many threads in PoCL, and again in OpenBLAS.
_PROCESSES, _PROCESSES_PER_PAIR = 4096, 4


@dataclass(frozen=True)
class Limits:
    """What a sandbox may take of the machine that the engine runs on; None where the engine cannot limit it.

    Attributes:
        memory: bytes, of all its processes, with what they write to /tmp.
        processes: processes and threads at a time.
        seconds: how long the container lives; None for as long as its owner.
    """

    memory: int | None
    processes: int | None
    seconds: int | None

    @classmethod
    def of(cls, info: Mapping[str, Any], seconds: int | None) -> Limits:
        """Return the limits that fit an engine, from what it says of itself and its machine."""
        cpus = int(info.get("NCPU") or 1)
        return cls(
            memory=int(info["MemTotal"] * _MEMORY_SHARE) if info.get("MemoryLimit") and info.get("MemTotal") else None,
            processes=_PROCESSES + _PROCESSES_PER_PAIR * cpus**2 if info.get("PidsLimit") else None,
            seconds=seconds,
        )

    def __str__(self) -> str:
        """For people: "17.7 GB of memory, 4112 processes, 3600 s"."""
        memory = f"{self.memory / 1e9:.1f} GB of memory" if self.memory else "memory without a limit"
        processes = f"{self.processes} processes" if self.processes else "processes without a limit"
        return ", ".join([memory, processes] + ([f"{self.seconds} s"] if self.seconds else []))


class Sandbox(Container):
    """A container that runs what may do anything: kernels, tests, users' programs.

    Its processes are not root, have no capability and can get none. All of it is read-only but /foundry, /tmp and the
    folders that were asked for, which are gone with it. It has no network, and limits on memory, processes and time.
    HOME is /foundry/home. What is copied into it belongs to the user that its processes run as.
    """

    def __init__(self, api: Any, image: str, limits: Limits, folders: Sequence[str]) -> None:
        host = {
            "network_mode": "none",
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges"],
            "read_only": True,
            "tmpfs": {_TEMPORARY: _TEMPORARY_OPTIONS},
            # Volumes without a name, which the engine removes with the container. Unlike a tmpfs, they can be reached
            # by its archives.
            "mounts": [docker.types.Mount(folder, None, type="volume") for folder in folders],
            # The same limit with swap as without: no swap.
            "mem_limit": limits.memory,
            "memswap_limit": limits.memory,
            "pids_limit": limits.processes,
        }
        super().__init__(api, image, {key: value for key, value in host.items() if value is not None})
        self.limits = limits
        self._folders = folders
        self._end = math.inf

    def _first(self) -> Sequence[str]:
        seconds = self.limits.seconds
        return ("timeout", "--signal=KILL", f"{seconds}", *LIFELINE) if seconds else LIFELINE

    def _settings(self) -> Mapping[str, Any]:
        return {"user": f"{USER}:{USER}", "environment": dict(_IDENTITY)}

    def _prepare(self) -> None:
        self._end = time.monotonic() + (self.limits.seconds or math.inf)
        # A new volume is root's. Root can do this to what it owns without a capability; engines' archives cannot.
        id = self._api.exec_create(self.id, ["chmod", "1777", *self._folders], user="0")["Id"]
        said = self._api.exec_start(id)
        if self._api.exec_inspect(id)["ExitCode"] != 0:
            raise EngineError(f"cannot prepare a container of {self._image}", why=said.decode(errors="replace"))
        self.call(["mkdir", "-p", _IDENTITY["HOME"]])

    def _check_time(self, argv: Sequence[str]) -> None:
        if time.monotonic() >= self._end:
            raise LimitError(
                f"{argv[0]} in a container of {self._image} was ended",
                why=f"it reached its time limit of {self.limits.seconds} s",
            )

    def _unpack(self, entries: Mapping[str, Path | bytes]) -> None:
        """Write files into the folders that can be written to: the engine refuses others, and cannot reach a tmpfs."""
        for folder in self._folders:
            root = folder.strip("/") + "/"
            inner = {name.removeprefix(root): source for name, source in entries.items() if name.startswith(root)}
            if inner:
                self._api.put_archive(self.id, folder, _of_user(inner))
        outside = [name for name in entries if not name.startswith(tuple(f"{f.strip('/')}/" for f in self._folders))]
        if outside:
            raise EngineError(f"cannot write /{outside[0]}", why=f"only {', '.join(self._folders)} can be written to")


def _of_user(entries: Mapping[str, Path | bytes]) -> bytes:
    """Return a tar of files and of the folders that they are in, all of which belong to the user of a sandbox."""
    packed = io.BytesIO()
    with TarWriter(packed, owner=USER) as tar:
        for folder in sorted({str(parent) for name in entries for parent in PurePosixPath(name).parents} - {"."}):
            tar.folder(folder)
        add_files(tar, entries)
    return packed.getvalue()
