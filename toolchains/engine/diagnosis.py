"""Find out why a container engine failed: the cause, and the next command to type."""

from __future__ import annotations

import errno
import http.client
import os
import re
import socket
import ssl
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import docker.errors
import requests.exceptions
import urllib3.exceptions

from toolchains.engine import context
from toolchains.system import space
from toolchains.system.errors import EngineError, FileError
from toolchains.system.space import FULL

# Errors of the Docker SDK: its own; if the engine is gone, those of requests, which are OSErrors, and of urllib3.
FAILURES = (docker.errors.DockerException, OSError, urllib3.exceptions.HTTPError)
SOCKET = "/var/run/docker.sock"
_VERSION = re.compile(r"client version \S+ is too (?:new|old)", re.IGNORECASE)


class AnswerError(docker.errors.DockerException):
    """An engine answered a request of the Docker SDK with something else than Docker's API has."""

    def __init__(self, request: str, why: str) -> None:
        super().__init__(f"{address()} gave no answer of Docker's API to the request {request}: {why}")


@dataclass(frozen=True)
class Cause:
    """Why an engine failed.

    Attributes:
        why: the reason, in words.
        next: the command or the action that helps.
        absent: whether there is no engine at all, so that one can be started.
        silent: whether it took a request and did not answer in time, so that it may be busy.
    """

    why: str
    next: str
    absent: bool = False
    silent: bool = False


def address() -> str:
    """Return the address of the engine, for people, with the name of docker's context if that selects it."""
    chosen = context.current()
    if chosen:
        return f"{chosen.host} (docker's context {chosen.name})"
    return os.environ.get("DOCKER_HOST") or f"unix://{SOCKET}"


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status with which the engine refused; None if there was no HTTP answer."""
    return error.status_code if isinstance(error, docker.errors.APIError) else None


def failed(what: str, error: BaseException, *, next: str = "") -> EngineError | FileError:
    """Return the error to raise if a request failed: what, why, and the next command or the given one."""
    for inner in _chain(error):
        # No socket reports this: a file of this machine could not be written.
        if isinstance(inner, OSError) and inner.errno in (errno.ENOSPC, errno.EDQUOT):
            return space.error(what, os.strerror(inner.errno))
    cause = find(error)
    kind = FileError if FULL.search(cause.why) else EngineError
    return kind(what, why=cause.why, next=next or cause.next)


@contextmanager
def reported(what: str, *, allowed: Collection[int] = (), next: str = "") -> Iterator[None]:
    """Raise the error of failed() if a request in the with statement fails; ignore a refusal with an allowed status."""
    try:
        yield
    except FAILURES as error:
        if status_of(error) not in allowed:
            raise failed(what, error, next=next) from error


def disk_full(what: str, said: str) -> FileError:
    """Return the error to raise if the engine's disk is full."""
    return FileError(what, why=f"the container engine's disk is full: {said}", next=_MAKE_ROOM)


def find(error: BaseException, *, known: bool = False) -> Cause:
    """Return why the engine at address() failed, derived from the SDK's exception.

    Args:
        known: whether it answered before, so that it is an engine: a broken connection is then not a foreign protocol.
    """
    chain = list(_chain(error))
    where = address()
    if isinstance(error, AnswerError):
        return Cause(str(error), _ELSEWHERE)
    refusal = next(
        (str(inner.explanation or inner) for inner in chain if isinstance(inner, docker.errors.APIError)), ""
    )
    if refusal:
        if _VERSION.search(refusal):
            return Cause(
                f"the engine at {where} speaks another version of Docker's API: {refusal}",
                "update the engine, or set DOCKER_HOST to one that is current",
            )
        if FULL.search(refusal):
            return Cause(f"the container engine's disk is full: {refusal}", _MAKE_ROOM)
        return Cause(f"the engine at {where} refused: {refusal}", "docker version; the engine's log says more")
    if known and any(isinstance(inner, urllib3.exceptions.ProtocolError) for inner in chain):
        return Cause(f"{where} closed the connection: the engine stopped", RESTART)
    # The innermost error is the cause; the outer ones only say that a request failed.
    for inner in reversed(chain):
        match inner:
            case OSError() if inner.filename is not None:
                # A file of this machine; an error of a socket names none.
                return Cause(f"{inner.filename}: {inner.strerror}", "see that this file can be read and written")
            case ssl.SSLError():
                return Cause(
                    f"TLS with {where} failed: {inner}",
                    "check DOCKER_HOST, DOCKER_TLS_VERIFY and the certificates in DOCKER_CERT_PATH: docker version",
                )
            case docker.errors.TLSParameterError():
                return Cause(str(inner), "correct DOCKER_TLS_VERIFY and DOCKER_CERT_PATH, or unset them")
            case PermissionError():
                return Cause(f"you may not use {where}: permission denied", _PERMISSION)
            case FileNotFoundError():
                return Cause(f"there is no socket {where}", _start(), absent=True)
            case ConnectionRefusedError():
                return Cause(f"nothing listens at {where}: connection refused", _start(), absent=True)
            case socket.gaierror():
                return Cause(f"the host of {where} is not known: {inner}", "correct DOCKER_HOST, or unset it")
            case TimeoutError() | requests.exceptions.Timeout() | urllib3.exceptions.TimeoutError():
                silent = not any(isinstance(inner, requests.exceptions.ConnectTimeout) for inner in chain)
                return Cause(f"{where} accepts connections and does not answer", RESTART, silent=silent)
            case OSError() if inner.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH):
                return Cause(
                    f"{where} cannot be reached: {inner.strerror}", "check the network, or correct DOCKER_HOST"
                )
            case ConnectionError() | http.client.IncompleteRead() | urllib3.exceptions.IncompleteRead():
                return Cause(
                    f"{where} closed the connection: the engine stopped, or is not a container engine", RESTART
                )
            case KeyError() | TypeError() | urllib3.exceptions.ProtocolError():
                return Cause(f"what answers at {where} is not a container engine: {inner}", _ELSEWHERE)
    if any(isinstance(inner, ValueError) for inner in chain):
        return Cause(f"what answers at {where} is not a container engine: {chain[-1]}", _ELSEWHERE)
    return Cause(f"{where}: {error}", _ELSEWHERE)


_PERMISSION = "sudo usermod -aG docker $USER, then log in again; or set DOCKER_HOST to an engine that you may use"
RESTART = "restart the engine and look at its log: docker version, journalctl -u docker"
_MAKE_ROOM = "make room on the engine's disk: ./foundry prune, docker system df"
_ELSEWHERE = "docker version; correct DOCKER_HOST or docker's context, or unset it"


def _start() -> str:
    if host := os.environ.get("DOCKER_HOST"):
        return f"start the engine that DOCKER_HOST={host} names, or unset DOCKER_HOST"
    if chosen := context.current():
        return f"start the engine of docker's context {chosen.name}, or: docker context use default"
    return "./foundry doctor, which says how to start it"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its inner errors, the outermost first: causes, and arguments of the HTTP libraries' errors."""
    todo, seen = [error], set[int]()
    while todo:
        current = todo.pop(0)
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        inner = [current.__cause__, current.__context__, getattr(current, "reason", None), *current.args]
        todo += [item for item in inner if isinstance(item, BaseException)]
