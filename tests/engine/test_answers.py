"""What an engine answers is checked: whatever it says, the error is one for people, and names who said it."""

from __future__ import annotations

import io
import json
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from archive_files import packed
from scripted_engine import GOOD, ID, LISTED, UPGRADED, ScriptedEngine, chunked, frame, http, scripted

from toolchains.archives import docker_archive
from toolchains.engine import client, container
from toolchains.engine.client import Engine
from toolchains.engine.container import OWNER_LABEL
from toolchains.engine.sandbox import Sandbox
from toolchains.system import processes
from toolchains.system.errors import EngineError, FileError, FoundryError, LimitError


def build(engine: Engine) -> None:
    with engine.build(io.BytesIO(bytes(1024)), arguments={}) as built:
        assert built == "0123456789ab"


def contain(engine: Engine, folder: Path) -> None:
    (folder / "source").write_bytes(bytes(1 << 20))
    with engine.container("image", volumes={"v": "/v"}) as container:
        # An answer without a body is that of a command that prints nothing.
        assert container.call(["program"]) in ("out\n", "")
        container.copy_into(folder / "source", "/source")
        container.put(folder / "source", "/folder")
        container.copy_out("/folder/file", folder / "out")
        container.copy_out("/folder/file", folder / "fetched", only="file")
        assert not container.oom_killed()
    assert (folder / "out").read_text() == (folder / "fetched").read_text() == "content"


def sandbox(engine: Engine, folder: Path) -> None:
    with engine.sandbox("image") as sandbox:
        assert "processes" in str(sandbox.limits)
        sandbox.copy_out("/folder/file", folder / "out")
    assert (folder / "out").read_text() == "content"


# What Foundry asks an engine for. Each fails by an assertion if it takes a wrong answer for a right one.
ACTS: dict[str, Callable[[Engine, Path], object]] = {
    "version": lambda engine, _: engine.version(),
    "image": lambda engine, _: engine.image("a:b"),
    "tag": lambda engine, _: engine.tag(ID, "a:b"),
    "remove": lambda engine, _: engine.remove("a:b"),
    "load": lambda engine, _: engine.load(Path(__file__)),
    "save": lambda engine, _: engine.save("a:b", io.BytesIO()),
    "push": lambda engine, _: engine.push("localhost:5000/a:b"),
    "pull": lambda engine, _: engine.pull("localhost:5000/a:b"),
    "build": lambda engine, _: build(engine),
    "named": lambda engine, _: engine.named("a"),
    "remove_abandoned": lambda engine, _: engine.remove_abandoned(),
    "sweep": lambda engine, _: engine.sweep(),
    "volumes": lambda engine, _: engine.volumes(),
    "remove_volume": lambda engine, _: engine.remove_volume("v"),
    "container": contain,
    "sandbox": sandbox,
}
SHAPES = [
    "[]",
    "null",
    "5",
    '"x"',
    "{}",
    "[5]",
    "[{}]",
    '{"Id": 5}',
    '{"ExitCode": "0"}',
    '{"Volumes": 5}',
    "{",
    "[" * 99999,
]
HOSTILE: dict[str, bytes | None] = {
    "hangs up": None,
    "half an answer": b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{",
    "no HTTP": b"SSH-2.0\r\n",
    "no length": b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
    "a chunk that is cut off": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{",
    "no chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
    "other streams": UPGRADED + b"\xbf\0\0\0\0\0\0\x01x",
    "a frame that is cut off": UPGRADED + frame(1, b"out", 4),
    "a large frame that is cut off": UPGRADED + frame(1, b"out", (1 << 32) - 1),
    "half the header of a frame": UPGRADED + frame(1, b"out\n") + b"\1\0\0",
    "binary": http(b"\xff\xfe" * 9),
    "an empty answer": http(""),
    "damaged tar": http(b"x" * 10240),
    "half a tar": http(packed({"file": b"x" * 600})[:900]),
    **{
        f"{status}, {body}": http(body, status)
        for status in ("404 No", "409 No", "500 No")
        for body in ("[]", '{"message": 5}')
    },
    **{shape: http(shape) for shape in SHAPES},
    **{f"chunk {shape}": chunked(shape.encode()) for shape in (*SHAPES, '{"stream": 5}', '{"error": []}')},
}


# Requests of whose answer only the status is read: what they begin with.
UNREAD = ("attach_socket", "get_image", "put_archive", "remove_", "start", "stop", "tag")


@pytest.fixture
def engine(place: Path) -> Iterator[ScriptedEngine]:
    with scripted(place) as running:
        yield running


@pytest.mark.slow
@pytest.mark.parametrize("request_", GOOD)
def test_hostile_answer_gives_a_readable_error(
    request_: str, engine: ScriptedEngine, place: Path, tmp_path: Path
) -> None:
    docker = client.connect()
    refused = set()
    for act in ACTS.values():
        engine.answers, engine.requests = {}, []
        act(docker, tmp_path)
        if request_ not in engine.requests:
            continue
        for how, answer in HOSTILE.items():
            engine.answers = {request_: answer}
            try:
                act(docker, tmp_path)
            except FoundryError as error:
                assert str(place) in str(error) or "a damaged archive" in str(error), how
                refused.add(how)
    assert {"hangs up", "no HTTP", "500 No, []"} <= refused
    assert len(refused) > (7 if request_.startswith(UNREAD) else 35), "right answers may be among them"


@pytest.mark.parametrize("request_", ["version", "info"])
def test_hostile_answer_is_not_taken_for_an_engine(request_: str, engine: ScriptedEngine, place: Path) -> None:
    for how, answer in HOSTILE.items():
        engine.answers = {request_: answer}
        with suppress(EngineError):
            client.connect()
            # An engine may say nothing of itself.
            assert request_ == "info" and how.removeprefix("chunk ").startswith("{"), how


@pytest.mark.parametrize("request_", ["remove_container", "remove_image", "inspect_image"])
def test_hostile_answer_to_a_cleanup_does_not_hide_the_original_error(request_: str, engine: ScriptedEngine) -> None:
    docker = client.connect()
    for answer in HOSTILE.values():
        engine.answers = {request_: answer}
        with pytest.raises(ZeroDivisionError), docker.container("image"):
            raise ZeroDivisionError
        with pytest.raises(ZeroDivisionError), docker.build(io.BytesIO(bytes(1024)), arguments={}):
            raise ZeroDivisionError


def test_output_that_comes_with_the_header_of_the_answer_is_not_lost(engine: ScriptedEngine) -> None:
    with client.connect().container("image") as container:
        done = container.run(["program"])
        assert (done.status, done.stdout, done.stderr) == (0, "out\n", "err\n")
        output = b"".join(frame(1, b"%099d\n" % number) for number in range(5000))
        engine.answers = {"exec_start": UPGRADED + output}
        assert container.run(["program"]).stdout.splitlines() == [f"{number:099}" for number in range(5000)]


def test_endless_output_is_an_error_and_not_kept(engine: ScriptedEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "_KEPT", 1000)
    monkeypatch.setattr(container, "_LONGEST_LINE", 500)
    monkeypatch.setattr(Sandbox, "printable", 10_000)
    with client.connect().sandbox("image") as box:
        lines: list[str] = []
        engine.answers = {
            "exec_start": UPGRADED + b"".join(frame(1, b"%0100d" % number) for number in range(90)) + frame(1, b"\n9")
        }
        done = box.run(["program"], line=lines.append)
        assert len(done.stdout) <= 2000 and done.stdout.endswith("89\n9")
        assert max(map(len, lines)) <= 700 and sum(map(len, lines)) == 9001
        engine.answers = {"exec_start": UPGRADED + b"".join(frame(2, bytes(100)) for _ in range(101))}
        with pytest.raises(LimitError, match="was ended"):
            box.run(["program"])


def test_folders_that_an_engine_gives_to_the_container_s_user_are_prepared_by_that_user(
    engine: ScriptedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    users: list[str] = []
    execute = Sandbox._execute

    def as_podman(box: Sandbox, argv: Sequence[str], take: Callable[[int, bytes], None], **settings: str) -> int:
        if argv[0] != "chmod":
            return execute(box, argv, take, **settings)
        users.append(settings["user"])
        return int(settings["user"] == "0")

    monkeypatch.setattr(Sandbox, "_execute", as_podman)
    with client.connect().sandbox("image"):
        assert users == ["0", "1000"]


def test_a_label_that_names_no_process_is_left_alone(engine: ScriptedEngine) -> None:
    docker = client.connect()
    machine, _, start = processes.process_name().rsplit(" ", 2)
    for number in ("", "x", "9" * 5000):
        container = {"Id": ID, "Labels": {OWNER_LABEL: f"{machine} {number} {start}"}, "Created": 1}
        image = LISTED | {"Labels": {docker_archive.BUILD_LABEL: f"{machine} {number} {start}"}}
        engine.answers = {
            "containers": http(json.dumps([container])),
            "images": http(json.dumps([image | {"Created": int(time.time())}])),
        }
        engine.requests = []
        assert (docker.sweep(), docker.remove_abandoned()) == (0, 0)
        with pytest.raises(EngineError, match="the volume v is in use") as raised:
            docker.evict("v")
        assert f"docker rm -f {ID}" in raised.value.next
        assert not {"remove_container", "remove_image"} & {*engine.requests}


def test_container_from_before_a_boot_is_removed_after_a_day(engine: ScriptedEngine) -> None:
    docker = client.connect()
    container = {"Id": ID, "Labels": {OWNER_LABEL: f"{socket.gethostname()}/boot/1 12 34"}, "State": "exited"}
    for created, removed in ((1, 1), (int(time.time()) - 3600, 0)):
        engine.answers = {"containers": http(json.dumps([container | {"Created": created}]))}
        assert docker.sweep() == removed


def test_a_step_of_a_killed_build_that_another_process_removes_meanwhile_is_no_error(engine: ScriptedEngine) -> None:
    docker = client.connect()
    machine, _, start = processes.process_name().rsplit(" ", 2)
    killed = LISTED | {"Labels": {docker_archive.BUILD_LABEL: f"{machine} 999999999 {start}"}, "RepoTags": None}
    engine.answers = {
        "images": http(json.dumps([killed])),
        "remove_image": http('{"message": "unrecognized image ID sha256:335d"}', "500 Internal Server Error"),
    }
    assert docker.abandoned() == {LISTED["Id"]: LISTED["Size"]}
    assert docker.remove_abandoned() == 0, "it is still listed"
    engine.answers["remove_image"] = http('{"message": "the disk is broken"}', "500 Internal Server Error")
    with pytest.raises(EngineError, match="cannot remove the image"):
        docker.remove_abandoned()


def test_a_full_disk_of_this_machine_is_not_blamed_on_the_engine(engine: ScriptedEngine) -> None:
    with Path("/dev/full").open("wb") as full, pytest.raises(FileError) as raised:
        client.connect().save("a:b", full)
    assert "GB free at" in raised.value.why and "engine" not in raised.value.why
