"""Child processes: the processes that they start end with them, and a daemon outlives this process."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from toolchains.system import children, paths
from toolchains.system.children import run
from toolchains.system.errors import CommandError, MissingToolError


def gone(pid: int, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            # A zombie counts as gone: it only waits for its new parent to read its status.
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False


def test_an_interrupted_child_ends_with_all_that_it_started() -> None:
    pids: list[int] = []

    def interrupt(line: str) -> None:
        pids.extend(int(word) for word in line.split())
        raise KeyboardInterrupt

    # The shell starts a job that ignores SIGINT, as every job in the background does.
    with pytest.raises(KeyboardInterrupt):
        run(["sh", "-c", "sleep 1000 & echo $$ $!; wait"], log="test-run", line=interrupt)
    assert len(pids) == 2
    assert all(gone(pid, seconds=30) for pid in pids)


RECORDS = """
import signal, sys, time
def record(number, frame):
    print(signal.Signals(number).name, file=open(sys.argv[1], "a"))
    sys.exit(number)
for number in signal.SIGINT, signal.SIGTERM:
    signal.signal(number, record)
print("ready", flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize(("handler", "sent"), [(signal.SIG_IGN, "SIGTERM"), (signal.default_int_handler, "SIGINT")])
def test_child_that_ignores_sigint_is_ended_by_sigterm(tmp_path: Path, handler: Any, sent: str) -> None:
    def interrupt(line: str) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run([sys.executable, "-c", RECORDS, tmp_path / "got"], log="test-run", line=interrupt)
    finally:
        signal.signal(signal.SIGINT, before)
    assert (tmp_path / "got").read_text().split() == [sent]


def test_a_child_s_group_is_its_own() -> None:
    # Ctrl-C must not reach the child before we can end it properly.
    _, _, group = run(["cat", "/proc/self/stat"], log="test-run").stdout.rpartition(")")[2].split()[:3]
    assert group != str(os.getpgrp())


def test_daemon_does_not_get_the_scratch_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "LOGS", tmp_path)
    scratch = paths.scratch()
    assert children.start(["sh", "-c", "env"], log="daemon").wait(10) == 0
    printed = (tmp_path / "daemon.log").read_text()
    assert "PATH=" in printed
    assert str(scratch) not in printed


def test_child_that_gives_way_has_a_lower_priority_and_its_own_name_in_errors() -> None:
    assert int(run(["nice"], log="test-run", niceness=3).stdout) == min(os.nice(0) + 3, 19)
    with pytest.raises(CommandError, match=r"^false failed"):
        run(["false"], log="test-run", niceness=3)
    with pytest.raises(MissingToolError, match=r"^no-such-program is"):
        run(["no-such-program"], log="test-run", niceness=3)
