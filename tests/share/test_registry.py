"""A registry that lies or does not end: pull ends with an error, and no password leaves for another host."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from requests.adapters import HTTPAdapter

from toolchains.share import registry
from toolchains.share.registry import Repository
from toolchains.system.errors import FetchError

DIGEST = f"sha256:{'0' * 64}"
SECRET = base64.b64encode(b"me:secret").decode()
# A status, headers and a body, which may not end.
Answer = tuple[int, dict[str, str], bytes | Iterator[bytes]]
PAGE = json.dumps({"schemaVersion": 2, "manifests": []}).encode()


class Server(ThreadingHTTPServer):
    """Answers as a function of the path does, and keeps the headers with credentials that it got."""

    daemon_threads = True

    def __init__(self, answer: Callable[[Server, str], Answer]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.address = f"127.0.0.1:{self.server_port}"
        self.answer = answer
        self.asked: list[str] = []
        self.got: list[str] = []


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.server.got += [self.headers["Authorization"]] * ("Authorization" in self.headers)
        status, headers, body = self.server.answer(self.server, self.path)
        with contextlib.suppress(OSError):
            self.send_response(status)
            for key, value in headers.items():
                self.send_header(key, value)
            self.end_headers()
            for chunk in [body] if isinstance(body, bytes) else body:
                self.wfile.write(chunk)
                self.wfile.flush()

    do_HEAD = do_POST = do_PUT = do_GET


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Server]]:
    """Return a function that starts a server, for which the user has a password."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    servers = []

    def start(answer: Callable[..., object], *, known: bool = True) -> Server:
        server = Server(answer)  # type: ignore[arg-type]
        servers.append(server)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        if known:
            (tmp_path / "config.json").write_text(json.dumps({"auths": {server.address: {"auth": SECRET}}}))
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def repository(server: Server) -> Repository:
    return Repository(f"{server.address}/team", "spirv")


def drip() -> Iterator[bytes]:
    while True:
        yield b" "
        time.sleep(0.02)


def linked_page(link: str) -> Callable[[Server, str], Answer]:
    """Return an answer with a page that names the next one; {} is the page's own path."""
    return lambda _, path: (200, {"Link": f"<{link.format(path)}>; rel=next"}, PAGE)


def crowded_page(server: Server, path: str) -> Answer:
    entries = [{"mediaType": "a", "digest": DIGEST, "size": 1}] * 2000
    return 200, {}, json.dumps({"schemaVersion": 2, "manifests": entries}).encode()


ENDLESS = linked_page("{}1")


@pytest.mark.parametrize(
    "answer", [ENDLESS, linked_page("{}"), linked_page("https://elsewhere.example/v2/"), crowded_page]
)
def test_a_list_of_referrers_without_an_end_is_refused(serve: Callable[..., Server], answer: object) -> None:
    server = serve(answer)
    with pytest.raises(FetchError, match="does not end the list of what refers to an image"):
        repository(server).referrers(DIGEST)
    assert len(server.asked) <= registry._PAGES


@pytest.mark.parametrize("part", ["body", "headers", "token"])
def test_dripping_answer_is_given_up(serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    def answer(server: Server, path: str) -> Answer:
        if part == "token" and "token" not in path:
            return 401, {"WWW-Authenticate": f'Bearer realm="http://{server.address}/token"'}, b""
        return 200, {}, drip()

    if part == "headers":
        monkeypatch.setattr(_Handler, "end_headers", lambda self: [self.wfile.write(each) for each in drip()])
        monkeypatch.setattr(_Handler, "send_response", lambda self, status: self.wfile.write(b"HTTP/1.1 200 OK\r\nA: "))
    monkeypatch.setattr(registry, "_SECONDS", 0.3)
    with pytest.raises(FetchError, match="does not answer") as raised:
        repository(serve(answer)).manifest("tag")
    assert "seconds" in raised.value.why


def test_time_is_limited_for_all_answers(serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(server: Server, path: str) -> Answer:
        time.sleep(0.1)
        return ENDLESS(server, path)

    monkeypatch.setattr(registry, "_SECONDS", 0.35)
    server = serve(answer)
    with pytest.raises(FetchError, match="does not answer"):
        repository(server).referrers(DIGEST)
    assert len(server.asked) <= 4


def test_an_answer_that_is_too_large_is_refused(serve: Callable[..., Server]) -> None:
    server = serve(lambda server, path: (200, {}, itertools.repeat(bytes(1 << 20))))
    with pytest.raises(FetchError, match="has more than"):
        repository(server).manifest("tag")
    with pytest.raises(FetchError, match="has more than"):
        repository(server).blob(DIGEST)


def test_no_other_host_gets_the_password(serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch) -> None:
    """The requests to other hosts are caught before a connection is made."""
    sent = []
    real = HTTPAdapter.send

    def send(self: HTTPAdapter, request: object, **options: object) -> object:
        if "127.0.0.1" not in request.url:  # type: ignore[attr-defined]
            sent.append((request.url, request.headers.get("Authorization")))  # type: ignore[attr-defined]
            raise AssertionError("a request to another host")
        return real(self, request, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(HTTPAdapter, "send", send)
    for realm in (
        "http://evil.example/token",
        "https://evil.example/token",
        "https://127.0.0.1@evil.example/",
        "https://0.0.1/",
        "//evil.example",
        "https://[",
    ):

        def answer(server: Server, path: str, realm: str = realm) -> Answer:
            return 401, {"WWW-Authenticate": f'Bearer realm="{realm}",service="x"'}, b""

        server = serve(answer)
        with pytest.raises(FetchError, match="asks for a user and a password"):
            repository(server).manifest("tag")
        assert server.got == []
    assert sent == []


@pytest.mark.parametrize(
    ("host", "realm", "allowed"),
    [
        ("registry.example.org", "registry.example.org", True),
        ("registry.example.org:5000", "registry.example.org", True),
        ("registry.example.org", "auth.example.org", True),
        ("registry.example.org", "example.org", True),
        ("registry.example.org", "evilexample.org", False),
        ("registry.example.org", "example.org.evil.net", False),
        ("registry.example.org", "other.org", False),
        ("example.org", "evil.org", False),
        ("example.co.uk", "evil.co.uk", False),
        ("10.1.2.3", "10.9.2.3", False),
        ("10.1.2.3", "1.2.3", False),
        ("127.0.0.1:5000", "127.0.0.1:5001", True),
        ("127.0.0.1:5000", "auth.example.org", False),
    ],
)
def test_a_token_server_gets_the_password_of_its_own_domain_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str, realm: str, allowed: bool
) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    (tmp_path / "config.json").write_text(json.dumps({"auths": {host: {"auth": SECRET}}}))
    asked = []

    def exchange(self: object, method: str, url: str, authorization: str, most: int, **_: object) -> registry._Answer:
        asked.append((url, authorization))
        return registry._Answer(url, 200, {}, "", b'{"token": "t"}')

    monkeypatch.setattr(Repository, "_exchange", exchange)
    scheme = "http" if realm.startswith("127.") else "https"
    there = Repository(f"{host}/team", "spirv")
    if allowed:
        there._authorize(f'Bearer realm="{scheme}://{realm}/t"')
        assert asked == [(f"{scheme}://{realm}/t", f"Basic {SECRET}")]
        return
    with pytest.raises(FetchError) as raised:
        there._authorize(f'Bearer realm="{scheme}://{realm}/t"')
    assert asked == []
    assert raised.value.next == f"docker login {realm}, if you trust it with a password for {host}"
    # A password that the user gave for the token server is for it.
    (tmp_path / "config.json").write_text(json.dumps({"auths": {host: {"auth": SECRET}, realm: {"auth": "YTpi"}}}))
    there._authorize(f'Bearer realm="{scheme}://{realm}/t"')
    assert asked == [(f"{scheme}://{realm}/t", "Basic YTpi")]


def test_a_redirect_gets_no_credentials(serve: Callable[..., Server], tmp_path: Path) -> None:
    other = serve(lambda server, path: (200, {}, b"{}"), known=False)
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password secret\n")

    def answer(server: Server, path: str) -> Answer:
        if not server.got:
            return 401, {"WWW-Authenticate": 'Basic realm="x"'}, b""
        return 307, {"Location": f"http://{other.address}/blob"}, b""

    server = serve(answer)
    with pytest.raises(Exception, match="is damaged in the registry"):
        repository(server).blob(DIGEST)
    assert server.got == [f"Basic {SECRET}"]
    assert other.asked == ["/blob"]
    assert other.got == []


@pytest.mark.parametrize("place", ["http://upload.example/1", "http://registry.example/1"])
def test_nothing_is_sent_over_http_beyond_this_machine(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    there = Repository("registry.example/team", "spirv")
    there._authorization = f"Basic {SECRET}"
    monkeypatch.setattr(HTTPAdapter, "send", lambda *_, **__: pytest.fail("a request over HTTP"))
    with pytest.raises(FetchError, match=f"leads to {place}"):
        there._send("PUT", place, allowed=(201,), data=b"x")


def test_local_registry_is_asked_without_a_proxy(serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = serve(lambda server, path: (404, {}, b""), known=False)
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, f"http://{proxy.address}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    server = serve(lambda server, path: (404, {}, b""))
    assert repository(server).manifest("tag") is None
    assert proxy.asked == []
