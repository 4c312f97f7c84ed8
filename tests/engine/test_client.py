"""The engine: containers are removed, builds leave nothing behind, and errors say what to do."""

from __future__ import annotations

import hashlib
import io
import os
import pty
import select
import signal
import subprocess
import sys
import tarfile
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3.exceptions

from toolchains.archives import docker_archive, folders
from toolchains.engine import client, image_build
from toolchains.engine.client import Engine
from toolchains.engine.container import Container
from toolchains.engine.sandbox import Limits, Sandbox
from toolchains.fetch.store import Store
from toolchains.images import layer
from toolchains.system import processes, steps
from toolchains.system.errors import CommandError, EngineError, LimitError, UnsafeArchiveError
from toolchains.system.paths import ROOT


@pytest.fixture
def container(docker: Engine, tiny: str) -> Iterator[Container]:
    with docker.container(tiny) as running:
        yield running


@pytest.mark.docker
def test_a_command_gives_its_status_and_streams_and_a_call_that_fails_the_end_of_them(container: Container) -> None:
    lines: list[str] = []
    done = container.run(["sh", "-c", "echo out; echo err >&2; printf rest; exit 3"], line=lines.append)
    assert (done.status, done.stdout, done.stderr) == (3, "out\nrest", "err\n")
    assert sorted(lines) == ["err", "out", "rest"]
    with pytest.raises(CommandError, match="exit status 7") as raised:
        container.call(["sh", "-c", "echo the reason >&2; exit 7"])
    assert "the reason" in raised.value.why
    assert container.run(["/no/such/program"]).status in (126, 127)


@pytest.mark.docker
def test_a_command_sees_the_image_s_environment_the_one_given_and_no_network(container: Container) -> None:
    shown = container.call(["sh", "-c", "echo $GREETING $NAME; pwd"], env={"NAME": "you"}, cwd="/bin")
    assert shown == "hello you\n/bin\n"
    assert container.call(["ls", "/sys/class/net"]) == "lo\n"


@pytest.mark.docker
@pytest.mark.parametrize(("processes", "status", "said"), [(8, 2, "Cannot fork"), (64, 0, "")])
def test_limit_on_processes_is_exact(docker: Engine, tiny: str, processes: int, status: int, said: str) -> None:
    with docker.container(tiny, processes=processes) as container:
        done = container.run(["sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do sleep 0.5 & done; wait"])
    assert (done.status, done.stderr.strip().rpartition(": ")[2]) == (status, said)


@pytest.mark.docker
def test_files_copied_into_a_container_come_back_unchanged(container: Container, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "deep").mkdir(parents=True)
    (source / "deep/file").write_text("content")
    (source / "program").write_text("#!/bin/sh\necho ran\n")
    (source / "program").chmod(0o700)
    container.copy_into(source, "/foundry/e2e")
    assert container.call(["/foundry/e2e/program"]) == "ran\n"
    container.copy_out("/foundry/e2e", tmp_path / "back")
    assert folders.files_digest(folders.files(tmp_path / "back" / "deep")) == folders.files_digest(
        folders.files(source / "deep")
    )
    container.copy_out("/foundry/e2e/deep/file", tmp_path / "alone")
    assert (tmp_path / "alone").read_text() == "content"


@pytest.mark.docker
def test_copying_a_file_leaves_its_folder_s_mode_alone(container: Container, tmp_path: Path) -> None:
    container.call(["sh", "-c", "mkdir /open && chmod 1777 /open"])
    (tmp_path / "file").write_text("content")
    container.copy_into(tmp_path / "file", "/open/file")
    assert container.call(["ls", "-ld", "/open"]).startswith("drwxrwxrwt")
    with pytest.raises(EngineError, match="cannot copy /nothing"):
        container.copy_out("/nothing", tmp_path / "x")


@pytest.fixture
def volume(docker: Engine) -> Iterator[str]:
    name = f"foundry-test-{uuid.uuid4().hex}"
    yield name
    docker.evict(name)
    docker.remove_volume(name)


@pytest.mark.docker
def test_a_volume_outlives_its_container_and_is_listed_and_removed(docker: Engine, tiny: str, volume: str) -> None:
    with docker.container(tiny, volumes={volume: "/foundry/work"}) as first:
        first.call(["sh", "-c", "echo kept > /foundry/work/file"])
        with pytest.raises(EngineError, match=f"cannot remove the volume {volume}"):
            docker.remove_volume(volume)
    with docker.container(tiny, volumes={volume: "/elsewhere"}) as second:
        assert second.call(["cat", "/elsewhere/file"]) == "kept\n"
    assert docker.volumes(volume) == docker.volumes(volume[:-1]) == (volume,)
    docker.remove_volume(volume)
    assert docker.volumes(volume) == ()
    docker.remove_volume(volume)


@pytest.mark.docker
def test_an_interrupted_command_is_ended_and_its_volume_stays(docker: Engine, tiny: str, volume: str) -> None:
    def interrupt(line: str) -> None:
        if line == "at work":
            raise KeyboardInterrupt

    # The loop's output shows whether the loop still runs.
    loop = "echo at work; while :; do echo more >> /foundry/work/file; sleep 0.05; done"
    with pytest.raises(KeyboardInterrupt), docker.container(tiny, volumes={volume: "/foundry/work"}) as container:
        container.run(["sh", "-c", loop], line=interrupt)
    with docker.container(tiny, volumes={volume: "/foundry/work"}) as container:
        before = container.call(["cat", "/foundry/work/file"])
        container.call(["sleep", "0.5"])
        assert container.call(["cat", "/foundry/work/file"]) == before


ORPHAN = """
import os, signal, sys
from toolchains.engine import client
with client.connect().container(sys.argv[1], volumes={sys.argv[2]: "/foundry/work"}) as container:
    container.run(["sh", "-c", "echo at work; sleep 1000"], line=lambda _: os.kill(os.getpid(), signal.SIGKILL))
"""


@pytest.mark.docker
def test_a_container_ends_with_its_owner_and_another_s_goes_on(docker: Engine, tiny: str, volume: str) -> None:
    with docker.container(tiny) as other:
        child = subprocess.run([sys.executable, "-c", ORPHAN, tiny, volume], cwd=ROOT, timeout=60, check=False)
        assert child.returncode == -signal.SIGKILL
        # The limit is generous. Without the fix, the container slept for a day.
        end = time.monotonic() + 120
        while docker._api.containers(all=True, filters={"volume": volume}) and time.monotonic() < end:
            time.sleep(0.1)
        assert docker._api.containers(all=True, filters={"volume": volume}) == []
        assert other.call(["echo", "untouched"]) == "untouched\n"
    docker.remove_volume(volume)
    assert docker.volumes(volume) == ()


ORPHANED_SANDBOX = """
import os, signal, sys
from toolchains.engine import client
with client.connect().sandbox(sys.argv[1]) as sandbox:
    print(sandbox.id, flush=True)
    sandbox.run(["sh", "-c", "echo at work; sleep 1000"], line=lambda _: os.kill(os.getpid(), signal.SIGKILL))
"""


@pytest.mark.docker
def test_a_sandbox_whose_owner_was_killed_is_removed_by_the_next_command(docker: Engine, tiny: str) -> None:
    command = [sys.executable, "-c", ORPHANED_SANDBOX, tiny]
    child = subprocess.run(command, cwd=ROOT, timeout=60, check=False, stdout=subprocess.PIPE, text=True)
    assert child.returncode == -signal.SIGKILL
    found = docker._api.inspect_container(child.stdout.strip())
    (volume,) = (mount["Name"] for mount in found["Mounts"] if mount["Type"] == "volume")
    end = time.monotonic() + 120
    # Until the engine has ended it.
    while docker.sweep() == 0 and time.monotonic() < end:
        time.sleep(0.1)
    assert child.stdout.strip() not in [each["Id"] for each in docker._api.containers(all=True)]
    assert volume not in [each["Name"] for each in docker._api.volumes()["Volumes"] or ()]


@pytest.mark.docker
def test_files_of_a_sandbox_are_read_when_its_processes_are_gone(docker: Engine, tiny: str, tmp_path: Path) -> None:
    loop = "trap '' TERM HUP; while :; do echo more >> /foundry/home/file; done"
    with docker.sandbox(tiny) as sandbox:
        begun = "until [ -s /foundry/home/file ]; do :; done"
        sandbox.call(["sh", "-c", f'sh -c "{loop}" >/dev/null 2>&1 </dev/null & {begun}'])
        sandbox.copy_out("/foundry/home/file", tmp_path / "first")
        assert not docker._api.inspect_container(sandbox.id)["State"]["Running"]
        sandbox.copy_out("/foundry/home/file", tmp_path / "second")
        assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes() != b""
        with pytest.raises(EngineError, match="cannot run echo"):
            sandbox.run(["echo"])


STILLBORN = """
import os, signal, sys
from toolchains.engine import client
made = client.connect()
made._api.start = lambda _: os.kill(os.getpid(), signal.SIGKILL)
with made.container(sys.argv[1], volumes={sys.argv[2]: "/foundry/work"}):
    pass
"""


@pytest.mark.docker
def test_container_never_started_is_removed(
    docker: Engine, tiny: str, volume: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = subprocess.run([sys.executable, "-c", STILLBORN, tiny, volume], cwd=ROOT, timeout=60, check=False)
    assert child.returncode == -signal.SIGKILL
    docker.sweep()
    left = docker._api.containers(all=True, filters={"volume": volume})
    assert [each["State"] for each in left] == ["created"], "another process may be about to start it"
    monkeypatch.setattr(client, "_STILLBORN", -60)
    assert docker.sweep() >= 1
    assert docker._api.containers(all=True, filters={"volume": volume}) == []


@pytest.fixture(scope="module")
def sandbox(docker: Engine, tiny: str) -> Iterator[Sandbox]:
    with docker.sandbox(tiny, folders=["/mnt/data"]) as running:
        yield running


@pytest.mark.docker
def test_a_sandbox_has_no_rights_and_cannot_get_any(sandbox: Sandbox) -> None:
    status = dict(line.split(":", 1) for line in sandbox.call(["cat", "/proc/self/status"]).splitlines())
    assert {int(number) for name in ("Uid", "Gid") for number in status[name].split()} == {1000}
    assert {int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
    assert int(status["NoNewPrivs"]) == 1
    # This holds for the first process and for those that are started later.
    assert "Uid:\t1000" in sandbox.call(["cat", "/proc/1/status"])
    assert sandbox.call(["ls", "/sys/class/net"]) == "lo\n"


@pytest.mark.docker
def test_a_sandbox_is_read_only_but_for_its_folders(sandbox: Sandbox) -> None:
    def written(folder: str) -> bool:
        return sandbox.run(["sh", "-c", f"echo x > {folder}/file"]).status == 0

    places = ("/", "/bin", "/mnt", "/foundry", "/mnt/data", "/tmp", "/dev/shm", "/foundry/home")
    assert [place for place in places if written(place)] == list(places[3:])
    assert sandbox.call(["sh", "-c", "cd; pwd; echo $USER"]) == "/foundry/home\nfoundry\n"
    # A driver's cache is in /tmp, and libraries are loaded from it.
    sandbox.call(["sh", "-c", "echo '#!/bin/sh' > /tmp/program; chmod +x /tmp/program; /tmp/program"])


@pytest.mark.docker
def test_files_copied_into_a_sandbox_belong_to_its_user(docker: Engine, tiny: str, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "deep").mkdir(parents=True)
    (source / "deep/file").write_text("content")
    (source / "deep/file").chmod(0o600)
    places = ("/foundry/a/b", "/mnt/data/c")
    with docker.sandbox(tiny, folders=["/mnt/data"]) as sandbox:
        with pytest.raises(EngineError, match="cannot write /etc/file"):
            sandbox.copy_into(source / "deep/file", "/etc/file")
        for place in places:
            sandbox.copy_into(source, place)
            change = f"cd {place}/deep; cat file; echo more >> file; rm file; echo new > file; mkdir x"
            sandbox.call(["sh", "-c", change])
        for place in places:
            sandbox.copy_out(place, tmp_path / "back")
            assert (tmp_path / "back/deep/file").read_text() == "new\n"
            (tmp_path / "back/deep/file").unlink()


@pytest.mark.docker
def test_a_sandbox_leaves_no_volume(docker: Engine, tiny: str) -> None:
    with docker.sandbox(tiny) as sandbox:
        mounts = docker._api.inspect_container(sandbox.id)["Mounts"]
        (volume,) = (mount["Name"] for mount in mounts if mount["Type"] == "volume")
    assert volume not in [each["Name"] for each in docker._api.volumes()["Volumes"] or ()]


@pytest.mark.docker
def test_a_sandbox_has_limits_and_says_so(docker: Engine, sandbox: Sandbox) -> None:
    info, settings = docker._api.info(), docker._api.inspect_container(sandbox.id)["HostConfig"]
    assert 0 < settings["Memory"] == settings["MemorySwap"] < info["MemTotal"]
    assert settings["PidsLimit"] == sandbox.limits.processes
    assert f"{settings['Memory'] / 1e9:.1f} GB of memory, {settings['PidsLimit']} processes" in str(sandbox.limits)


def test_limits_name_what_the_engine_cannot_limit() -> None:
    limits = Limits.of({"MemTotal": 8 << 30, "MemoryLimit": False, "NCPU": 2}, None)
    assert str(limits) == "memory without a limit, processes without a limit"


@pytest.mark.docker
def test_command_ends_at_the_time_limit_and_its_last_words_are_shown(docker: Engine, tiny: str) -> None:
    lines: list[str] = []
    with pytest.raises(LimitError, match="in a container of") as raised, docker.sandbox(tiny, seconds=5) as sandbox:
        sandbox.run(["sh", "-c", "printf begun; while :; do :; done"], line=lines.append)
    assert raised.value.why == "it reached its time limit of 5 s"
    assert lines == ["begun"]


@pytest.mark.docker
def test_evict_refuses_a_volume_that_a_live_process_uses(docker: Engine, tiny: str, volume: str) -> None:
    with docker.container(tiny, volumes={volume: "/foundry/work"}) as container:
        with pytest.raises(EngineError, match=f"the volume {volume} is in use") as raised:
            docker.evict(volume)
        assert f"for process {os.getpid()} on " in raised.value.why
        assert container.call(["echo", "untouched"]) == "untouched\n"


@pytest.mark.docker
def test_large_files_go_in_and_out_without_being_held_in_memory(docker: Engine, tiny: str, tmp_path: Path) -> None:
    size = 192 << 20
    with tarfile.open(tmp_path / "large.tar", "w") as tar, Path("/dev/urandom").open("rb") as random:
        entry = tarfile.TarInfo("folder/large")
        entry.size = size
        tar.addfile(entry, random)
    code = "\n".join(
        (
            "import resource, sys",
            "from pathlib import Path",
            "from toolchains.engine import client",
            "folder = Path(sys.argv[2])",
            "with client.connect().container(sys.argv[1]) as container:",
            "    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss",
            "    container.put(folder / 'large.tar', '/a/b')",
            "    container.copy_out('/a/b/folder/large', folder / 'back', only='file')",
            "    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10)",
        )
    )
    grown = subprocess.check_output([sys.executable, "-c", code, tiny, tmp_path], cwd=ROOT, text=True, timeout=300)
    assert int(grown) < size // 4
    with tarfile.open(tmp_path / "large.tar") as tar, (tmp_path / "back").open("rb") as back:
        sent = tar.extractfile("folder/large")
        assert isinstance(sent, io.BufferedReader)
        assert hashlib.file_digest(back, "sha256").digest() == hashlib.file_digest(sent, "sha256").digest()


@pytest.mark.docker
@pytest.mark.parametrize("source", ["/nothing", "/bin", "/foundry-link"])
def test_copying_out_a_special_file_is_an_error(container: Container, tmp_path: Path, source: str) -> None:
    container.call(["ln", "-s", "/bin/sh", "/foundry-link"])
    with pytest.raises(EngineError, match=f"cannot copy {source}"):
        container.copy_out(source, tmp_path / "file", only="file")
    assert not (tmp_path / "file").exists()


@pytest.mark.docker
def test_a_process_that_dies_of_the_memory_limit_is_told_from_one_that_fails(docker: Engine, tiny: str) -> None:
    with docker.container(tiny, memory="32m") as container:
        assert container.run(["sh", "-c", "exit 137"]).status == 137
        assert not container.oom_killed()
        # A shell variable whose size doubles until the limit ends the shell.
        done = container.run(["sh", "-c", "(x=0123456789; while :; do x=$x$x; done); echo went on with $?"])
        assert done.stdout == "went on with 137\n"
        assert container.oom_killed()


def test_an_entry_that_would_land_outside_is_refused(tmp_path: Path) -> None:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("results/../../outside"))

    class Api:
        def get_archive(self, id: str, path: str) -> tuple[list[bytes], None]:
            return [data.getvalue()], None

    with pytest.raises(UnsafeArchiveError, match=r"\.\./outside"):
        Container(Api(), "image", {}).copy_out("/results", tmp_path / "in")
    assert not (tmp_path / "outside").exists()


@pytest.mark.docker
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_container_is_gone_whatever_ended_its_use(docker: Engine, tiny: str, error: type[BaseException]) -> None:
    with pytest.raises(error), docker.container(tiny) as container:
        container.call(["sh", "-c", "sleep 1000 &"])
        raise error
    with pytest.raises(EngineError, match="cannot run ls in a container of"):
        container.run(["ls"])


def context(dockerfile: str | bytes) -> io.BytesIO:
    data = io.BytesIO()
    folders.write_tar(data, {"Dockerfile": dockerfile if isinstance(dockerfile, bytes) else dockerfile.encode()})
    data.seek(0)
    return data


def step_images(lines: list[str]) -> list[str]:
    """Return the images of a build's steps, from what it printed."""
    return [line.removeprefix(" ---> ") for line in lines if line.startswith(" ---> ") and "Running" not in line]


@pytest.mark.docker
def test_a_build_exists_inside_its_with_statement_only(docker: Engine, tiny: str) -> None:
    lines: list[str] = []
    dockerfile = f"FROM {tiny} AS first\nRUN echo 1 > /one\nFROM {tiny}\nCOPY --from=first /one /two\n"
    with docker.build(context(dockerfile), arguments={}, labels={"org.test": "1"}, line=lines.append) as built:
        info = docker.image(built)
        assert info is not None
        assert info.labels == {"org.test": "1"}
    steps = {line.removeprefix(" ---> ") for line in lines if line.startswith(" ---> ")} - {"Using cache"}
    left = {id for id in steps if "Running" not in id and docker.image(id)}
    base = docker.image(tiny)
    assert base is not None
    assert len(steps) > 3
    assert {base.id.startswith(f"sha256:{id}") for id in left} == {True}


@pytest.mark.docker
def test_a_failed_build_shows_the_step_that_failed_and_leaves_nothing(docker: Engine, tiny: str) -> None:
    lines: list[str] = []
    dockerfile = f"FROM {tiny}\nRUN echo 1 > /one\nRUN echo the reason && false\n"
    with (
        pytest.raises(EngineError, match="building an image failed") as raised,
        docker.build(context(dockerfile), arguments={}, line=lines.append),
    ):
        pass
    assert "the reason" in raised.value.why
    assert [docker.image(id) is None for id in step_images(lines)] == [False, True]


@pytest.mark.docker
def test_an_interrupted_build_leaves_nothing(docker: Engine, tiny: str) -> None:
    lines: list[str] = []

    def interrupt(line: str) -> None:
        lines.append(line)
        if line == "at work":
            raise KeyboardInterrupt

    dockerfile = f"FROM {tiny}\nRUN echo 1 > /one\nRUN echo at work && sleep 1000\n"
    with pytest.raises(KeyboardInterrupt), docker.build(context(dockerfile), arguments={}, line=interrupt):
        pass
    assert [docker.image(id) is None for id in step_images(lines)] == [False, True]


# In a process that builds the Dockerfile of its first argument: its context.
CONTEXT = """
import io, os, signal, sys
from toolchains.archives import folders
from toolchains.engine import client, image_build
from toolchains.system import processes, steps
data = io.BytesIO()
folders.write_tar(data, {"Dockerfile": image_build.labelled(sys.argv[1].encode())})
data.seek(0)
"""
INTERRUPTED = """
seen = []
def interrupt(line):
    seen.append(line)
    if "Step 4/4" in " ".join(seen) and line.startswith(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGINT)
def build():
    with client.connect().build(data, arguments={}, line=interrupt):
        pass
print(processes.process_name(), flush=True)
build() if sys.argv[3] == "main" else steps.side_by_side(build, lambda: None)
"""


@pytest.mark.docker
@pytest.mark.parametrize("thread", ["main", "other"])
@pytest.mark.parametrize("point", ["Step 4/4", "at work", "Removing intermediate container", "Successfully built"])
def test_interruption_ends_the_step_and_leaves_no_image(docker: Engine, tiny: str, point: str, thread: str) -> None:
    step = "sleep 600" if point == "at work" else "echo 2 > /two"
    # With the label, the step is the fourth one.
    dockerfile = f"FROM {tiny}\nRUN echo 1 > /one\nRUN echo at work && {step}\n"
    child = subprocess.run(
        [sys.executable, "-c", CONTEXT + INTERRUPTED, dockerfile, point, thread],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert child.returncode == -signal.SIGINT, child.stderr
    assert child.stderr.splitlines()[-1] == "KeyboardInterrupt"
    mine = {"label": f"{docker_archive.BUILD_LABEL}={child.stdout.strip()}"}
    assert docker._api.images(all=True, filters=mine) == docker._api.containers(all=True, filters=mine) == []


@pytest.mark.docker
def test_interrupted_cleanup_leaves_nothing(docker: Engine, tiny: str, monkeypatch: pytest.MonkeyPatch) -> None:
    remove, interrupted = docker._api.remove_image, list[str]()

    def interrupt(id: str) -> None:
        if not interrupted:
            interrupted.append(id)
            raise KeyboardInterrupt
        remove(id)

    monkeypatch.setattr(docker._api, "remove_image", interrupt, raising=False)
    with (
        pytest.raises(KeyboardInterrupt),
        docker.build(context(f"FROM {tiny}\nRUN echo {uuid.uuid4()} > /one\n"), arguments={}) as built,
    ):
        pass
    assert interrupted and docker.image(built) is None


@pytest.mark.docker
def test_a_command_in_a_container_ends_when_another_thread_fails(docker: Engine, tiny: str) -> None:
    started = threading.Event()

    def work() -> None:
        with docker.container(tiny) as container:
            container.run(["sh", "-c", "echo started; sleep 600"], line=lambda _: started.set())

    def fail() -> None:
        assert started.wait(60)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        steps.side_by_side(work, fail)


KILLED = """
connected = client.connect()
def die(line):
    print(line, flush=True)
    if line.startswith(" ---> ") and "Running" not in line:
        assert connected.image(line.removeprefix(" ---> "))
    if line == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)
with connected.build(data, arguments={}, line=die):
    die("built")
"""


@pytest.mark.docker
@pytest.mark.parametrize("point", ["at work", "built"])
def test_images_of_a_killed_build_are_removed_children_first(docker: Engine, tiny: str, point: str) -> None:
    dockerfile = f"FROM {tiny} AS first\nRUN echo 1 > /one\nFROM {tiny}\nCOPY --from=first /one /two\n"
    dockerfile += "RUN echo at work && sleep 1000\n" if point == "at work" else ""
    child = subprocess.run(
        [sys.executable, "-c", CONTEXT + KILLED, dockerfile, point],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        timeout=100,
    )
    assert child.returncode == -signal.SIGKILL
    printed = child.stdout.splitlines()
    steps = set(step_images(printed))
    assert len(steps) > 4
    with docker.build(
        context(image_build.labelled(f"FROM {tiny}\nRUN echo 3 > /three".encode())), arguments={}
    ) as mine:
        # Any other process that uses this engine may have removed it already.
        docker.remove_abandoned()
        assert docker.image(mine)
    tiny_info = docker.image(tiny)
    assert tiny_info is not None
    assert [id for id in steps if docker.image(id)] == [id for id in steps if tiny_info.id.startswith(f"sha256:{id}")]
    assert docker.abandoned() == {}
    assert docker._api.containers(all=True, filters={"ancestor": tiny, "label": docker_archive.BUILD_LABEL}) == []


@pytest.mark.docker
def test_image_does_not_name_its_builder(
    docker: Engine, tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    below, found = docker.image(tiny), []
    assert below is not None
    for process in ("one 1 1", "other 2 2"):
        monkeypatch.setattr(processes, "process_name", lambda process=process: process)
        name = f"foundry-test/labelled:{uuid.uuid4().hex[:8]}"
        dockerfile = f"FROM {tiny}\nRUN echo 1 > /one\n".encode()
        found.append(layer.layer(docker, name, dockerfile, {}, {"a": "b"}, [], (), store=Store(tmp_path)))
        history = docker._api.history(name)
        docker.remove(name)
        assert not [step for step in history if docker_archive.BUILD_LABEL in step["CreatedBy"]]
    assert found[0].id == found[1].id
    assert found[0].labels == {"a": "b"}


@pytest.mark.docker
def test_a_build_has_no_network(docker: Engine, tiny: str) -> None:
    lines: list[str] = []
    dockerfile = f"FROM {tiny}\nRUN ls /sys/class/net\n"
    with docker.build(context(dockerfile), arguments={}, line=lines.append):
        pass
    assert [line for line in lines if line in ("lo", "eth0") or line.startswith("eth")] == ["lo"]


SHELL = """
import sys
from toolchains.engine import client
with client.connect().container(sys.argv[1]) as container:
    sys.exit(container.interactive(["sh"], cwd="/bin"))
"""


@pytest.mark.docker
def test_a_terminal_is_joined_to_a_shell(tiny: str) -> None:
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", SHELL, tiny], cwd=ROOT, stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True
    )
    os.close(theirs)
    try:
        os.write(ours, b"echo $((6*7)) in $(pwd)\nexit 5\n")
        shown = read_until(ours, b"42 in /bin", seconds=60)
        assert b"42 in /bin" in shown
        assert child.wait(60) == 5
    finally:
        child.kill()
        os.close(ours)


@pytest.mark.docker
def test_a_shell_without_a_terminal_runs_what_is_piped_into_it(tiny: str) -> None:
    command = [sys.executable, "-c", SHELL, tiny]
    piped = subprocess.run(
        command,
        cwd=ROOT,
        input="echo $((6*7)) in $(pwd)\necho wrong >&2\nexit 5\n",
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (piped.returncode, piped.stdout, piped.stderr) == (5, "42 in /bin\n", "wrong\n")
    nothing = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert (nothing.returncode, nothing.stdout, nothing.stderr) == (0, "", "")


class Broken:
    """An engine that creates containers, and whose requests fail from a given one on."""

    def __init__(self, request: str, failure: BaseException) -> None:
        self.calls: list[str] = []
        self._request = request
        self._failure = failure
        self._gone = False

    def __getattr__(self, request: str) -> Any:
        def answer(*_: object, **__: object) -> Any:
            self.calls.append(request)
            self._gone |= request == self._request
            if self._gone and (request == self._request or isinstance(self._failure, OSError)):
                raise self._failure
            return {"Id": "1" * 64}

        return answer


@pytest.mark.parametrize("request_", ["create_container", "start"])
def test_a_container_whose_start_is_interrupted_is_removed(request_: str) -> None:
    api = Broken(request_, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt), Container(api, "image", {}):
        pytest.fail("it did not start")
    assert api.calls[-2:] == [request_, "remove_container"]


def test_an_engine_that_vanishes_does_not_hide_what_went_wrong_before() -> None:
    gone = ConnectionError("nobody there")
    with (
        pytest.raises(EngineError, match="cannot start a container of image"),
        Container(Broken("start", gone), "image", {}),
    ):
        pytest.fail("it did not start")
    with pytest.raises(ValueError, match="the first"), Container(Broken("remove_container", gone), "image", {}):
        raise ValueError("the first")
    with pytest.raises(EngineError, match="cannot remove"), Container(Broken("remove_container", gone), "image", {}):
        pass


def test_a_build_whose_engine_vanishes_fails_as_a_build() -> None:
    class Api(Broken):
        def build(self, **_: object) -> Iterator[dict[str, str]]:
            yield {"stream": " ---> 0123456789ab\n"}
            yield {"stream": " ---> Running in 0123456789ab\n"}
            raise self._failure

    api = Api("inspect_image", urllib3.exceptions.ProtocolError("nobody there"))
    with pytest.raises(EngineError, match="stopped during a build"), Engine(api).build(io.BytesIO(), arguments={}):
        pytest.fail("it was not built")
    assert "inspect_image" in api.calls


def read_until(terminal: int, wanted: bytes, seconds: float) -> bytes:
    shown, end = b"", time.monotonic() + seconds
    while wanted not in shown and time.monotonic() < end:
        if select.select([terminal], [], [], 1)[0]:
            shown += os.read(terminal, 4096)
    return shown
