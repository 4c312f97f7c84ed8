"""Read the output of the classic builder: the steps of a build, its result, or why it failed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import docker.errors

from toolchains.archives import docker_archive
from toolchains.engine import diagnosis
from toolchains.engine.diagnosis import FAILURES, Cause
from toolchains.system import processes, space
from toolchains.system.errors import EngineError
from toolchains.system.paths import LOGS

# Number of the last output lines that an error shows.
_TAIL_LINES = 30
# The image of each step, the last one being the result; and the container of each step.
_STEP = re.compile(r"(?: ---> |Successfully built )([0-9a-f]{12,64})$")
_RUNNING = re.compile(r" ---> Running in ([0-9a-f]{12,64})$")


def labelled(dockerfile: Path | bytes) -> bytes:
    """Return a Dockerfile whose steps' images have a label with this process's name; see Engine.remove_abandoned."""
    text = dockerfile if isinstance(dockerfile, bytes) else dockerfile.read_bytes()
    label = f'LABEL {docker_archive.BUILD_LABEL}="{processes.process_name()}"'.encode()
    return re.sub(rb"(?mi)^FROM .*$", lambda line: line[0] + b"\n" + label, text)


class BuildOutput:
    """The engine's answers to a request for a build.

    Args:
        line: called with each line that the engine prints.
        end_step: removes the container of a step, by its ID; must not raise.
    """

    def __init__(self, line: Callable[[str], None], end_step: Callable[[str], None]) -> None:
        self._line = line
        self._end_step = end_step
        self._ending = False
        self._printed: list[str] = []
        self._failure = ""
        self._died: Cause | None = None

    def read(self, request: Callable[[], Iterable[Mapping[str, Any]]]) -> None:
        """Send the request and read all answers; a failure is kept for image()."""
        try:
            for answer in request():
                self._failure = self._failure or answer.get("error") or ""
                for text in (answer.get("stream") or answer.get("error") or "").splitlines():
                    if text.strip():
                        self._printed.append(text)
                        if self._ending and (running := _RUNNING.match(text)):
                            self._end_step(running[1])
                        self._line(text)
        except docker.errors.APIError as error:
            self._failure = f"the engine at {diagnosis.address()} refused: {error.explanation or error}"
        except FAILURES as error:
            self._died = diagnosis.find(error, known=True)

    def end(self) -> None:
        """Let the engine give up, from another thread than read(): end the running step, and each that follows it."""
        self._ending = True
        for id in self.containers()[-1:]:
            self._end_step(id)

    def image(self) -> str:
        """Write the output to the log, and return the ID of the image that was built.

        Raises:
            EngineError: a step failed (the error has the last lines printed and the log's path), or the engine stopped.
        """
        LOGS.mkdir(parents=True, exist_ok=True)
        log = LOGS / "docker-build.log"
        log.write_text("\n".join(self._printed) + "\n")
        died = self._died
        if not died and not self._failure and not any(text.startswith("Successfully built ") for text in self._printed):
            died = Cause(f"{diagnosis.address()} ended its answer before the build was done", diagnosis.RESTART)
        if died:
            last = f"the last that it printed: {self._printed[-1]}\n" if self._printed else ""
            raise EngineError(
                "the container engine stopped during a build",
                why=f"{died.why}\n{last}(whole output: {log})",
                next=died.next,
            )
        if space.FULL.search(self._failure):
            raise diagnosis.disk_full("building an image failed", self._failure)
        if self._failure:
            tail = "\n".join(self._printed[-_TAIL_LINES:]) or self._failure
            raise EngineError("building an image failed", why=f"{tail}\n(whole output: {log})")
        return self.steps()[-1]

    def steps(self) -> list[str]:
        """Return the IDs of the steps' images, in order."""
        return [match[1] for text in self._printed if (match := _STEP.match(text))]

    def containers(self) -> list[str]:
        """Return the IDs of the containers that the steps ran in."""
        return [match[1] for text in self._printed if (match := _RUNNING.match(text))]
