"""Talk to a container engine: anything that answers Docker's API at DOCKER_HOST or at the default socket.

Only what every such engine does is used: the classic builder without a network, no privileges, no raised limits, and
archives instead of bind mounts, so that an engine on another machine serves as well as one on this.

There are two classes of containers. A Container builds: it runs as root, because package managers and compilers install
into it. A Sandbox runs kernels, tests and users' programs: see there for what they cannot do.
"""

from __future__ import annotations

import io
import math
import os
import posixpath
import re
import select
import shlex
import shutil
import socket
import sys
import tarfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import IO, Any, Self

import docker.errors
import docker.types
import docker.utils
import urllib3.exceptions

import docker
from toolchains.archives import confine, docker_archive
from toolchains.archives import folders as trees
from toolchains.engine import diagnosis
from toolchains.system import processes, space, terminal
from toolchains.system.children import Completed
from toolchains.system.errors import CommandError, EngineError, LimitError
from toolchains.system.paths import LOGS

# An engine that does not answer its first request in this time (seconds) is taken for dead.
_PATIENCE = 10
# One that is at work and says nothing for this long is taken for dead. A command in a container may be silent longer.
_SILENCE = 600
_TAIL_LINES = 30
# The first process of a container reads the input that its owner holds open. When the owner is gone, however it ended,
# the engine closes that input, this process ends, and with it all others in the container.
_LIFELINE = ("cat",)
# What was created this many seconds ago and never started was left by a process that was killed in between.
_STILLBORN = 600
# A step that was made this many seconds ago is of no build that is still at work, whoever's it is.
_LONGEST_BUILD = 24 * 3600
# What the SDK raises: its own errors; when the engine is gone, those of requests, which are OSErrors, and of urllib3.
_FAILURES = (docker.errors.DockerException, OSError, urllib3.exceptions.HTTPError)
# The status of a command whose process the engine lost: as if it was killed by SIGKILL.
_LOST = 137
# After this long (seconds) without any input, it is said that the input is being waited for.
_PATIENCE = 5
# Where a command finds its input when that does not come from a terminal.
_INPUT = "foundry/stdin"
# Where the kernel counts what it killed for lack of memory, in a line "oom_kill N": cgroups of version 1 and 2.
_OOM_COUNTERS = ("/sys/fs/cgroup/memory/memory.oom_control", "/sys/fs/cgroup/memory.events")
# How containers and volumes of ours are told from the user's own. A container's says for whom it is: host and process.
_LABEL = "org.triton-foundry.container"
_VOLUME_LABEL = "org.triton-foundry.volume"
# What root needs to install files for several owners, of the capabilities that engines give.
_BUILDING = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID")
# The user in a sandbox: any but root. No image needs to know it.
USER = 1000
# Where a sandbox can be written to, besides the folders that are asked for.
_WORK = "/foundry"
_TEMPORARY = "/tmp"
# What programs take from /etc/passwd, which has no line for that user. Caches go where a driver's library may be loaded
# from, hence "exec".
_IDENTITY = {"HOME": f"{_WORK}/home", "USER": "foundry", "LOGNAME": "foundry"}
_TEMPORARY_OPTIONS = "rw,exec,nosuid,nodev,mode=1777"
# A sandbox may take this share of the engine's memory; the rest is for the engine, the owner and other programs.
_MEMORY_SHARE = 0.75
# Processes and threads in a sandbox: this many, and for each pair of processors this many more. Tests run in as many
# processes as there are processors, and each has as many threads in PoCL, and again in OpenBLAS.
_PROCESSES, _PROCESSES_PER_PAIR = 4096, 4
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
    """Return the engine that DOCKER_HOST or the default socket leads to.

    Raises:
        EngineError: none answers.
    """
    try:
        api = docker.APIClient(version="auto", timeout=_PATIENCE, **docker.utils.kwargs_from_env())
        # An answer that has the API's version may be of something else, and an engine may refuse all other requests.
        api.info()
    except (*_FAILURES, ValueError, KeyError, TypeError) as error:
        raise diagnosis.failed("no container engine answers", error) from error
    api.timeout = _SILENCE
    engine = Engine(api)
    # An engine that cannot list containers is reported by the request that needs it.
    with suppress(EngineError):
        engine.sweep()
        engine.remove_abandoned()
    return engine


def labelled(dockerfile: Path | bytes) -> bytes:
    """Return a Dockerfile each of whose steps makes an image that names this process; see Engine.remove_abandoned."""
    text = dockerfile if isinstance(dockerfile, bytes) else dockerfile.read_bytes()
    label = f'LABEL {docker_archive.BUILD_LABEL}="{processes.this()}"'.encode()
    return re.sub(rb"(?mi)^FROM .*$", lambda line: line[0] + b"\n" + label, text)


class Engine:
    """A container engine. Every method raises EngineError when the engine refuses."""

    def __init__(self, api: Any) -> None:
        self._api = api

    def version(self) -> str:
        """Name and version of the engine: "Docker Engine 20.10.24"."""
        try:
            answer = self._api.version()
        except _FAILURES as error:
            raise diagnosis.failed("the container engine does not answer", error) from error
        return f"{answer.get('Platform', {}).get('Name') or 'Engine'} {answer.get('Version', 'unknown')}"

    def image(self, name: str) -> ImageInfo | None:
        """Return the image with this tag or ID, or None."""
        try:
            answer = self._api.inspect_image(name)
        except docker.errors.ImageNotFound:
            return None
        except _FAILURES as error:
            raise diagnosis.failed(f"cannot look for the image {name}", error) from error
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
        self,
        context: IO[bytes],
        *,
        arguments: Mapping[str, str],
        labels: Mapping[str, str] | None = None,
        line: Callable[[str], None] = lambda _: None,
    ) -> Iterator[str]:
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
        failure, died = "", None
        try:
            try:
                for answer in self._api.build(
                    fileobj=context,
                    custom_context=True,
                    dockerfile="Dockerfile",
                    buildargs=dict(arguments),
                    labels=dict(labels or {}),
                    nocache=True,
                    rm=True,
                    forcerm=True,
                    network_mode="none",
                    decode=True,
                    # The user's proxies are of no use without a network, and would be written into the image.
                    use_config_proxy=False,
                ):
                    failure = failure or answer.get("error", "")
                    for text in (answer.get("stream") or answer.get("error") or "").splitlines():
                        if text.strip():
                            printed.append(text)
                            line(text)
            except docker.errors.APIError as error:
                failure = str(error.explanation or error)
            except _FAILURES as error:
                died = diagnosis.find(error, known=True)
            LOGS.mkdir(parents=True, exist_ok=True)
            log = LOGS / "docker-build.log"
            log.write_text("\n".join(printed) + "\n")
            ids = _found(_STEP, printed)
            if died or not (failure or _is_complete(printed)):
                why = died.why if died else f"{diagnosis.address()} ended its answer before the build was done"
                last = f"the last that it printed: {printed[-1]}\n" if printed else ""
                raise EngineError(
                    "the container engine stopped during a build",
                    why=f"{why}\n{last}(whole output: {log})",
                    next=died.next if died else diagnosis.RESTART,
                )
            if space.FULL.search(failure):
                raise diagnosis.full("building an image failed", failure)
            if failure:
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

    def named(self, pattern: str) -> dict[str, tuple[tuple[str, ...], int]]:
        """Return the images with a name that fits a pattern, "triton-foundry/*": by ID, names and size in bytes."""
        try:
            found = self._api.images(filters={"reference": pattern})
        except _FAILURES as error:
            raise diagnosis.failed("cannot list the engine's images", error) from error
        return {image["Id"]: (tuple(_names(image)), image["Size"]) for image in found}

    def abandoned(self) -> dict[str, int]:
        """Return what builds left whose process is dead: the images of their steps, by ID, with their size in bytes.

        A build leaves them when it is killed. The size includes that of the image that the build started from.
        """
        try:
            found = self._api.images(all=True, filters={"label": docker_archive.BUILD_LABEL})
        except _FAILURES as error:
            raise diagnosis.failed("cannot list the engine's images", error) from error
        return {image["Id"]: image["Size"] for image in found if _is_abandoned(image) and not _names(image)}

    def remove_abandoned(self) -> int:
        """Remove what builds left whose process is dead, and the containers of their steps; returns how many images."""
        try:
            for each in self._api.containers(all=True, filters={"label": docker_archive.BUILD_LABEL}):
                if _is_abandoned(each):
                    with suppress(docker.errors.APIError):
                        self._api.remove_container(each["Id"], force=True, v=True)
        except _FAILURES as error:
            raise diagnosis.failed("cannot remove the containers of a killed build", error) from error
        before = left = self.abandoned()
        while left:
            for id in left:
                # One that others were made from is refused until those are gone.
                self.remove(id)
            last, left = left, self.abandoned()
            if len(left) == len(last):
                break
        return len(before) - len(left)

    def container(
        self,
        image: str,
        *,
        memory: str | None = None,
        cpus: float | None = None,
        processes: int | None = None,
        network: str = "none",
        volumes: Mapping[str, str] | None = None,
    ) -> Container:
        """Return a container of an image, to be used in a with statement; it exists only inside of it.

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
        host = {"network_mode": network, "mounts": mounts, "security_opt": ["no-new-privileges"]}
        return Container(self._api, image, given | host | {"cap_drop": ["ALL"], "cap_add": list(_BUILDING)})

    def sandbox(self, image: str, *, folders: Sequence[str] = (), seconds: int | None = None) -> Sandbox:
        """A container for kernels, tests and users' programs, to be used in a with statement; it exists only inside.

        Args:
            image: tag or ID.
            folders: absolute paths that can be written to, besides /foundry and /tmp; they are made.
            seconds: the limit on the container's life.
        """
        try:
            info = self._api.info()
        except _FAILURES as error:
            what = "the container engine does not answer"
            raise EngineError(what, why=str(error), next="./foundry doctor") from error
        return Sandbox(self._api, image, Limits.of(info, seconds), (_WORK, *folders))

    def sweep(self) -> int:
        """Remove containers of ours that were created by a killed process and never started; returns how many.

        Those that were started end with their owner and are removed by the engine.
        """
        removed = 0
        try:
            for answer in self._api.containers(all=True, filters={"label": _LABEL, "status": "created"}):
                host, _, process = answer["Labels"][_LABEL].rpartition(" ")
                old = time.time() - answer["Created"] > _STILLBORN
                if old and host == socket.gethostname() and not _alive(int(process)):
                    with suppress(docker.errors.NotFound):
                        self._api.remove_container(answer["Id"], force=True, v=True)
                        removed += 1
        except _FAILURES as error:
            raise EngineError("cannot remove what a killed process left", why=str(error)) from error
        return removed

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
            raise diagnosis.failed(f"the container engine could not {verb} an image", error) from error


class Container:
    """A running container that does nothing by itself: commands are run in it, files go in and out as archives.

    It is removed at the end of the with statement, whatever happened in it, and with it all that still runs inside. If
    this process is killed, the engine ends and removes it.
    """

    def __init__(self, api: Any, image: str, limits: Mapping[str, Any]) -> None:
        self._api = api
        self._image = image
        self._host = limits
        self._lifeline: Any = None
        # Known before the engine is asked, so that it can be removed when the answer never arrived.
        self._name = f"foundry-{uuid.uuid4().hex}"
        self.id = ""

    def __enter__(self) -> Self:
        try:
            self.id = self._api.create_container(
                self._image,
                command=[*self._first()],
                entrypoint=[],
                name=self._name,
                use_config_proxy=False,
                labels={_LABEL: f"{socket.gethostname()} {os.getpid()}"},
                stdin_open=True,
                host_config=self._api.create_host_config(auto_remove=True, **self._host),
                **self._settings(),
            )["Id"]
            # Before the start: the first process must not find its input closed.
            self._lifeline = self._api.attach_socket(self.id, params={"stdin": 1, "stream": 1})
            self._api.start(self.id)
            self._prepare()
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

    def _first(self) -> Sequence[str]:
        """Return the command of the container's first process, which ends when its input does."""
        return _LIFELINE

    def _settings(self) -> Mapping[str, Any]:
        """Return what the engine is told of the container's processes."""
        return {}

    def _prepare(self) -> None:
        """Do what is to be done in the container before it is used."""

    def _remove(self) -> None:
        try:
            self._api.remove_container(self._name, force=True, v=True)
        except _FAILURES as error:
            # 404, 409: it never came to be, or its time had run out and the engine removed it or is about to.
            if _status(error) not in (404, 409):
                raise EngineError(f"cannot remove the container {self._name}", why=str(error)) from error
        finally:
            if self._lifeline is not None:
                with suppress(Exception):
                    self._lifeline.close()

    def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        line: Callable[[str], None] | None = None,
        out: Callable[[str], None] | None = None,
    ) -> Completed:
        """Run a command to its end and return its exit status and what it printed.

        Args:
            argv: program and arguments; never a shell line.
            env: added to the image's environment.
            cwd: folder to run in; the image's own if not given.
            line: called with each whole line of stdout and stderr as it comes.
            out: called with the lines of stdout in place of `line`.

        Raises:
            LimitError: the container's time was over before the command ended.
        """
        chunks: tuple[list[bytes], list[bytes]] = ([], [])
        lines = (_Lines(out or line), _Lines(line))
        try:
            id = self._api.exec_create(self.id, list(argv), environment=dict(env or {}), workdir=cwd)["Id"]
            for pair in self._api.exec_start(id, stream=True, demux=True):
                for stream, chunk in enumerate(pair):
                    if chunk:
                        chunks[stream].append(chunk)
                        lines[stream].feed(chunk)
            status = self._ended(id)
        except _FAILURES as error:
            self._check_time(argv)
            raise EngineError(f"cannot run {argv[0]} in a container of {self._image}", why=str(error)) from error
        for cut in lines:
            cut.end()
        if status != 0:
            self._check_time(argv)
        stdout, stderr = (b"".join(part).decode(errors="replace") for part in chunks)
        return Completed(status, stdout, stderr)

    def _check_time(self, argv: Sequence[str]) -> None:
        """Raise LimitError if the container's time is over."""

    def call(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        line: Callable[[str], None] | None = None,
    ) -> str:
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
        another machine may offer no way to say over an open connection that the input has ended. Where only stdout is
        no terminal, the command has no input.
        """
        try:
            if sys.stdin.isatty() and sys.stdout.isatty():
                return self._joined(argv, cwd)
            return self._fed(argv, b"" if sys.stdin.isatty() else _input(), cwd)
        except _FAILURES as error:
            raise EngineError(f"cannot open {argv[0]} in a container of {self._image}", why=str(error)) from error

    def _joined(self, argv: Sequence[str], cwd: str | None) -> int:
        id = self._api.exec_create(self.id, list(argv), stdin=True, tty=True, workdir=cwd)["Id"]
        stream = self._api.exec_start(id, tty=True, socket=True)
        terminal.join(stream, lambda rows, columns: self._api.exec_resize(id, rows, columns))
        return self._ended(id)

    def _ended(self, id: str) -> int:
        """The exit status of a command. An engine that lost the process (killed with its container, say) gives none."""
        status = self._api.exec_inspect(id)["ExitCode"]
        return _LOST if status is None else int(status)

    def _fed(self, argv: Sequence[str], data: bytes, cwd: str | None) -> int:
        self._unpack({_INPUT: data})
        sys.stdout.flush()
        words = ["sh", "-c", f'exec "$@" </{_INPUT}', "sh", *argv]
        id = self._api.exec_create(self.id, words, workdir=cwd)["Id"]
        for pair in self._api.exec_start(id, stream=True, demux=True):
            for chunk, file in zip(pair, (sys.stdout.buffer, sys.stderr.buffer), strict=True):
                file.write(chunk or b"")
                file.flush()
        return self._ended(id)

    def copy_into(self, source: Path, destination: str) -> None:
        """Copy a file or a folder into the container, under exactly this absolute name; parents are made."""
        try:
            self._unpack(trees.under(source, destination))
        except _FAILURES as error:
            raise EngineError(f"cannot copy {source} into a container of {self._image}", why=str(error)) from error

    def _unpack(self, entries: Mapping[str, Path | bytes]) -> None:
        """Write files into the container, by their names below /."""
        data = io.BytesIO()
        trees.pack(data, entries)
        self._api.put_archive(self.id, "/", data.getvalue())

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
                    raise EngineError(failed, why="it is not a regular file")
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
        return ("timeout", "--signal=KILL", f"{seconds}", *_LIFELINE) if seconds else _LIFELINE

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
    packed, owned = io.BytesIO(), io.BytesIO()
    trees.pack(packed, entries)
    packed.seek(0)
    with tarfile.open(fileobj=packed) as files, tarfile.open(fileobj=owned, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for folder in sorted({str(parent) for name in entries for parent in PurePosixPath(name).parents} - {"."}):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode, entry.mtime = tarfile.DIRTYPE, 0o755, trees.EPOCH
            entry.uid = entry.gid = USER
            tar.addfile(entry)
        for entry in files:
            entry.uid = entry.gid = USER
            tar.addfile(entry, files.extractfile(entry))
    return owned.getvalue()


def _is_abandoned(found: Mapping[str, Any]) -> bool:
    """Whether an image or a container is of a build whose process is dead, or that began too long ago to be at work."""
    owner = (found.get("Labels") or {}).get(docker_archive.BUILD_LABEL, "")
    return bool(owner) and (processes.is_dead(owner) or time.time() - found["Created"] > _LONGEST_BUILD)


def _names(image: Mapping[str, Any]) -> list[str]:
    return [name for name in image.get("RepoTags") or () if name != "<none>:<none>"]


def _input() -> bytes:
    """All of stdin. A stdin that somebody holds open and never writes to would look like a command that hangs."""
    if not select.select([sys.stdin], [], [], _PATIENCE)[0]:
        print("reading stdin to its end first; for no input: </dev/null", file=sys.stderr, flush=True)
    return sys.stdin.buffer.read()


def _status(error: BaseException) -> int | None:
    """Return the HTTP status with which the engine refused; None where it did not even do that."""
    return error.status_code if isinstance(error, docker.errors.APIError) else None


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # another user's
    return True


def _is_complete(printed: Sequence[str]) -> bool:
    return any(text.startswith("Successfully built ") for text in printed)


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
