"""The name of a process: the process counts as dead only when that is certain."""

from __future__ import annotations

import subprocess
import sys

import pytest

from toolchains.system import processes
from toolchains.system.paths import ROOT


def test_a_process_lives_until_it_ends_even_if_nobody_waits_for_it() -> None:
    assert not processes.is_dead(processes.process_name())
    code = "from toolchains.system import processes; print(processes.process_name(), flush=True); input()"
    child = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdin is not None and child.stdout is not None
    name = child.stdout.readline().strip()
    assert not processes.is_dead(name)
    child.stdin.close()
    assert child.stdout.read() == ""
    child.wait()
    assert processes.is_dead(name)


def test_a_process_that_has_the_number_of_a_dead_one_is_another() -> None:
    machine, number, start = processes.process_name().split()
    assert processes.is_dead(f"{machine} {number} {int(start) - 1}")


def test_hidden_process_of_another_user_is_not_known_to_be_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    name = processes.process_name()

    def refuse(number: int, signal: int) -> None:
        raise PermissionError

    monkeypatch.setattr("os.kill", refuse)
    monkeypatch.setattr(processes, "_start", lambda number: "")
    assert not processes.is_dead(name)


@pytest.mark.parametrize("change", ["another", "host/boot"])
def test_a_process_of_another_machine_or_boot_is_not_known_to_be_dead(change: str) -> None:
    _, _, start = processes.process_name().split()
    assert not processes.is_dead(f"{change} 999999999 {start}")
    assert not processes.is_dead("")
    assert not processes.is_dead("host 12")
