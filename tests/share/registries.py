"""Registries for tests: Debian's docker-registry, and one in this process with referrers and with tokens."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec

from toolchains.fetch.store import Store
from toolchains.system import paths

_PACKAGES = ("docker-registry", "skopeo", "libgpgme11", "libassuan0", "libgpg-error0", "libdevmapper1.02.1")


class Debian:
    """Debian's docker-registry and skopeo, which inspects what is in it; both are unpacked, and not installed."""

    def __init__(self, work: Path) -> None:
        store = Store(paths.cache())
        for deb in store.fetch(store.debs("bookworm").find(_PACKAGES), suite="bookworm", python="3.11"):
            subprocess.run(["dpkg-deb", "--extract", store.path(deb), work], check=True)
        self._programs = work / "usr/bin"
        self._env = {**os.environ, "LD_LIBRARY_PATH": str(work / "usr/lib/x86_64-linux-gnu")}

    @contextmanager
    def registry(self, storage: Path) -> Iterator[str]:
        """Yield the address of a registry that keeps its blobs in a folder."""
        port = free_port()
        storage.mkdir()
        settings = {"storage": {"filesystem": {"rootdirectory": str(storage)}}, "http": {"addr": f"127.0.0.1:{port}"}}
        (storage / "config.yml").write_text(json.dumps({"version": 0.1, **settings}))
        with (
            (storage / "log").open("wb") as log,
            subprocess.Popen(
                [self._programs / "docker-registry", "serve", storage / "config.yml"], stdout=log, stderr=log
            ) as server,
        ):
            try:
                for _ in range(100):
                    with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                        break
                    time.sleep(0.1)
                yield f"127.0.0.1:{port}"
            finally:
                server.terminate()

    def inspect(self, name: str) -> Any:
        """Return the manifest of a name in a registry, as skopeo reads it."""
        words = [str(self._programs / "skopeo"), "inspect", "--raw", "--tls-verify=false", f"docker://{name}"]
        return json.loads(subprocess.check_output(words, env=self._env))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


class BreakingProxy:
    """Passes connections on to a registry, and breaks all of them when told, until it is mended.

    Attributes:
        sent: the bytes that were passed on to the registry.
        limit: a connection that sent more waits until `may_break()`; then all are broken.
    """

    def __init__(self, address: str) -> None:
        self._host, _, port = address.partition(":")
        self._port = int(port)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"
        self.sent = 0
        self.limit = math.inf
        self.may_break: Callable[[], bool] = lambda: True
        self.broken = False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            client, _ = self._server.accept()
            if self.broken:
                # An engine that may not push does not try again. Without a message it does not heed the code.
                client.recv(1 << 16)
                body = b'{"errors": [{"code": "DENIED", "message": "it is broken"}]}'
                client.sendall(b"HTTP/1.1 403 No\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
                client.close()
                continue
            server = socket.create_connection((self._host, self._port))
            for pair in ((client, server, True), (server, client, False)):
                threading.Thread(target=self._pass, args=pair, daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, up: bool) -> None:
        sent = 0
        with suppress(OSError):
            while not self.broken and (chunk := source.recv(1 << 15)):
                sent += len(chunk) * up
                if sent > self.limit:
                    while not self.may_break():
                        time.sleep(0.01)
                    self.broken = True
                    break
                self.sent += len(chunk) * up
                sink.sendall(chunk)
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


class ModernRegistry(ThreadingHTTPServer):
    """Has the API for referrers, and gives a token to one user; each token is for the scope that was asked for."""

    USER = f"Basic {base64.b64encode(b'me:secret').decode()}"

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.address = f"127.0.0.1:{self.server_port}"
        self.blobs: dict[str, bytes] = {}
        self.manifests: dict[str, bytes] = {}
        self.uploads = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Handler(BaseHTTPRequestHandler):
    server: ModernRegistry
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def _answer(self, status: int, text: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text if self.command != "HEAD" else b"")

    def do_GET(self) -> None:
        registry, url = self.server, urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        kind, _, name = url.path.removeprefix("/v2/team/spirv/").partition("/")
        scope = "pull" if self.command in ("GET", "HEAD") else "push"
        if url.path == "/token":
            good = self.headers.get("Authorization") == registry.USER
            self._answer(200 if good else 401, json.dumps({"token": parse_qs(url.query)["scope"][0]}).encode())
        elif self.headers.get("Authorization") != f"Bearer {scope}":
            asked = f'Bearer realm="http://{registry.address}/token",service="x",scope="{scope}"'
            self._answer(401, WWW_Authenticate=asked)
        elif kind == "referrers":
            found = [self._descriptor(text) for text in registry.manifests.values() if f'{name}"' in text.decode()]
            self._answer(200, json.dumps({"schemaVersion": 2, "manifests": found}).encode())
        elif self.command == "POST":
            registry.uploads += 1
            self._answer(202, Location="/v2/team/spirv/blobs/uploads/1?state=a%3Db")
        elif self.command == "PUT" and kind == "blobs":
            registry.blobs[parse_qs(url.query)["digest"][0]] = body
            self._answer(201)
        elif self.command == "PUT":
            registry.manifests[name] = body
            refers = "subject" in json.loads(body)
            self._answer(201, b"", **({"OCI_Subject": "x"} if refers else {}))
        else:
            text = (registry.blobs if kind == "blobs" else registry.manifests).get(name)
            self._answer(404 if text is None else 200, text or b"")

    do_HEAD = do_POST = do_PUT = do_GET

    def _descriptor(self, text: bytes) -> dict[str, object]:
        said = msgspec.json.decode(text)
        digest = f"sha256:{hashlib.sha256(text).hexdigest()}"
        return {
            "mediaType": said["mediaType"],
            "digest": digest,
            "size": len(text),
            "artifactType": said["artifactType"],
        }
