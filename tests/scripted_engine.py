"""An engine without containers: it answers each request as Docker would, or as a test says."""

from __future__ import annotations

import json
import re
import struct
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingMixIn, UnixStreamServer
from typing import Any

from archive_files import packed

ID = "1" * 64
UPGRADED = b"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"


def http(body: bytes | str, status: str = "200 OK") -> bytes:
    """Return a whole answer."""
    data = body.encode() if isinstance(body, str) else body
    return f"HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data


def chunked(*chunks: bytes) -> bytes:
    """Return an answer that comes in chunks."""
    parts = [b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in (*chunks, b"")]
    return b"HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + b"".join(parts)


def frame(stream: int, content: bytes, size: int | None = None) -> bytes:
    """Return a frame of a command's output."""
    return struct.pack(">BxxxL", stream, len(content) if size is None else size) + content


IMAGE = {"Id": ID, "RepoTags": ["a:b"], "Config": {"Labels": {}}, "Size": 1, "RootFS": {"Layers": []}}
LISTED: dict[str, object] = {"Id": ID, "Names": ["/a"], "RepoTags": None, "Labels": {}, "Created": 1, "Size": 1}
# What Docker answers, by the SDK's name of a request: its method, its path, and the answer.
GOOD: Mapping[str, tuple[str, str, bytes]] = {
    "version": ("GET", "/version", http('{"ApiVersion": "1.41", "Version": "20.10"}')),
    "info": ("GET", "/info", http('{"NCPU": 2, "MemTotal": 4000000000, "MemoryLimit": true, "PidsLimit": true}')),
    "create_container": ("POST", "/containers/create", http(json.dumps({"Id": ID}), "201 Created")),
    "attach_socket": ("POST", "/containers/[^/]+/attach", UPGRADED),
    "start": ("POST", "/containers/[^/]+/start", http("", "204 No Content")),
    "stop": ("POST", "/containers/[^/]+/stop", http("", "204 No Content")),
    "remove_container": ("DELETE", "/containers/[^/]+", http("", "204 No Content")),
    "exec_create": ("POST", "/containers/[^/]+/exec", http(json.dumps({"Id": ID}), "201 Created")),
    "exec_start": ("POST", "/exec/[^/]+/start", UPGRADED + frame(1, b"out\n") + frame(2, b"err\n")),
    "exec_inspect": ("GET", "/exec/[^/]+/json", http('{"ExitCode": 0}')),
    "put_archive": ("PUT", "/containers/[^/]+/archive", http("")),
    "get_archive": ("GET", "/containers/[^/]+/archive", http(packed({"file": b"content"}))),
    "inspect_image": ("GET", "/images/.+/json", http(json.dumps(IMAGE))),
    "get_image": ("GET", "/images/.+/get", http(packed({"file": b"content"}))),
    "load_image": ("POST", "/images/load", chunked(b'{"stream": "Loaded"}\r\n')),
    "push": ("POST", "/images/.+/push", chunked(b'{"status": "Pushed"}\r\n')),
    "pull": ("POST", "/images/create", chunked(b'{"status": "Pulled"}\r\n')),
    "tag": ("POST", "/images/.+/tag", http("", "201 Created")),
    "remove_image": ("DELETE", "/images/.+", http("[]")),
    "images": ("GET", "/images/json", http(json.dumps([LISTED]))),
    "containers": ("GET", "/containers/json", http(json.dumps([LISTED]))),
    "volumes": ("GET", "/volumes", http('{"Volumes": [{"Name": "v"}], "Warnings": null}')),
    "remove_volume": ("DELETE", "/volumes/.+", http("", "204 No Content")),
    "build": (
        "POST",
        "/build",
        chunked(b'{"stream": " ---> 0123456789ab\\n"}', b'{"stream": "Successfully built 0123456789ab\\n"}'),
    ),
}


class ScriptedEngine(ThreadingMixIn, UnixStreamServer):
    """The engine.

    Attributes:
        answers: what it answers in place of what Docker would, by the request; None if it hangs up.
        requests: what it was asked.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self, path: Path) -> None:
        self.answers: dict[str, bytes | None] = {}
        self.requests: list[str] = []
        super().__init__(str(path), _Handler)

    def handle_error(self, *_: Any) -> None:
        pass  # the client hung up


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ScriptedEngine

    def _answer(self) -> None:
        path = re.sub(r"^/v[0-9.]+", "", self.path.partition("?")[0])
        name = next(key for key, (how, known, _) in GOOD.items() if how == self.command and re.fullmatch(known, path))
        self.server.requests.append(name)
        answer = self.server.answers.get(name, GOOD[name][2])
        if answer is None:
            # Before the end of what the client uploads.
            self.close_connection = True
            return
        self._skip_body()
        self.wfile.write(answer)
        self.close_connection = True
        if answer == GOOD["attach_socket"][2]:
            # Until the client closes the container's input.
            self.rfile.read()

    do_GET = do_POST = do_PUT = do_DELETE = _answer

    def _skip_body(self) -> None:
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                self.rfile.read(size + 2)
            self.rfile.readline()
        self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def scripted(path: Path) -> Iterator[ScriptedEngine]:
    """Run an engine at a socket."""
    with ScriptedEngine(path) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()
