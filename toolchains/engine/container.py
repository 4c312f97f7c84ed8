"""A container in which commands run, and into and out of which files are copied.

It is for builds: commands run as root, because package managers and compilers install into it. sandbox.py has the
container for kernels, tests and users' programs.
"""

from __future__ import annotations

import io
import math
import re
import select
import shlex
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, cast

from toolchains.archives import folders as trees
from toolchains.archives import received
from toolchains.archives.received import Bounds, Taken
from toolchains.engine import diagnosis
from toolchains.engine.answers import connection, frames
from toolchains.engine.diagnosis import FAILURES, reported
from toolchains.system import processes, terminal
from toolchains.system.children import Completed, ended_by
from toolchains.system.errors import CommandError, FoundryError, LimitError

# Marks our containers, to tell them from the user's own. The value names the owner: processes.process_name().
OWNER_LABEL = "org.triton-foundry.container"
# The capabilities that root needs to install files for several owners, a subset of those that engines grant.
BUILD_CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID")
# The first process of a container reads from input that its owner holds open. When the owner ends, in whatever way, the
# engine closes that input; then this process ends, and with it all others in the container.
LIFELINE = ("cat",)
# The most that is copied out if nothing else is said: a compiled LLVM has 2 GB.
LARGEST = Bounds(size=1 << 36)
# Number of the last output lines that an error shows.
_TAIL_LINES = 30
# Bytes of a command's output that are kept, and of the longest line.
_KEPT = 64 << 20
_LONGEST_LINE = 16 << 20
# The status of a command whose process the engine lost: the same as after SIGKILL.
_LOST = 137
# Seconds without any input after which a message says that the command waits for input.
_INPUT_PATIENCE = 5
# The file with a command's input if the input does not come from a terminal.
_INPUT = "foundry/stdin"
# Files in which the kernel counts the processes that it killed for lack of memory, as "oom_kill N": cgroups v1 and v2.
_OOM_COUNTERS = ("/sys/fs/cgroup/memory/memory.oom_control", "/sys/fs/cgroup/memory.events")


class Container:
    """A running container that does nothing by itself: commands run in it, and files are copied in and out as archives.

    It is removed at the end of the with statement in any case, and with it all its processes. If this process is
    killed, the engine ends the container and removes it.

    Attributes:
        printable: the most bytes that a command prints.
        first: the command of the first process, which ends when its input is closed.
        settings: the engine's settings for the processes.
        advice: what helps if the container cannot be started; "" if nothing is known.
    """

    printable: float = math.inf
    first: Sequence[str] = LIFELINE
    settings: Mapping[str, Any] = {}
    advice = ""

    def __init__(self, api: Any, image: str, limits: Mapping[str, Any]) -> None:
        self._api = api
        self._image = image
        self._host = limits
        self._lifeline: Any = None
        self._open = ExitStack()
        # The name is chosen before the request, so that the container can be removed even if the answer never arrived.
        self._name = f"foundry-{uuid.uuid4().hex}"
        self.id = ""

    def __enter__(self) -> Self:
        self._open.enter_context(ended_by(self._abort))
        try:
            self.id = self._api.create_container(
                self._image,
                command=[*self.first],
                entrypoint=[],
                name=self._name,
                use_config_proxy=False,
                labels={OWNER_LABEL: processes.process_name()},
                stdin_open=True,
                host_config=self._api.create_host_config(**{"auto_remove": True, **self._host}),
                **self.settings,
            )["Id"]
            # Attach before the start: the first process must not find its input closed.
            self._lifeline = self._api.attach_socket(self.id, params={"stdin": 1, "stream": 1})
            self._start()
        except BaseException as error:
            with suppress(FoundryError):
                self._remove()
            if isinstance(error, FAILURES):
                self._check_time("what prepares it")
                raise diagnosis.failed(f"cannot start a container of {self._image}", error, next=self.advice) from error
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._remove()
        except FoundryError:
            # Report the first error, not this one.
            if error is None:
                raise

    def _start(self) -> None:
        """Start the container's first process, and prepare the container for its first use."""
        self._api.start(self.id)

    def _abort(self) -> None:
        with suppress(*FAILURES):
            self._api.remove_container(self._name, force=True, v=True)

    def _remove(self) -> None:
        try:
            # 404, 409: it was never created, or its time is over and the engine removed it or is about to.
            with reported(f"cannot remove the container {self._name}", allowed=(404, 409)):
                self._api.remove_container(self._name, force=True, v=True)
        finally:
            self._open.close()
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
        """Run a command to its end and return its exit status and its output, of very much output the end.

        Args:
            argv: program and arguments; never a shell line.
            env: added to the image's environment.
            cwd: folder to run in; the image's own by default.
            line: called with each whole line of stdout and stderr as it is printed, at the end also with a part of one.
            out: called with the lines of stdout in place of `line`.

        Raises:
            LimitError: the container's time ended before the command did, or it printed more than may be.
        """
        kept = (bytearray(), bytearray())
        printed = 0
        lines = (_Lines(out or line), _Lines(line))

        def take(stream: int, chunk: bytes) -> None:
            nonlocal printed
            printed += len(chunk)
            if printed > self.printable:
                raise LimitError(
                    f"{argv[0]} in a container of {self._image} was ended", why=f"it printed {printed} bytes"
                )
            kept[stream].extend(chunk)
            if len(kept[stream]) > 2 * _KEPT:
                del kept[stream][:-_KEPT]
            lines[stream].feed(chunk)

        try:
            status = self._execute(argv, take, environment=dict(env or {}), workdir=cwd)
        except FAILURES as error:
            self._check_time(argv[0])
            raise diagnosis.failed(f"cannot run {argv[0]} in a container of {self._image}", error) from error
        finally:
            # Also of a command that was ended: it shows how far it came.
            for cut in lines:
                cut.end()
        if status != 0:
            self._check_time(argv[0])
        stdout, stderr = (part.decode(errors="replace") for part in kept)
        return Completed(status, stdout, stderr)

    def _execute(self, argv: Sequence[str], take: Callable[[int, bytes], None], **settings: Any) -> int:
        """Run a command and return its exit status; pass what it prints to `take`, with 0 for stdout, 1 for stderr."""
        id = self._api.exec_create(self.id, list(argv), **settings)["Id"]
        for stream, chunk in frames(self._api.exec_start(id, socket=True)):
            take(stream, chunk)
        return self._ended(id)

    @contextmanager
    def piped(self, argv: Sequence[str]) -> Iterator[tuple[Any, Iterator[tuple[int, bytes]]]]:
        """Run a command while its input and its output are open.

        Yields:
            The socket whose bytes are the command's input; and what it prints, as frames() has it.
        """
        id = self._api.exec_create(self.id, list(argv), stdin=True)["Id"]
        stream = self._api.exec_start(id, socket=True)
        with closing(stream):
            opened = connection(stream)
            yield opened[0], frames(stream, opened)

    def _check_time(self, program: str) -> None:
        """Raise LimitError if the container's time is over."""

    def call(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        line: Callable[[str], None] | None = None,
    ) -> str:
        """Run a command that must succeed, like run; return its stdout.

        Raises:
            CommandError: the exit status is not zero; carries the last lines printed.
        """
        done = self.run(argv, env=env, cwd=cwd, line=line)
        if done.status != 0:
            tail = "\n".join((done.stdout + done.stderr).splitlines()[-_TAIL_LINES:])
            raise CommandError(f"in {self._image}: {shlex.join(argv)} failed with exit status {done.status}", why=tail)
        return done.stdout

    def interactive(self, argv: Sequence[str], *, cwd: str | None = None) -> int:
        """Run a command in this process's terminal; return its exit status.

        If stdin is not a terminal, it is read to its end first, and becomes the command's input, because an engine on
        another machine may have no way to signal the end of input over an open connection. If only stdout is not a
        terminal, the command has no input.
        """

        def show(stream: int, chunk: bytes) -> None:
            file = (sys.stdout.buffer, sys.stderr.buffer)[stream]
            file.write(chunk)
            file.flush()

        with reported(f"cannot open {argv[0]} in a container of {self._image}"):
            if sys.stdin.isatty() and sys.stdout.isatty():
                id = self._api.exec_create(self.id, list(argv), stdin=True, tty=True, workdir=cwd)["Id"]
                sock, received = connection(self._api.exec_start(id, tty=True, socket=True))
                terminal.join(sock, received, lambda rows, columns: self._api.exec_resize(id, rows, columns))
                return self._ended(id)
            self._unpack({_INPUT: b"" if sys.stdin.isatty() else _input()})
            sys.stdout.flush()
            return self._execute(["sh", "-c", f'exec "$@" </{_INPUT}', "sh", *argv], show, workdir=cwd)

    def _ended(self, id: str) -> int:
        """Return a command's exit status. The engine has none if it lost the process, such as with its container."""
        status = self._api.exec_inspect(id)["ExitCode"]
        return _LOST if status is None else int(status)

    def copy_into(self, source: Path, destination: str) -> None:
        """Copy a file or a folder into the container, to exactly this absolute path; parent folders are created."""
        with reported(f"cannot copy {source} into a container of {self._image}"):
            self._unpack(trees.entries_below(source, destination))

    def _unpack(self, entries: Mapping[str, Path | bytes]) -> None:
        """Write files into the container, by their paths relative to /."""
        data = io.BytesIO()
        trees.write_tar(data, entries)
        self._api.put_archive(self.id, "/", data.getvalue())

    def copy_out(self, source: str, destination: Path, bounds: Bounds = LARGEST, *, only: str = "") -> None:
        """Copy a file, or the files of a folder, out of the container to this name; see received.take.

        Raises:
            EngineError: there is no such file; or it is a link, or not what `only` says, a file or a folder.
            LimitError: it is more than the bounds allow.
            UnsafeArchiveError: a file cannot be written, for example because its name leads out of the destination.
        """
        taken = self.take(source, destination, bounds, only=only)
        taken.check(f"not all of {source} was copied out of a container of {self._image}")

    def take(self, source: str, destination: Path, bounds: Bounds, **options: Any) -> Taken:
        """Copy out like copy_out, and return what was taken; the options are those of received.take."""
        with reported(f"cannot copy {source} out of a container of {self._image}"):
            packed = cast(IO[bytes], io.BufferedReader(_Stream(self._packed(source))))
            return received.take(packed, destination, bounds, what=source, **options)

    def _packed(self, source: str) -> Iterable[bytes]:
        """Return the engine's tar of a file or a folder, in pieces."""
        chunks, _ = self._api.get_archive(self.id, source)
        return cast(Iterable[bytes], chunks)

    def put(self, tar: Path, folder: str) -> None:
        """Unpack a tar, which may be larger than memory, into a folder of the container; the folder is created.

        The engine unpacks it, with the owners, modes and links in the tar, so it must be a tar that we wrote.
        """
        self.call(["mkdir", "-p", folder])
        # The Docker SDK sends a file in pieces while it reads it.
        with reported(f"cannot unpack {tar} in a container of {self._image}"), tar.open("rb") as file:
            self._api.put_archive(self.id, folder, file)

    def oom_killed(self) -> bool:
        """Return whether the kernel killed a process in this container because the container or machine had no memory.

        The kernel counts these kills per cgroup. The engine's own answer, State.OOMKilled, is not enough: Docker 20.10
        leaves it false if the killed process belonged to a command, and not to the container itself.
        """
        return re.search("^oom_kill 0*[1-9]", self.run(["cat", *_OOM_COUNTERS]).stdout, re.MULTILINE) is not None


def _input() -> bytes:
    """Return all of stdin. Print a message if no input comes, because waiting for input would look like a hang."""
    if not select.select([sys.stdin], [], [], _INPUT_PATIENCE)[0]:
        print("reading stdin to its end first; for no input: </dev/null", file=sys.stderr, flush=True)
    return sys.stdin.buffer.read()


class _Stream(io.RawIOBase):
    """Chunks of bytes as a file that can be read once."""

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
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> None:
        if not self._line:
            return
        self._rest += chunk
        if b"\n" in chunk or len(self._rest) > _LONGEST_LINE:
            *complete, rest = bytes(self._rest).split(b"\n")
            # A line that is too long is cut.
            for text in [*complete, rest] if len(rest) > _LONGEST_LINE else complete:
                self._line(text.decode(errors="replace"))
            self._rest = bytearray(b"" if len(rest) > _LONGEST_LINE else rest)

    def end(self) -> None:
        if self._line and self._rest:
            self._line(self._rest.decode(errors="replace"))
