"""Reach a server in a container that has no network, from this machine only.

Each connection to a loopback address of this machine becomes a command in the container, whose input and output are the
connection; the command copies them to and from the server's port. So the container keeps its network of nothing, and an
engine on another machine works as well.
"""

from __future__ import annotations

import secrets
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from toolchains.engine.container import Container
from toolchains.engine.diagnosis import FAILURES
from toolchains.system.errors import EngineError, FoundryError

_CHUNK = 65536
# A browser has six connections to a server, and one for each kernel and terminal.
_CONNECTIONS = 64
# Waits in the container until the server takes connections.
_WAIT = """
import socket, sys, time
end = time.monotonic() + float(sys.argv[2])
while True:
    try:
        socket.create_connection(("127.0.0.1", int(sys.argv[1]))).close()
        break
    except OSError as error:
        if time.monotonic() > end:
            sys.exit(str(error))
        time.sleep(0.1)
"""
_COPY = """
import os, select, socket, sys
server = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
while True:
    ready = select.select([0, server], [], [])[0]
    if 0 in ready:
        data = os.read(0, 65536)
        if not data:
            break
        server.sendall(data)
    if server in ready:
        data = server.recv(65536)
        if not data:
            break
        while data:
            data = data[os.write(1, data):]
"""


def own_address() -> str:
    """Return a loopback address that no other server of this machine has.

    Browsers send the cookies of a host to all its ports. On 127.0.0.1, the container would get those of the user's own
    servers.
    """
    return ".".join(["127", *(str(1 + secrets.randbelow(254)) for _ in range(3))])


def wait(container: Container, port: int, seconds: int) -> None:
    """Wait until a server in the container takes connections.

    Raises:
        EngineError: it does not.
    """
    done = container.run(["python3", "-I", "-c", _WAIT, f"{port}", f"{seconds}"])
    if done.status != 0:
        raise EngineError(f"no server answers in the container after {seconds} s", why=done.stderr.strip())


@contextmanager
def listening(container: Container, port: int, address: str, own: int = 0) -> Iterator[int]:
    """Connect a loopback address of this machine with a port in a container; yield the port of the address.

    Args:
        port: the server's port in the container, on its loopback address.
        address: see own_address.
        own: the port to listen at; 0 for a free one.

    Raises:
        OSError: the port is in use.
    """
    free = threading.BoundedSemaphore(_CONNECTIONS)

    class Connection(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with free, suppress(*FAILURES, FoundryError, OSError):
                _copy(container, port, self.request)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads, block_on_close, allow_reuse_address = True, False, True

    with Server((address, own), Connection) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()


def _copy(container: Container, port: int, client: socket.socket) -> None:
    """Copy between a connection and the server's port until one side closes."""
    with container.piped(["python3", "-I", "-S", "-c", _COPY, f"{port}"]) as (send, chunks):

        def forward() -> None:
            with suppress(OSError):
                while data := client.recv(_CHUNK):
                    send.sendall(data)
            # Without its input the command ends, and then the loop below.
            with suppress(OSError):
                send.shutdown(socket.SHUT_RDWR)

        threading.Thread(target=forward, daemon=True).start()
        for stream, chunk in chunks:
            if stream == 0:
                client.sendall(chunk)
    with suppress(OSError):
        client.shutdown(socket.SHUT_RDWR)
