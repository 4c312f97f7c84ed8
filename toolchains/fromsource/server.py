"""Run a conan-server for a trusted network, from the image in which upstream's projects are built.

Everybody who can connect may read. One user may write, named by the same variables as for Conan's clients. The server
speaks plain HTTP, one request at a time: it is sufficient for a small team, and unsuitable for confidential packages.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from toolchains.artifacts import native
from toolchains.engine.client import Engine
from toolchains.engine.container import Container
from toolchains.fetch.store import Store
from toolchains.fromsource.remote import PASSWORD, USER
from toolchains.lockfile.lock import LockedTarget
from toolchains.system import paths
from toolchains.system.console import Console
from toolchains.system.errors import EngineError, UsageError

PORT = 9300
# The server's data outlives the server, in a volume of the engine's.
VOLUME = "triton-foundry-conan-server"
# The file with the number of conan-server's process, in its container.
PID = "/run/conan-server.pid"
_HOME, _LOG = "/foundry/server", "/run/conan-server.log"
# The maximum time (seconds) until it opens its port.
_PATIENCE = 60
_KNOCK = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 2)"
_START = f"conan_server --server_dir {_HOME} >{_LOG} 2>&1 & echo $! >{PID}"
# Not kill -0: no process in the container waits for its children, so an ended process remains as a zombie.
_ALIVE = f'grep -q "^State:[[:space:]]*[RSDTI]" /proc/$(cat {PID})/status'


# Tokens are valid for one run only, so that clients of an earlier run log in again.
_CONFIGURATION = """\
[server]
port: {port}
disk_storage_path: ./data
jwt_secret: {jwt}
jwt_expire_minutes: 120
updown_secret: {updown}
authorize_timeout: 1800
[write_permissions]
*/*@*/*: {user}
[read_permissions]
*/*@*/*: *
[users]
{user}: {password}
"""


def writer() -> tuple[str, str]:
    """Return name and password of the user who may write, from the environment.

    Raises:
        UsageError: there is no such user, or conan-server's configuration cannot express the name or the password.
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
    """Yield the container of a running server; the server ends with it, and its data stays in the volume.

    Args:
        image: an image with conan-server.
        network: "host", or one of the engine's; containers that join this one's network use the server at 127.0.0.1.
        users: name and password of the user who may write.

    Raises:
        UsageError: the port is in use.
        EngineError: the server does not start; carries its output.
    """
    with engine.container(image, network=network, volumes={volume: _HOME}) as container:
        if _answers(container, port):
            raise UsageError(f"port {port} is in use", next="choose another: --port=9301")
        with TemporaryDirectory(dir=paths.scratch()) as work:
            file = Path(work, "server.conf")
            user, password = users
            # In this format, a single per cent sign would begin the name of another entry.
            names = {"port": port, "user": user, "password": password.replace("%", "%%")}
            file.write_text(_CONFIGURATION.format(**names, jwt=secrets.token_hex(32), updown=secrets.token_hex(32)))
            container.copy_into(file, f"{_HOME}/server.conf")
        container.call(["sh", "-c", _START], env={"PYTHONUNBUFFERED": "1", "LC_ALL": "C.UTF-8"})
        end = time.monotonic() + _PATIENCE
        while not _answers(container, port):
            if container.run(["sh", "-c", _ALIVE]).status != 0 or time.monotonic() > end:
                raise EngineError("conan-server does not start", why=container.run(["cat", _LOG]).stdout)
            time.sleep(0.2)
        yield container


def serve(builder: LockedTarget, *, port: int, store: Store, engine: Engine) -> None:
    """Serve until interrupted, or until the container's lifetime of a day ends; print a line for each request."""
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
