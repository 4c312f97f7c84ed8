"""The only door to a container engine: anything that answers Docker's API at DOCKER_HOST or at the default socket.

Only what every such engine does is used: the classic builder without a network, no privileges, no raised limits, and
archives instead of bind mounts, so that an engine on another machine serves as well as one on this.
"""

from __future__ import annotations

import io
import os
import posixpath
import re
import shlex
import shutil
import socket
import sys
import tarfile
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import IO, Any

import docker.errors
import docker.types
import docker.utils
import urllib3.exceptions

import docker

from . import confine, terminal, trees
from .errors import CommandError, EngineError
from .paths import LOGS
from .run import Completed

# An engine that says nothing for this long (seconds) is taken for dead. A command in a container may be silent longer.
_SILENCE = 600
_TAIL_LINES = 30
# A container whose owner was killed ends by itself after this long, and the engine removes it.
_LIFETIME = "24h"
# What the SDK raises: its own errors; when the engine is gone, those of requests, which are OSErrors, and of urllib3.
_FAILURES = (docker.errors.DockerException, OSError, urllib3.exceptions.HTTPError)
# Where a command finds its input when that does not come from a terminal.
_INPUT = "foundry/stdin"
# Where the kernel counts what it killed for lack of memory, in a line "oom_kill N": cgroups of version 1 and 2.
_OOM_COUNTERS = ("/sys/fs/cgroup/memory/memory.oom_control", "/sys/fs/cgroup/memory.events")
# How containers and volumes of ours are told from the user's own. A container's says for whom it is: host and process.
_LABEL = "org.triton-foundry.container"
_VOLUME_LABEL = "org.triton-foundry.volume"
# What the classic builder prints: the image that each step made, the last one being the result, and its containers.
_STEP = re.compile(r"(?: ---> |Successfully built )([0-9a-f]{12,64})$")
_RUNNING = re.compile(r" ---> Running in ([0-9a-f]{12,64})$")


@dataclass(frozen=True)
class ImageInfo:
    """What the engine says of an image: its ID, tags and labels, its size in bytes, the digests of its layers."""

    id: str
    names: tuple[str, ...]
    labels: Mapping[str, str]
    size: int
    layers: tuple[str, ...]


def connect() -> Engine:
    """The engine that DOCKER_HOST or the default socket leads to.

    Raises:
        EngineError: none answers.
    """
    try:
        return Engine(docker.APIClient(version="auto", timeout=_SILENCE, **docker.utils.kwargs_from_env()))
    except _FAILURES as error:
        raise EngineError("no container engine answers", why=str(error), next="./foundry doctor") from error


class Engine:
    """A container engine. Every method raises EngineError when the engine refuses."""

    def __init__(self, api: Any) -> None:
        self._api = api

    def version(self) -> str:
        """Name and version of the engine: "Docker Engine 20.10.24"."""
        try:
            answer = self._api.version()
        except _FAILURES as error:
            raise EngineError(
                "the container engine does not answer", why=str(error), next="./foundry doctor"
            ) from error
        return f"{answer.get('Platform', {}).get('Name') or 'Engine'} {answer['Version']}"

    def image(self, name: str) -> ImageInfo | None:
        """The image with this tag or ID, or None."""
        try:
            answer = self._api.inspect_image(name)
        except docker.errors.ImageNotFound:
            return None
        except _FAILURES as error:
            raise EngineError(f"cannot look for the image {name}", why=str(error), next="./foundry doctor") from error
        return ImageInfo(
            id=answer["Id"],
            names=tuple(answer.get("RepoTags") or ()),
            labels=answer["Config"].get("Labels") or {},
            size=answer["Size"],
            layers=tuple(answer["RootFS"].get("Layers") or ()),
        )

    def tag(self, image: str, name: str) -> None:
        """Give an image one more name; a name that another image had moves here."""
        repository, _, label = name.partition(":")
        self._do("tag", lambda: self._api.tag(image, repository, label, force=True))

    def remove(self, image: str) -> None:
        """Remove a name of an image, and with its last name the image and the build steps that only it needed.

        An image that a container or another image uses stays, and what is not there need not be removed.
        """
        try:
            self._api.remove_image(image)
        except _FAILURES as error:
            if _status(error) not in (404, 409):
                raise EngineError(f"cannot remove the image {image}", why=str(error)) from error

    def load(self, path: Path) -> None:
        """Load a docker-archive."""
        with path.open("rb") as file:
            self._do("load", lambda: _check(self._api.load_image(file)))

    def save(self, image: str, file: IO[bytes]) -> None:
        """Write an image to a file as a docker-archive."""
        self._do("save", lambda: [file.write(chunk) for chunk in self._api.get_image(image)])
        file.flush()

    @contextmanager
    def build(
        self, context: IO[bytes], *, arguments: Mapping[str, str], labels: Mapping[str, str] | None = None,
        line: Callable[[str], None] = lambda _: None,
    ) -> Iterator[str]:  # fmt: skip
        """Build an image without a network and without a cache; it exists inside the with statement only.

        Args:
            context: a tar with a Dockerfile at its top.
            arguments: values of the Dockerfile's ARG.
            labels: added to the image.
            line: called with each line that the engine prints.

        Yields:
            The image's ID.

        Raises:
            EngineError: a step failed; carries the last lines printed and the log's path.
        """
        printed: list[str] = []
        failure = ""
        try:
            try:
                for answer in self._api.build(
                    fileobj=context, custom_context=True, dockerfile="Dockerfile", buildargs=dict(arguments),
                    labels=dict(labels or {}), nocache=True, rm=True, forcerm=True, network_mode="none", decode=True,
                    # The user's proxies are of no use without a network, and would be written into the image.
                    use_config_proxy=False,
                ):  # fmt: skip
                    failure = failure or answer.get("error", "")
                    for text in (answer.get("stream") or answer.get("error") or "").splitlines():
                        if text.strip():
                            printed.append(text)
                            line(text)
            except _FAILURES as error:
                failure = str(error)
            LOGS.mkdir(parents=True, exist_ok=True)
            log = LOGS / "docker-build.log"
            log.write_text("\n".join(printed) + "\n")
            ids = _found(_STEP, printed)
            if failure or not ids:
                tail = "\n".join(printed[-_TAIL_LINES:]) or failure
                raise EngineError("building an image failed", why=f"{tail}\n(whole output: {log})")
            yield ids[-1]
        except BaseException:
            # What went wrong first is to be heard of, not that cleaning up after it failed, too.
            with suppress(EngineError):
                self._clear(printed)
            raise
        self._clear(printed)

    def _clear(self, printed: Sequence[str]) -> None:
        """Remove what a build left, by what it printed."""
        # Interrupted, the step at work would go on, and hold on to the images under it.
        for id in _found(_RUNNING, printed):
            with suppress(*_FAILURES):
                self._api.remove_container(id, force=True)
        # The engine keeps what each step made. A step whose image has a name is one that we started from.
        for id in reversed(_found(_STEP, printed)):
            info = self.image(id)
            if info and not info.names:
                self.remove(id)

    def container(
        self, image: str, *, memory: str | None = None, cpus: float | None = None, processes: int | None = None,
        network: str = "none", volumes: Mapping[str, str] | None = None,
    ) -> Container:  # fmt: skip
        """A container of an image, to be used in a with statement; it exists only inside of it.

        Args:
            image: tag or ID.
            memory: limit, as "4g".
            cpus: limit, in cores.
            processes: limit.
            network: "none", or a network that the engine has.
            volumes: name of a volume to the folder that it is seen at; one that is not there is made, and every one
                outlives the container.
        """
        limits = {"mem_limit": memory, "nano_cpus": round(cpus * 1e9) if cpus else None, "pids_limit": processes}
        given = {key: value for key, value in limits.items() if value}
        mounts = [
            docker.types.Mount(path, name, type="volume", labels={_VOLUME_LABEL: ""})
            for name, path in (volumes or {}).items()
        ]
        return Container(self._api, image, given | {"network_mode": network, "mounts": mounts})

    def volumes(self, prefix: str = "") -> tuple[str, ...]:
        """Names of the volumes that containers of ours made, those that start with `prefix`."""
        try:
            answer = self._api.volumes(filters={"label": _VOLUME_LABEL})
        except _FAILURES as error:
            raise EngineError("cannot list the engine's volumes", why=str(error), next="./foundry doctor") from error
        names = (volume["Name"] for volume in answer["Volumes"] or ())
        return tuple(sorted(name for name in names if name.startswith(prefix)))

    def remove_volume(self, name: str) -> None:
        """Remove a volume with all that is in it; one that is not there need not be removed.

        Raises:
            EngineError: a container uses it, or the engine refused.
        """
        try:
            self._api.remove_volume(name)
        except _FAILURES as error:
            if _status(error) != 404:
                raise EngineError(f"cannot remove the volume {name}", why=str(error)) from error

    def evict(self, volume: str) -> int:
        """Remove the containers that use a volume for a process of ours which was killed; returns how many there were.

        Such a process leaves its container, and what it started goes on in it.

        Raises:
            EngineError: a container uses the volume for somebody who may be alive.
        """
        try:
            found = self._api.containers(all=True, filters={"volume": volume})
            for answer in found:
                host, _, process = answer["Labels"].get(_LABEL, "").rpartition(" ")
                if host != socket.gethostname() or _alive(int(process)):
                    name = answer["Names"][0].removeprefix("/")
                    raise EngineError(
                        f"the volume {volume} is in use",
                        why=f"the container {name} works with it, for process {process or '?'} on {host or '?'}",
                        next=f"wait for that; if there is no such process any more: docker rm -f {name}",
                    )
                with suppress(docker.errors.NotFound):
                    self._api.remove_container(answer["Id"], force=True, v=True)
        except _FAILURES as error:
            raise EngineError(f"cannot end what uses the volume {volume}", why=str(error)) from error
        return len(found)

    def _do(self, verb: str, request: Callable[[], Any]) -> Any:
        try:
            return request()
        except _FAILURES as error:
            what = f"the container engine refused to {verb} an image"
            raise EngineError(what, why=str(error), next="./foundry doctor") from error


class Container:
    """A running container that does nothing by itself: commands are run in it, files go in and out as archives.

    It is removed at the end of the with statement, whatever happened in it, and with it all that still runs inside.
    """

    def __init__(self, api: Any, image: str, limits: Mapping[str, Any]) -> None:
        self._api = api
        self._image = image
        self._limits = limits
        # Known before the engine is asked, so that it can be removed when the answer never arrived.
        self._name = f"foundry-{uuid.uuid4().hex}"
        self.id = ""

    def __enter__(self) -> Container:
        try:
            self.id = self._api.create_container(
                self._image, command=["sleep", _LIFETIME], entrypoint=[], name=self._name, use_config_proxy=False,
                labels={_LABEL: f"{socket.gethostname()} {os.getpid()}"},
                host_config=self._api.create_host_config(auto_remove=True, **self._limits),
            )["Id"]  # fmt: skip
            self._api.start(self.id)
        except BaseException as error:
            with suppress(EngineError):
                self._remove()
            if isinstance(error, _FAILURES):
                raise EngineError(f"cannot start a container of {self._image}", why=str(error)) from error
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._remove()
        except EngineError:
            # What went wrong first is to be heard of.
            if error is None:
                raise

    def _remove(self) -> None:
        try:
            self._api.remove_container(self._name, force=True, v=True)
        except _FAILURES as error:
            # 404, 409: it never came to be, or its time had run out and the engine removed it or is about to.
            if _status(error) not in (404, 409):
                raise EngineError(f"cannot remove the container {self._name}", why=str(error)) from error

    def run(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: str | None = None,
        line: Callable[[str], None] | None = None,
    ) -> Completed:  # fmt: skip
        """Run a command to its end and return its exit status and what it printed.

        Args:
            argv: program and arguments; never a shell line.
            env: added to the image's environment.
            cwd: folder to run in; the image's own if not given.
            line: called with each whole line of stdout and stderr as it comes.
        """
        chunks: tuple[list[bytes], list[bytes]] = ([], [])
        lines = tuple(_Lines(line) for _ in chunks)
        try:
            id = self._api.exec_create(self.id, list(argv), environment=dict(env or {}), workdir=cwd)["Id"]
            for pair in self._api.exec_start(id, stream=True, demux=True):
                for stream, chunk in enumerate(pair):
                    if chunk:
                        chunks[stream].append(chunk)
                        lines[stream].feed(chunk)
            status = self._api.exec_inspect(id)["ExitCode"]
        except _FAILURES as error:
            raise EngineError(f"cannot run {argv[0]} in a container of {self._image}", why=str(error)) from error
        for cut in lines:
            cut.end()
        stdout, stderr = (b"".join(part).decode(errors="replace") for part in chunks)
        # An engine that lost the process (killed for memory with its container, say) gives no status.
        return Completed(status if status is not None else 137, stdout, stderr)

    def call(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: str | None = None,
        line: Callable[[str], None] | None = None,
    ) -> str:  # fmt: skip
        """As run, for a command that must succeed; returns its stdout.

        Raises:
            CommandError: exit status not zero; carries the last lines printed.
        """
        done = self.run(argv, env=env, cwd=cwd, line=line)
        if done.status != 0:
            tail = "\n".join((done.stdout + done.stderr).splitlines()[-_TAIL_LINES:])
            raise CommandError(f"in {self._image}: {shlex.join(argv)} failed with exit status {done.status}", why=tail)
        return done.stdout

    def interactive(self, argv: Sequence[str], *, cwd: str | None = None) -> int:
        """Run a command with this process's terminal as its own; returns its exit status.

        Where stdin is no terminal, it is read to its end first, and becomes the input of the command. An engine on
        another machine may offer no way to say over an open connection that the input has ended.
        """
        try:
            return self._joined(argv, cwd) if sys.stdin.isatty() else self._fed(argv, sys.stdin.buffer.read(), cwd)
        except _FAILURES as error:
            raise EngineError(f"cannot open {argv[0]} in a container of {self._image}", why=str(error)) from error

    def _joined(self, argv: Sequence[str], cwd: str | None) -> int:
        id = self._api.exec_create(self.id, list(argv), stdin=True, tty=True, workdir=cwd)["Id"]
        stream = self._api.exec_start(id, tty=True, socket=True)
        terminal.join(stream, lambda rows, columns: self._api.exec_resize(id, rows, columns))
        return int(self._api.exec_inspect(id)["ExitCode"] or 0)

    def _fed(self, argv: Sequence[str], data: bytes, cwd: str | None) -> int:
        tar = io.BytesIO()
        trees.pack(tar, {_INPUT: data})
        self._api.put_archive(self.id, "/", tar.getvalue())
        sys.stdout.flush()
        words = ["sh", "-c", f'exec "$@" </{_INPUT}', "sh", *argv]
        id = self._api.exec_create(self.id, words, workdir=cwd)["Id"]
        for pair in self._api.exec_start(id, stream=True, demux=True):
            for chunk, file in zip(pair, (sys.stdout.buffer, sys.stderr.buffer), strict=True):
                file.write(chunk or b"")
                file.flush()
        return int(self._api.exec_inspect(id)["ExitCode"] or 0)

    def copy_into(self, source: Path, destination: str) -> None:
        """Copy a file or a folder into the container, under exactly this absolute name; parents are made."""
        data = io.BytesIO()
        trees.pack(data, trees.under(source, destination))
        try:
            self._api.put_archive(self.id, "/", data.getvalue())
        except _FAILURES as error:
            raise EngineError(f"cannot copy {source} into a container of {self._image}", why=str(error)) from error

    def copy_out(self, source: str, destination: Path) -> None:
        """Copy a file, or the content of a folder, out of the container to this name.

        Only files and folders come out; links stay.

        Raises:
            EngineError: there is no such file.
            UnsafeArchiveError: an entry would land outside the destination.
        """
        try:
            chunks, _ = self._api.get_archive(self.id, source)
            data = io.BytesIO(b"".join(chunks))
        except _FAILURES as error:
            raise EngineError(f"cannot copy {source} out of a container of {self._image}", why=str(error)) from error
        with tarfile.open(fileobj=data) as tar:
            for member in tar:
                # The engine's archive starts at the last part of the name that was asked for.
                parts = PurePosixPath(confine.inside(member.name, f"what came from {source}")).parts[1:]
                path = confine.under(destination, posixpath.join(".", *parts), f"what came from {source}")
                file = tar.extractfile(member) if member.isfile() else None
                if file:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(file.read())
                elif member.isdir():
                    path.mkdir(parents=True, exist_ok=True)

    def put(self, tar: Path, folder: str) -> None:
        """Unpack a tar, which may be larger than memory, into a folder of the container; the folder is made.

        The engine unpacks it: owners, modes and links become what the tar says, so it must be one that we made.
        """
        self.call(["mkdir", "-p", folder])
        try:
            # The SDK sends a file in pieces as it reads it.
            with tar.open("rb") as file:
                self._api.put_archive(self.id, folder, file)
        except _FAILURES as error:
            raise EngineError(f"cannot unpack {tar} in a container of {self._image}", why=str(error)) from error

    def fetch(self, source: str, file: Path) -> None:
        """Copy one file, which may be larger than memory, out of the container.

        Raises:
            EngineError: there is no such file, or it is a folder or a link.
        """
        failed = f"cannot copy {source} out of a container of {self._image}"
        try:
            chunks, _ = self._api.get_archive(self.id, source)
            with tarfile.open(fileobj=io.BufferedReader(_Stream(chunks)), mode="r|") as tar:
                member = tar.next()
                content = tar.extractfile(member) if member and member.isfile() else None
                if content is None:
                    raise EngineError(failed, why="it is no plain file")
                with file.open("wb") as out:
                    shutil.copyfileobj(content, out)
        except (*_FAILURES, tarfile.TarError) as error:
            raise EngineError(failed, why=str(error)) from error

    def oom_killed(self) -> bool:
        """Whether the kernel killed a process in this container for lack of memory, the container's or the machine's.

        The kernel counts it for the container's cgroup. The engine's own answer, State.OOMKilled, does not tell: Docker
        20.10 leaves it false when it was a process of a command that died, and not the container's own.
        """
        counted = self.run(["cat", *_OOM_COUNTERS]).stdout.splitlines()
        return any(int(line.split()[1]) > 0 for line in counted if line.startswith("oom_kill "))


def _status(error: BaseException) -> int | None:
    """The HTTP status with which the engine refused; None where it did not even do that."""
    return error.status_code if isinstance(error, docker.errors.APIError) else None


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # another user's
    return True


def _found(pattern: re.Pattern[str], printed: Iterable[str]) -> list[str]:
    return [match[1] for text in printed if (match := pattern.match(text))]


class _Stream(io.RawIOBase):
    """Chunks of bytes as a file to be read once."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest and (chunk := next(self._chunks, None)) is not None:
            self._rest = memoryview(chunk)
        taken, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(taken)] = taken
        return len(taken)


class _Lines:
    """Cuts a stream of bytes into lines."""

    def __init__(self, line: Callable[[str], None] | None) -> None:
        self._line = line
        self._rest = b""

    def feed(self, chunk: bytes) -> None:
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        if self._line:
            for text in whole:
                self._line(text.decode(errors="replace"))

    def end(self) -> None:
        if self._line and self._rest:
            self._line(self._rest.decode(errors="replace"))


def _check(answers: Iterable[Mapping[str, Any]]) -> None:
    """Docker reports a failed load inside its answers, with status 200."""
    for answer in answers:
        if "error" in answer:
            raise docker.errors.DockerException(answer["error"])
