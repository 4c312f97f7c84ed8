"""A conan-server for a trusted network, from the image that upstream's projects are built in.

Everybody who reaches it may read; one user may write, whom the environment names as it does for Conan's clients. It
speaks plain HTTP, one request after the other: enough for a room of developers, and no place for what must not be seen.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from toolchains.artifacts import native
from toolchains.engine.client import Engine
from toolchains.engine.container import Container
from toolchains.fetch.store import Store
from toolchains.fromsource.remote import PASSWORD, USER
from toolchains.lockfile.lock import LockedTarget
from toolchains.system import paths
from toolchains.system.errors import EngineError, UsageError

PORT = 9300
# What is served outlives the server, in a volume of the engine's.
VOLUME = "triton-foundry-conan-server"
# conan-server's process, in its container.
PID = "/run/conan-server.pid"
_HOME, _LOG = "/foundry/server", "/run/conan-server.log"
# How long (seconds) it may take to open its port.
_PATIENCE = 60
_KNOCK = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 2)"
_START = f"conan_server --server_dir {_HOME} >{_LOG} 2>&1 & echo $! >{PID}"
# Not kill -0: nobody in the container takes note of a child's end, so a process that ended is still one, a zombie.
_ALIVE = f'grep -q "^State:[[:space:]]*[RSDTI]" /proc/$(cat {PID})/status'


def writer() -> tuple[str, str]:
    """Name and password of the user who may write, from the environment.

    Raises:
        UsageError: it names nobody, or somebody whom conan-server's configuration has no way to write down.
    """
    user, password = os.environ.get(USER, ""), os.environ.get(PASSWORD, "")
    if not (user and password):
        raise UsageError(
            "no user is named who may write to this server",
            why="there is no password by default, because everybody would know it",
            next=f"set {USER} and {PASSWORD}, here and where you push from; a pull needs neither",
        )
    if not (user.isascii() and user.isalnum()) or password != password.strip() or not password.isprintable():
        raise UsageError(
            f"conan-server does not accept this {USER} or {PASSWORD}",
            why="the name is of letters and digits; the password has no blanks at its ends and no control characters",
            next="choose others",
        )
    return user, password


@contextmanager
def run_server(
    image: str,
    engine: Engine,
    *,
    port: int = PORT,
    network: str = "host",
    volume: str = VOLUME,
    users: tuple[str, str],
) -> Iterator[Container]:
    """The container of a server that answers; the server ends with it, what it was given stays in the volume.

    Args:
        image: with conan-server in it.
        network: "host", or one of the engine's; containers that join this one's find the server at 127.0.0.1.
        users: name and password of the one who may write.

    Raises:
        UsageError: something listens at the port already.
        EngineError: it does not start; carries what it printed.
    """
    with engine.container(image, network=network, volumes={volume: _HOME}) as container:
        if _answers(container, port):
            raise UsageError(f"port {port} is in use", next="choose another: --port=9301")
        with TemporaryDirectory(dir=paths.scratch()) as work:
            file = Path(work, "server.conf")
            file.write_text(_configuration(port, *users))
            container.copy_into(file, f"{_HOME}/server.conf")
        container.call(["sh", "-c", _START], env={"PYTHONUNBUFFERED": "1", "LC_ALL": "C.UTF-8"})
        end = time.monotonic() + _PATIENCE
        while not _answers(container, port):
            if container.run(["sh", "-c", _ALIVE]).status != 0 or time.monotonic() > end:
                raise EngineError("conan-server does not start", why=container.run(["cat", _LOG]).stdout)
            time.sleep(0.2)
        yield container


def serve(builder: LockedTarget, *, port: int, store: Store, engine: Engine) -> None:
    """Serve until interrupted, or until the container's day is over; prints a line for each request."""
    users = writer()
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    image = native.builder_image(builder, store=store, engine=engine)
    with run_server(image, engine, port=port, users=users) as container:
        console.print(f"serving at port {port} of the engine's machine; {users[0]} may write, everybody may read")
        console.print(f"what it has is in the engine's volume {VOLUME}; Ctrl-C ends it")
        container.run(["sh", "-c", f"tail --lines=+1 --follow --pid=$(cat {PID}) {_LOG}"], line=print)
    raise EngineError(
        f"conan-server ended unexpectedly; its packages are still in {VOLUME}", next="./foundry cache serve"
    )


def _answers(container: Container, port: int) -> bool:
    return container.run(["python3", "-c", _KNOCK, str(port)]).status == 0


def _configuration(port: int, user: str, password: str) -> str:
    """server.conf: tokens are of this run only, so that whoever has one of an earlier run logs in again."""
    # In this format, a single per cent sign would start the name of another entry.
    escaped = password.replace("%", "%%")
    return "\n".join(
        [
            "[server]",
            f"port: {port}",
            "disk_storage_path: ./data",
            f"jwt_secret: {secrets.token_hex(32)}",
            "jwt_expire_minutes: 120",
            f"updown_secret: {secrets.token_hex(32)}",
            "authorize_timeout: 1800",
            "[write_permissions]",
            f"*/*@*/*: {user}",
            "[read_permissions]",
            "*/*@*/*: *",
            "[users]",
            f"{user}: {escaped}",
            "",
        ]
    )
