"""A server in a container, reached from this machine: what arrives, who reaches it, and what is left at the end."""

from __future__ import annotations

import ipaddress
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import pytest

from toolchains.engine import relay
from toolchains.system.children import Completed
from toolchains.system.errors import EngineError


class Here:
    """Runs what a container would run, on this machine."""

    def __init__(self) -> None:
        self.children: list[subprocess.Popen[bytes]] = []

    def run(self, argv: Sequence[str]) -> Completed:
        done = subprocess.run([sys.executable, *argv[1:]], capture_output=True, text=True, check=False)
        return Completed(done.returncode, done.stdout, done.stderr)

    @contextmanager
    def piped(self, argv: Sequence[str]) -> Iterator[tuple[socket.socket, Iterator[tuple[int, bytes]]]]:
        ours, theirs = socket.socketpair()
        child = subprocess.Popen([sys.executable, *argv[1:]], stdin=theirs.fileno(), stdout=theirs.fileno())
        self.children.append(child)
        theirs.close()
        with ours:
            yield ours, ((0, chunk) for chunk in iter(lambda: ours.recv(1000), b""))


@pytest.fixture
def echo() -> Iterator[int]:
    """Yield the port of a server that sends everything back."""

    def serve() -> None:
        while True:
            try:
                client, _ = server.accept()
            except OSError:
                return
            while data := client.recv(65536):
                client.sendall(data)
            client.close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def test_bytes_reach_the_server_and_come_back_unchanged(echo: int) -> None:
    here = Here()
    address = relay.own_address()
    sent = bytes(range(256)) * 4000
    with relay.listening(cast(Any, here), echo, address) as own, socket.create_connection((address, own)) as client:
        threading.Thread(target=client.sendall, args=(sent,), daemon=True).start()
        received = b""
        while len(received) < len(sent):
            received += client.recv(65536)
    assert received == sent
    # The command in the container ends with its connection.
    assert here.children[0].wait(30) == 0
    with pytest.raises(OSError):
        socket.create_connection((address, own))


def test_address_is_a_loopback_one_of_its_own() -> None:
    address = ipaddress.ip_address(relay.own_address())
    assert address.is_loopback and address != ipaddress.ip_address("127.0.0.1")


def test_server_that_does_not_start_is_an_error(echo: int) -> None:
    relay.wait(cast(Any, Here()), echo, 0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(EngineError, match="no server answers"):
        relay.wait(cast(Any, Here()), port, 0)
