"""Errors of an engine that does not do what was asked: the message names the fault and the command to type."""

from __future__ import annotations

import hashlib
import io
import json
import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from toolchains.engine import client, context
from toolchains.system.children import run
from toolchains.system.errors import EngineError, FileError, FoundryError

Answer = Callable[[bytes], bytes | None]


@contextmanager
def serving(listener: socket.socket, answer: Answer) -> Iterator[None]:
    """Run a server that answers each request with what `answer` returns; with None it does not answer."""
    listener.listen()
    kept = []

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                kept.append(connection)
                threading.Thread(target=talk, args=(connection,), daemon=True).start()

    def talk(connection: socket.socket) -> None:
        with suppress(OSError):
            while request := connection.recv(65536):
                said = answer(request)
                if said is not None:
                    connection.sendall(said)
                    if b"Content-Length" not in said:
                        connection.close()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for connection in kept:
            connection.close()


@contextmanager
def listening(place: Path, answer: Answer) -> Iterator[None]:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(place))
    with serving(listener, answer):
        yield


def http(status: str, body: str, kind: str = "application/json") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


VERSION = http("200 OK", '{"ApiVersion": "1.41", "Version": "20.10"}')
TOO_NEW = "client version 1.47 is too new. Maximum supported API version is 1.41"


def old(request: bytes) -> bytes:
    """Answer as an old engine: tell its version to a request without a version, and refuse the client's version."""
    return VERSION if request.startswith(b"GET /version") else http("400 Bad Request", f'{{"message": "{TOO_NEW}"}}')


@pytest.mark.parametrize(
    ("answer", "why", "next"),
    [
        (lambda _: None, "accepts connections and does not answer", "restart the engine"),
        (lambda _: b"", "closed the connection", "restart the engine"),
        (lambda _: b"SSH-2.0-OpenSSH_9.2\r\n", "is not a container engine", "correct DOCKER_HOST"),
        (lambda _: http("200 OK", "<html>It works!</html>", "text/html"), "is not a container engine", "DOCKER_HOST"),
        (lambda _: http("200 OK", '{"name": "search"}'), "is not a container engine", "correct DOCKER_HOST"),
        (lambda _: http("200 OK", "[]"), "is not a container engine", "correct DOCKER_HOST"),
        (old, TOO_NEW, "update the engine"),
        (lambda _: http("500 Internal Server Error", '{"message": "layer db is broken"}'), "layer db is broken", "log"),
    ],
    ids=["silent", "hangs up", "ssh", "web server", "other json", "a list", "another version", "refuses"],
)
def test_each_bad_answer_has_its_own_reason_and_advice(place: Path, answer: Answer, why: str, next: str) -> None:
    with listening(place, answer), pytest.raises(EngineError, match="no container engine answers") as raised:
        client.connect()
    assert why in raised.value.why
    assert str(place) in raised.value.why
    assert next in raised.value.next
    assert raised.value.exit_code == 30


def test_an_engine_that_is_busy_is_waited_for_and_said_to_be(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    requests: list[bytes] = []

    def busy_at_first(request: bytes) -> bytes | None:
        requests.append(request)
        return None if len(requests) == 1 else VERSION

    with listening(place, busy_at_first):
        assert client.connect().version() == "Engine 20.10"
    assert "the engine may be busy" in " ".join(capsys.readouterr().err.split())


def write_context(folder: Path, name: str, endpoint: dict[str, object]) -> Path:
    """Write a context as docker does; return the folder for its certificates, which there is not."""
    place = hashlib.sha256(name.encode()).hexdigest()
    meta = folder / "contexts" / "meta" / place / "meta.json"
    meta.parent.mkdir(parents=True)
    meta.write_text(json.dumps({"Name": name, "Metadata": {}, "Endpoints": {"docker": endpoint}}))
    return folder / "contexts" / "tls" / place / "docker"


def test_engine_of_dockers_context_is_used(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DOCKER_HOST")
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.delenv("DOCKER_CONTEXT", raising=False)
    assert context.current() is None
    (tmp_path / "config.json").write_text('{"currentContext": "rootless"}')
    with pytest.raises(EngineError, match="docker's context rootless cannot be used") as raised:
        client.connect()
    assert "docker context use default" in raised.value.next
    write_context(tmp_path, "rootless", {"Host": f"unix://{place}"})
    said = refused()
    assert f"there is no socket unix://{place} (docker's context rootless)" in said.why
    assert "docker context use default" in said.next
    with listening(place, lambda _: VERSION):
        assert client.connect().version() == "Engine 20.10"
    certificates = write_context(tmp_path, "far", {"Host": "tcp://far.invalid:2376", "SkipTLSVerify": False})
    certificates.mkdir(parents=True)
    monkeypatch.setenv("DOCKER_CONTEXT", "far")
    assert context.variables() == {
        "DOCKER_HOST": "tcp://far.invalid:2376",
        "DOCKER_CERT_PATH": str(certificates),
        "DOCKER_TLS_VERIFY": "1",
    }
    write_context(tmp_path, "unverified", {"Host": "tcp://far.invalid:2376", "SkipTLSVerify": True}).mkdir(parents=True)
    monkeypatch.setenv("DOCKER_CONTEXT", "unverified")
    assert context.variables()["DOCKER_TLS_VERIFY"] == ""
    # As for the program docker, DOCKER_HOST comes first, and "default" is the default socket.
    monkeypatch.setenv("DOCKER_CONTEXT", "default")
    assert context.current() is None
    monkeypatch.setenv("DOCKER_CONTEXT", "far")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{place}")
    assert context.current() is None


@pytest.mark.parametrize(
    ("config", "what", "why"),
    [
        ('{"currentContext": ', "docker's configuration cannot be read", "config.json: "),
        ('{"currentContext": "far"}', "docker's context far cannot be used", "meta.json names no host"),
    ],
)
def test_damaged_context_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: str, what: str, why: str
) -> None:
    for name in ("DOCKER_HOST", "DOCKER_CONTEXT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    (tmp_path / "config.json").write_text(config)
    write_context(tmp_path, "far", {})
    with pytest.raises(EngineError, match=what) as raised:
        context.current()
    assert why in raised.value.why and "docker context use default" in raised.value.next


def test_no_socket_and_one_that_nobody_listens_at_are_told_apart(place: Path) -> None:
    assert "there is no socket" in refused().why
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
    assert "connection refused" in refused().why
    assert "DOCKER_HOST" in refused().next


def test_a_socket_of_others_is_named_as_one(place: Path) -> None:
    with listening(place, lambda _: VERSION):
        place.parent.chmod(0o755)
        place.chmod(0o600)
        user = os.geteuid()
        if user == 0:
            os.seteuid(65534)
        else:
            place.chmod(0)
        try:
            error = refused()
        finally:
            os.seteuid(user)
    assert "permission denied" in error.why
    assert "usermod -aG docker" in error.next


@pytest.mark.parametrize("host", ["nonsense://x", "tcp://", "tcp://host.invalid:2375"])
def test_a_docker_host_that_leads_nowhere_is_named(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    monkeypatch.setenv("DOCKER_HOST", host)
    assert "DOCKER_HOST" in refused().next


def test_tls_that_the_other_side_does_not_speak_is_said(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{listener.getsockname()[1]}")
    monkeypatch.setenv("DOCKER_TLS_VERIFY", "1")
    with TemporaryDirectory() as folder:
        monkeypatch.setenv("DOCKER_CERT_PATH", folder)
        assert "DOCKER_CERT_PATH" in refused().next
        name = ssl.get_default_verify_paths().cafile or "/etc/ssl/certs/ca-certificates.crt"
        Path(folder, "ca.pem").write_bytes(Path(name).read_bytes())
        monkeypatch.setenv("DOCKER_TLS_VERIFY", "")
        monkeypatch.delenv("DOCKER_CERT_PATH")
        monkeypatch.setenv("DOCKER_HOST", f"https://127.0.0.1:{listener.getsockname()[1]}")
        with serving(listener, lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\nspeak TLS\n"):
            error = refused()
    assert "TLS" in error.why


def refused() -> EngineError:
    with pytest.raises(EngineError) as raised:
        client.connect()
    return raised.value


STEPS = b'{"stream": "Step 1/2 : RUN pip install"}\r\n{"stream": "Collecting numpy"}\r\n'


def dying(request: bytes) -> bytes:
    """Answer as an engine that dies during a build: its chunked answer is cut off."""
    if b"/build" not in request:
        return VERSION if b"/version" in request else http("200 OK", "{}")
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (len(STEPS), STEPS)


def stopping(request: bytes) -> bytes:
    """Answer as an engine that ends its answer correctly, but not the build."""
    answer = dying(request)
    return answer + b"0\r\n\r\n" if b"chunked" in answer else answer


def failed_build(place: Path, answer: Answer) -> FoundryError:
    """Return the error of a build by an engine that answers so."""
    with listening(place, answer):
        docker = client.connect()
        with pytest.raises(FoundryError) as raised, docker.build(io.BytesIO(bytes(1024)), arguments={}):
            pytest.fail("it was not built")
    return raised.value


@pytest.mark.parametrize("answer", [dying, stopping])
def test_an_engine_that_dies_during_a_build_is_not_blamed_on_what_was_built(place: Path, answer: Answer) -> None:
    error = failed_build(place, answer)
    assert isinstance(error, EngineError) and "the container engine stopped during a build" in error.what
    assert "the last that it printed: Collecting numpy" in error.why
    assert "docker-build.log" in error.why
    assert "restart the engine" in error.next


def test_a_full_disk_of_the_engine_is_said_to_be_full(place: Path) -> None:
    full = http("200 OK", '{"error": "write /var/lib/x: no space left on device"}\r\n')
    error = failed_build(place, lambda request: full if b"/build" in request else stopping(request))
    assert isinstance(error, FileError) and "building an image failed" in error.what
    assert "the container engine's disk is full" in error.why
    assert "./foundry prune" in error.next


@pytest.mark.parametrize("said", ["E: Write error - write (28: No space left on device)", "Disk quota exceeded"])
def test_a_child_that_found_the_disk_full_is_not_blamed_on_the_network(said: str) -> None:
    with pytest.raises(FoundryError) as raised:
        run(["sh", "-c", 'echo "$1" >&2; for i in 1 2 3; do echo more; done; exit 100', "sh", said], log="test-full")
    assert isinstance(raised.value, FileError)
    assert said in raised.value.why
    assert "GB free at" in raised.value.why
    assert "network" not in str(raised.value)
