"""Changes to the machine: none without permission; with permission, only what is missing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from toolchains.engine import client, host
from toolchains.fetch import apt_sources
from toolchains.system import children, paths
from toolchains.system.errors import EngineError, MissingToolError


class Machine:
    """A bare Debian machine: user root, nothing installed, no engine. Records what is done to it."""

    def __init__(self) -> None:
        self.programs: set[str] = {"apt-get", "dpkg-deb"}
        self.answers = False
        self.failure: Exception = FileNotFoundError("docker.sock")
        self.done: list[str] = []

    def which(self, name: str) -> str | None:
        return f"/usr/bin/{name}" if name in self.programs else None

    def run(self, argv: Sequence[str | Path], **_: Any) -> children.Completed:
        words = [str(word) for word in argv]
        if not words[-1].startswith("--version"):
            self.done.append(" ".join(words))
        if words[:2] == ["apt-get", "install"]:
            provided = {"binutils": "strip", "docker.io": "dockerd"}
            self.programs |= {provided.get(word, word) for word in words}
        return children.Completed(0, "version 1\n", "")

    def start(self, argv: Sequence[str | Path], **_: Any) -> Any:
        self.done.append(" ".join(str(word) for word in argv))
        self.answers = "dockerd" in self.programs

        return SimpleNamespace(poll=lambda: None)

    def connect(self) -> Any:
        if not self.answers:
            why = f"cannot connect to {os.environ.get('DOCKER_HOST', 'the socket')}"
            raise EngineError("no container engine answers", why=why) from self.failure

        return SimpleNamespace(version=lambda: "Engine 1")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    machine = Machine()
    monkeypatch.setattr(shutil, "which", machine.which)
    monkeypatch.setattr(children, "run", machine.run)
    monkeypatch.setattr(children, "start", machine.start)
    monkeypatch.setattr(client, "connect", machine.connect)
    monkeypatch.setattr(apt_sources, "archives", lambda: [object()])
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    release = tmp_path / "os-release"
    release.write_text('ID=debian\nVERSION_ID="12"\n')
    monkeypatch.setattr(host, "_RELEASE", release)
    monkeypatch.setattr(host, "_SYSTEMD", tmp_path / "absent")
    monkeypatch.setattr(host, "_PIDFILE", tmp_path / "docker.pid")
    for name in ("CI", "FOUNDRY_YES", "DOCKER_HOST", "DOCKER_CONTEXT"):
        monkeypatch.delenv(name, raising=False)
    return machine


@pytest.fixture
def permitted(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Return the machine, on which Foundry may install what is missing."""
    monkeypatch.setenv("CI", "true")
    return machine


TOOLS = {"mmdebstrap", "strip", "git"}
DOCKERD = "dockerd --bridge=none --iptables=false --ip-forward=false"


def test_without_permission_nothing_is_done_and_all_that_is_missing_is_named(machine: Machine) -> None:
    with pytest.raises(MissingToolError) as caught:
        host.ensure_engine()
    assert machine.done == []
    for words in ("apt-get install mmdebstrap", "apt-get install binutils", "apt-get install docker.io"):
        assert words in caught.value.why
    assert "./foundry --yes doctor" in caught.value.next


@pytest.mark.parametrize("permission", ["FOUNDRY_YES", "CI"])
def test_permission_installs_what_is_missing(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, permission: str
) -> None:
    monkeypatch.setenv(permission, {"FOUNDRY_YES": "1", "CI": "true"}[permission])
    host.ensure_engine()
    assert machine.done == [
        "apt-get update",
        "apt-get install -y --no-install-recommends mmdebstrap binutils git docker.io",
        DOCKERD,
    ]


def test_programs_of_one_check_are_installed_alone(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MissingToolError, match=r"this machine lacks strip, git\n.*binutils"):
        host.ensure_programs("git", "strip")
    assert machine.done == []
    monkeypatch.setenv("CI", "true")
    for _ in range(2):
        host.ensure_programs("git", "strip")
        assert machine.done == ["apt-get update", "apt-get install -y --no-install-recommends binutils git"]


def test_an_engine_that_is_installed_is_only_started(permitted: Machine) -> None:
    permitted.programs |= TOOLS | {"dockerd"}
    host.ensure_engine()
    assert permitted.done == [DOCKERD]


def test_a_machine_that_has_everything_is_left_alone(permitted: Machine) -> None:
    permitted.programs |= TOOLS
    permitted.answers = True
    host.ensure_engine()
    assert host.provide() == []
    assert permitted.done == []


def test_engine_is_asked_once_without_permission(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.answers, connect = True, Mock(wraps=machine.connect)
    monkeypatch.setattr(client, "connect", connect)
    assert host.ensure_engine().version() == "Engine 1"
    connect.assert_called_once()


def test_missing_build_tools_do_not_stop_ensure_engine(machine: Machine) -> None:
    machine.answers = True
    host.ensure_engine()
    with pytest.raises(MissingToolError, match="mmdebstrap, strip, git"):
        raise host.error(host.provide())


@pytest.mark.parametrize("why", ["not root", "not Debian"])
def test_permission_needs_root_on_debian(permitted: Machine, monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    if why == "not root":
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
    else:
        host._RELEASE.write_text("ID=fedora\n")
    with pytest.raises(MissingToolError) as caught:
        host.ensure_engine()
    assert permitted.done == []
    expected = "sudo apt-get install docker.io" if why == "not root" else "the equivalent of Debian's docker.io"
    assert expected in caught.value.why


def test_engine_of_the_user_is_not_replaced(permitted: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://build.example:2375")
    with pytest.raises(EngineError, match="no container engine answers") as caught:
        host.ensure_engine()
    assert "tcp://build.example:2375" in caught.value.why
    assert permitted.done == ["apt-get update", "apt-get install -y --no-install-recommends mmdebstrap binutils git"]


def test_an_engine_that_is_there_and_does_not_work_is_neither_replaced_nor_called_missing(permitted: Machine) -> None:
    permitted.programs |= TOOLS
    permitted.failure = TimeoutError()
    with pytest.raises(EngineError, match="no container engine answers"):
        host.ensure_engine()
    with pytest.raises(EngineError):
        raise host.error(host.provide())
    assert permitted.done == []


def test_an_installed_engine_that_is_not_started_is_an_engine_that_fails(machine: Machine) -> None:
    machine.programs.add("dockerd")
    with pytest.raises(EngineError) as caught:
        host.ensure_engine()
    assert caught.value.exit_code == 30
    assert caught.value.next.startswith("dockerd --bridge=none")
    assert "mmdebstrap is missing, too: apt-get install mmdebstrap" in caught.value.why


@pytest.mark.parametrize("pid", ["", "999999999", str(os.getpid())], ids=["empty", "of no process", "of another one"])
def test_the_pidfile_of_a_dockerd_that_is_gone_is_removed(permitted: Machine, pid: str) -> None:
    permitted.programs |= TOOLS | {"dockerd"}
    host._PIDFILE.write_text(pid)
    host.ensure_engine()
    assert not host._PIDFILE.exists()


def test_process_that_ends_meanwhile_is_gone(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    read = Path.read_text

    def ending(path: Path, *words: Any, **options: Any) -> str:
        if path.name == "comm":
            raise ProcessLookupError
        return read(path, *words, **options)

    monkeypatch.setattr(Path, "read_text", ending)
    host._PIDFILE.write_text(str(os.getpid()))
    host._remove_stale_pidfile()
    assert not host._PIDFILE.exists()


def test_the_pidfile_of_a_dockerd_that_runs_stays(permitted: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    permitted.programs |= TOOLS | {"dockerd"}
    # The process that runs this test plays the daemon.
    monkeypatch.setattr(host, "_DOCKERD", (Path("/proc/self/comm").read_text().strip(), "--bridge=none"))
    permitted.programs.add(host._DOCKERD[0])
    host._PIDFILE.write_text(str(os.getpid()))
    host.ensure_engine()
    assert host._PIDFILE.exists()


def test_dockerd_that_ends_is_an_error(permitted: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    permitted.programs |= TOOLS | {"dockerd"}
    monkeypatch.setattr(paths, "LOGS", tmp_path)

    class Ended:
        @staticmethod
        def poll() -> int:
            return 1

    def start(*_: Any, **__: Any) -> Ended:
        (tmp_path / "dockerd.log").write_text("failed to mount overlay: operation not permitted\n")
        return Ended()

    monkeypatch.setattr(children, "start", start)
    with pytest.raises(EngineError, match="does not answer") as caught:
        host.ensure_engine()
    assert "failed to mount overlay" in caught.value.why
