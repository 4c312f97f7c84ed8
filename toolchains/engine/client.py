"""Talk to a container engine: any program that answers Docker's API at DOCKER_HOST, of docker's context, or at the
default socket.

Only features of every such engine are used: the classic builder without a network, no privileges, no raised limits, and
archives instead of bind mounts, so that an engine on another machine works as well as one on this.

This module handles images and volumes, and what killed processes left. image_build.py reads the output of a build.
container.py and sandbox.py have the two classes of containers: one for builds, and one for kernels, tests and users'
programs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import IO, Any, cast

import docker.errors
import docker.types
import docker.utils

import docker
from toolchains.archives import docker_archive
from toolchains.engine import context, diagnosis
from toolchains.engine.answers import CheckedApi
from toolchains.engine.container import BUILD_CAPABILITIES, OWNER_LABEL, Container
from toolchains.engine.diagnosis import FAILURES, reported, status_of
from toolchains.engine.gpus import Gpus
from toolchains.engine.image_build import BuildOutput
from toolchains.engine.sandbox import DISK, HOME, Limits, Sandbox
from toolchains.system import processes
from toolchains.system.children import ended_by
from toolchains.system.errors import EngineError, FoundryError
from toolchains.system.steps import console

# Seconds until an engine that does not answer its first request is said to be busy, and then considered dead.
_PATIENCE: tuple[int, ...] = (10, 110)
# Seconds of silence until a working engine is considered dead. A command in a container may be silent longer.
_SILENCE = 600
# Age in seconds at which a container that was created and never started belongs to a killed process.
_STILLBORN = 600
# Age in seconds at which a build step's image belongs to no running build, and an ended container to no process of an
# earlier boot.
_A_DAY = 24 * 3600
# Marks our volumes, to tell them from the user's own.
_VOLUME_LABEL = "org.triton-foundry.volume"
# The status is 500: another process removes the same steps of a killed build, and one below this one is gone already.
_REMOVED_MEANWHILE = "unrecognized image ID"


@dataclass(frozen=True)
class ImageInfo:
    """The engine's data about an image: its ID, tags and labels, its size in bytes, the digests of its layers."""

    id: str
    names: tuple[str, ...]
    labels: Mapping[str, str]
    size: int
    layers: tuple[str, ...]


def connect(address: str = "") -> Engine:
    """Return the engine at an address, by default that of DOCKER_HOST, of docker's context, or the default socket.

    Raises:
        EngineError: no engine answers, or the context cannot be used.
    """
    global _PATIENCE
    chosen = {"DOCKER_HOST": address} if address else context.variables()
    variables = {**os.environ, **chosen}
    for patience in _PATIENCE:
        try:
            api = docker.APIClient(
                version="auto", timeout=patience, **docker.utils.kwargs_from_env(environment=variables)
            )
            checked = CheckedApi(api)
            # Another program may answer with the API's version, and an engine may refuse all other requests.
            checked.info()
            break
        except Exception as error:  # the SDK compares the version before CheckedApi can
            if patience == _PATIENCE[-1] or not diagnosis.find(error).silent:
                # Once is enough for a process that asks again.
                _PATIENCE = _PATIENCE[:1]
                raise diagnosis.failed("no container engine answers", error) from error
            console.notice(f"waiting: {diagnosis.address()} does not answer for {patience} s, the engine may be busy")
    api.timeout = _SILENCE
    engine = Engine(checked)
    # An engine that cannot list containers is reported by the request that needs it.
    for tidy in (engine.sweep, engine.remove_abandoned):
        with suppress(FoundryError):
            tidy()
    return engine


class Engine:
    """A container engine. Every method raises EngineError if the engine refuses a request."""

    def __init__(self, api: Any) -> None:
        self._api = api

    def version(self) -> str:
        """Return name and version of the engine: "Docker Engine 20.10.24"."""
        with reported("the container engine does not answer"):
            answer = self._api.version()
        return f"{(answer.get('Platform') or {}).get('Name') or 'Engine'} {answer.get('Version') or 'unknown'}"

    def clock(self) -> datetime:
        """Return the time of the engine's machine."""
        return datetime.fromisoformat(self._info()["SystemTime"][:19] + "+00:00")

    def root(self) -> Path | None:
        """Return the folder in which the engine keeps images; None if it is not on this machine."""
        root = Path(self._info().get("DockerRootDir") or "/nowhere")
        return root if diagnosis.address().startswith("unix:") and root.is_dir() else None

    def _info(self) -> dict[str, Any]:
        """Return the engine's data about itself and its machine."""
        with reported("the container engine does not answer"):
            return cast(dict[str, Any], self._api.info())

    def image(self, name: str) -> ImageInfo | None:
        """Return the image with this tag or ID, or None."""
        with reported(f"cannot look for the image {name}"):
            try:
                answer = self._api.inspect_image(name)
            except docker.errors.ImageNotFound:
                return None
        return ImageInfo(
            id=answer["Id"],
            names=tuple(answer.get("RepoTags") or ()),
            labels=answer["Config"].get("Labels") or {},
            size=answer["Size"],
            layers=tuple(answer["RootFS"].get("Layers") or ()),
        )

    def tag(self, image: str, name: str) -> None:
        """Add a name to an image; if another image had the name, it is moved."""
        # A registry's name may have a port.
        repository, _, label = name.rpartition(":")
        with reported("the container engine could not tag an image"):
            self._api.tag(image, repository, label, force=True)

    def remove(self, image: str) -> None:
        """Remove a name of an image, and with its last name the image and the build steps that only this image needed.

        An image that a container or another image uses stays. A missing image is not an error.
        """
        with reported(f"cannot remove the image {image}", allowed=(404, 409)):
            try:
                self._api.remove_image(image)
            except docker.errors.APIError as error:
                if _REMOVED_MEANWHILE not in str(error):
                    raise

    def load(self, path: Path) -> None:
        """Load a docker-archive."""
        with path.open("rb") as file, reported("the container engine could not load an image"):
            _check(self._api.load_image(file))

    def save(self, image: str, file: IO[bytes]) -> None:
        """Write an image to a file as a docker-archive."""
        with reported("the container engine could not save an image"):
            for chunk in self._api.get_image(image):
                file.write(chunk)
        file.flush()

    def push(self, name: str) -> None:
        """Send the image with this name to the registry that the name begins with; it has the user's credentials.

        What the registry has of it is not sent.
        """
        self._move("push", name)

    def pull(self, name: str) -> None:
        """Fetch an image from the registry that its name begins with; a name may end with @ and a digest."""
        self._move("pull", name)

    def _move(self, verb: str, name: str) -> None:
        host = name.partition("/")[0]
        advice = f"the same command again, which goes on after a break; if {host} refuses you: docker login {host}"
        with reported(f"the container engine could not {verb} {name}", next=advice):
            _check(getattr(self._api, verb)(name, stream=True, decode=True))

    @contextmanager
    def build(
        self,
        context: IO[bytes],
        *,
        arguments: Mapping[str, str],
        labels: Mapping[str, str] | None = None,
        line: Callable[[str], None] = lambda _: None,
    ) -> Iterator[str]:
        """Build an image without a network and without a cache; it exists only inside the with statement.

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
        output = BuildOutput(line, self._end_step)
        request = partial(
            self._api.build,
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
            # The user's proxies are useless without a network, and would be written into the image.
            use_config_proxy=False,
        )

        def end() -> None:
            # An upload that is not done breaks off.
            context.close()
            output.end()

        try:
            # A signal interrupts this thread. The other one reads until the engine has ended the build, and so knows
            # each image that the build made.
            with ended_by(end), ThreadPoolExecutor(1) as pool:
                reading = pool.submit(output.read, request)
                try:
                    reading.result()
                except BaseException:
                    end()
                    raise
            yield output.image()
            self._clear(output)
        except BaseException:
            # Report the first error, and not a failure of the clean-up after it.
            with suppress(FoundryError):
                self._clear(output)
            raise

    def _end_step(self, container: str) -> None:
        with suppress(*FAILURES):
            try:
                self._api.remove_container(container, force=True)
            except docker.errors.APIError as error:
                if status_of(error) == 409:
                    # The engine is removing it, and its image is in use until then.
                    self._api.wait(container, timeout=_PATIENCE[0], condition="removed")

    def _clear(self, output: BuildOutput) -> None:
        """Remove the containers and images that a build left."""
        # If the engine's answer broke off, the running step may continue, and keep the images below it in use.
        for id in output.containers():
            self._end_step(id)
        # The engine keeps the image of each step. An image with a name is one that the build started from.
        for id in reversed(output.steps()):
            info = self.image(id)
            if info and not info.names:
                self.remove(id)

    def named(self, pattern: str) -> dict[str, tuple[tuple[str, ...], int]]:
        """Return the images with a name that matches a pattern, "triton-foundry/*": by ID, names and size in bytes."""
        with reported("cannot list the engine's images"):
            images = self._api.images(filters={"reference": pattern})
        return {image["Id"]: (tuple(_names(image)), image["Size"]) for image in images}

    def abandoned(self) -> dict[str, int]:
        """Return the images of build steps whose process is dead, by ID, with their size in bytes.

        A build that is killed leaves them. The size includes the image that the build started from.
        """
        with reported("cannot list the engine's images"):
            images = self._api.images(all=True, filters={"label": docker_archive.BUILD_LABEL})
        return {image["Id"]: image["Size"] for image in images if _is_abandoned(image) and not _names(image)}

    def remove_abandoned(self) -> int:
        """Remove the images and containers of build steps whose process is dead; return the number of images."""
        with reported("cannot remove the containers of a killed build"):
            for container in self._api.containers(all=True, filters={"label": docker_archive.BUILD_LABEL}):
                if _is_abandoned(container):
                    with suppress(docker.errors.APIError):
                        self._api.remove_container(container["Id"], force=True, v=True)
        before = remaining = self.abandoned()
        while remaining:
            for id in remaining:
                # The engine refuses to remove an image that others are based on until those are removed.
                self.remove(id)
            last, remaining = remaining, self.abandoned()
            if len(remaining) == len(last):
                break
        return len(before) - len(remaining)

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
        """Return a container of an image, for a with statement; the container exists only inside it.

        Args:
            image: tag or ID.
            memory: limit, as "4g".
            cpus: limit, in cores.
            processes: limit.
            network: "none", or a network that the engine has.
            volumes: the folder in the container for each volume name. A missing volume is created; volumes outlive the
                container.
        """
        limits = {"mem_limit": memory, "nano_cpus": round(cpus * 1e9) if cpus else None, "pids_limit": processes}
        limited = {key: value for key, value in limits.items() if value}
        mounts = [
            docker.types.Mount(path, name, type="volume", labels={_VOLUME_LABEL: ""})
            for name, path in (volumes or {}).items()
        ]
        host = {"network_mode": network, "mounts": mounts, "security_opt": ["no-new-privileges"]}
        return Container(self._api, image, limited | host | {"cap_drop": ["ALL"], "cap_add": list(BUILD_CAPABILITIES)})

    def sandbox(
        self,
        image: str,
        *,
        folders: Sequence[str] = (),
        seconds: int | None = None,
        disk: int = DISK,
        gpus: Gpus | None = None,
    ) -> Sandbox:
        """Return a container for kernels, tests and users' programs, for a with statement; it exists only inside it.

        Args:
            image: tag or ID.
            folders: absolute paths that are writable in addition to /foundry and /tmp; they are created.
            seconds: the maximum lifetime of the container.
            disk: bytes that its programs write; see Sandbox.disk_limited.
            gpus: the GPUs that it gets.
        """
        return Sandbox(self._api, image, Limits.of(self._info(), seconds, disk), (HOME, *folders), gpus)

    def sweep(self) -> int:
        """Remove our containers that a killed process created and never started, or that ended; return their number.

        Started containers end with their owner. The engine removes those of builds, and this method sandboxes.
        """
        removed = 0
        ended = {"label": OWNER_LABEL, "status": ["created", "exited"]}
        with reported("cannot remove what a killed process left"):
            for container in self._api.containers(all=True, filters=ended):
                owner, age = _label(container, OWNER_LABEL), time.time() - container["Created"]
                over = container.get("State") == "exited" or age > _STILLBORN
                # After a day, a process of an earlier boot is not one of another machine that has the same name.
                if over and (processes.is_dead(owner) or (processes.ran_before_boot(owner) and age > _A_DAY)):
                    # The engine may be removing it.
                    with suppress(docker.errors.APIError):
                        self._api.remove_container(container["Id"], force=True, v=True)
                        removed += 1
        return removed

    def volumes(self, prefix: str = "") -> tuple[str, ...]:
        """Return the names of the volumes that our containers created and that start with `prefix`."""
        with reported("cannot list the engine's volumes"):
            answer = self._api.volumes(filters={"label": _VOLUME_LABEL})
        names = (volume["Name"] for volume in answer.get("Volumes") or ())
        return tuple(sorted(name for name in names if name.startswith(prefix)))

    def remove_volume(self, name: str) -> None:
        """Remove a volume with its content; a missing volume is not an error.

        Raises:
            EngineError: a container uses it, or the engine refused.
        """
        with reported(f"cannot remove the volume {name}", allowed=(404,)):
            self._api.remove_volume(name)

    def evict(self, volume: str) -> int:
        """Remove the containers that use a volume for a killed process of ours; return their number.

        Such a process leaves its container, in which its commands continue.

        Raises:
            EngineError: a container uses the volume for a process that may be alive.
        """
        with reported(f"cannot end what uses the volume {volume}"):
            containers = self._api.containers(all=True, filters={"volume": volume})
            for container in containers:
                owner = _label(container, OWNER_LABEL)
                # The engine ended it before the machine was started again.
                ended = container.get("State") == "exited" and processes.ran_before_boot(owner)
                if not (ended or processes.is_dead(owner)):
                    name = next(iter(container.get("Names") or ()), container["Id"]).removeprefix("/")
                    raise EngineError(
                        f"the volume {volume} is in use",
                        why=f"the container {name} works with it, for {processes.describe(owner)}",
                        next=f"wait for that; if there is no such process any more: docker rm -f {name}",
                    )
                with suppress(docker.errors.NotFound):
                    self._api.remove_container(container["Id"], force=True, v=True)
        return len(containers)


def _is_abandoned(item: Mapping[str, Any]) -> bool:
    """Return whether an image or a container belongs to a build whose process is dead, or that began too long ago."""
    owner = _label(item, docker_archive.BUILD_LABEL)
    return bool(owner) and (processes.is_dead(owner) or time.time() - item["Created"] > _A_DAY)


def _label(item: Mapping[str, Any], name: str) -> str:
    return str((item.get("Labels") or {}).get(name, ""))


def _names(image: Mapping[str, Any]) -> list[str]:
    return [name for name in image.get("RepoTags") or () if name != "<none>:<none>"]


def _check(answers: Iterable[Mapping[str, Any]]) -> None:
    """Raise the error of a failed load, push or pull: Docker reports it inside its answers, with status 200."""
    for answer in answers:
        if answer.get("error"):
            raise docker.errors.DockerException(answer["error"])
