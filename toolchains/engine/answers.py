"""Check what a container engine answers: each answer has the shape that our code reads, or the error names the engine.

A type has only the fields that are read; engines send more of them. What Docker's API may leave out may be null, too.
"""

from __future__ import annotations

import ssl
import struct
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any, NotRequired, TypedDict

import msgspec
import requests.exceptions

from toolchains.engine.diagnosis import FAILURES, AnswerError

# Bytes, seconds and numbers of things.
_Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
# The header of a frame: the stream, and the size of its content.
_FRAME = struct.Struct(">BxxxL")
_STDOUT, _STDERR = 1, 2
_CHUNK = 65536


class _Named(TypedDict):
    Id: str


class _Exec(TypedDict):
    ExitCode: int | None


class _Platform(TypedDict, total=False):
    Name: str | None


class _Version(TypedDict, total=False):
    Platform: _Platform | None
    Version: str | None


class _Info(TypedDict, total=False):
    NCPU: _Count | None
    MemTotal: _Count | None
    MemoryLimit: bool | None
    PidsLimit: bool | None


class _Labelled(TypedDict, total=False):
    Labels: dict[str, str] | None


class _Layers(TypedDict, total=False):
    Layers: list[str] | None


class _Image(_Named):
    RepoTags: NotRequired[list[str] | None]
    Config: _Labelled
    Size: _Count
    RootFS: _Layers


class _ListedImage(_Named, _Labelled):
    RepoTags: NotRequired[list[str] | None]
    Size: _Count
    Created: int


class _ListedContainer(_Named, _Labelled):
    Names: NotRequired[list[str] | None]
    State: NotRequired[str | None]
    Created: int


class _Volume(TypedDict):
    Name: str


class _Volumes(TypedDict, total=False):
    Volumes: list[_Volume] | None


class _Line(TypedDict, total=False):
    stream: str | None
    error: str | None


# What the SDK's methods return, or each item if they return an iterator. Nothing is read of what others return.
_ANSWERS: dict[str, Any] = {
    "build": _Line,
    "containers": list[_ListedContainer],
    "create_container": _Named,
    "exec_create": _Named,
    "exec_inspect": _Exec,
    "get_image": bytes,
    "images": list[_ListedImage],
    "info": _Info,
    "inspect_image": _Image,
    "load_image": _Line,
    "pull": _Line,
    "push": _Line,
    "version": _Version,
    "volumes": _Volumes,
}


class CheckedApi:
    """The Docker SDK's client, which raises one of FAILURES whatever an engine answers."""

    def __init__(self, api: Any) -> None:
        self._api = api

    def __getattr__(self, name: str) -> Callable[..., Any]:
        send = getattr(self._api, name)

        def checked(answer: Any) -> Any:
            if name in _ANSWERS:
                msgspec.convert(answer, _ANSWERS[name])
            return answer

        def items(answers: Iterator[Any]) -> Iterator[Any]:
            while True:
                with _reading(name):
                    try:
                        answer = checked(next(answers))
                    except StopIteration:
                        return
                yield answer

        def request(*args: Any, **kwargs: Any) -> Any:
            with _reading(name):
                answer = send(*args, **kwargs)
                return items(answer) if isinstance(answer, Generator) else checked(answer)

        return request


@contextmanager
def _reading(name: str) -> Iterator[None]:
    try:
        yield
    except requests.exceptions.JSONDecodeError as error:
        raise AnswerError(name, f"it is no JSON: {error}") from error
    except FAILURES:
        raise
    except Exception as error:  # The SDK expects the answers of Docker; others make it raise errors of many classes.
        raise AnswerError(name, str(error) or repr(error)) from error


def frames(stream: Any, opened: tuple[Any, bytes] | None = None) -> Iterator[tuple[int, bytes]]:
    """Yield what a command prints, as it comes: 0 for stdout or 1 for stderr, and the bytes.

    Args:
        stream: as CheckedApi.exec_start returns it for socket=True. It is closed at the end.
        opened: what connection() returned for it, if it was called.

    Raises:
        AnswerError: it is cut off within a frame, or has something else than frames.
    """
    sock, received = opened or connection(stream)

    def read(size: int) -> bytes:
        nonlocal received
        if not received:
            return bytes(sock.recv(size))
        chunk, received = received[:size], received[size:]
        return chunk

    def read_some(size: int) -> bytes:
        if chunk := read(size):
            return chunk
        raise ValueError("the output of a command is cut off")

    with _reading("exec_start"):
        try:
            while header := read(_FRAME.size):
                while len(header) < _FRAME.size:
                    header += read_some(_FRAME.size - len(header))
                kind, size = _FRAME.unpack(header)
                if kind not in (_STDOUT, _STDERR):
                    raise ValueError(f"a frame of stream {kind}")
                while size:
                    chunk = read_some(min(size, _CHUNK))
                    size -= len(chunk)
                    yield kind - _STDOUT, chunk
        finally:
            stream.close()


def connection(stream: Any) -> tuple[Any, bytes]:
    """Return the socket of a stream of the SDK, which then waits without a limit, and the bytes that have arrived.

    The header of the engine's answer is read through a buffer, in which the first output may be already, and the SDK
    returns the socket below that buffer.
    """
    # With TLS, the stream is the socket.
    sock = getattr(stream, "_sock", stream)
    received = b""
    with _reading("exec_start"):
        sock.setblocking(False)
        with suppress(BlockingIOError, ssl.SSLWantReadError):
            received = stream._response.raw._fp.fp.peek()
        sock.settimeout(None)
    return sock, received
