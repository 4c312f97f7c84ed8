"""Verbs as a shell sees them: their output, and their exit status."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from toolchains.cli.verb import explain_os_error
from toolchains.engine.client import Engine
from toolchains.system import paths
from toolchains.system.errors import FileError

FOUNDRY = paths.ROOT / "foundry"
TASKS = """
import os
import sys
import time
sys.path.insert(0, {root!r})
from toolchains.engine import client
from toolchains.cli.verb import verb

@verb()
def build(c, path):
    "What build does."
    open(path).read()

@verb()
def exhaust(c):
    raise MemoryError

@verb()
def wait(c, left):
    try:
        print("ready", flush=True)
        time.sleep(1000)
    finally:
        print("cleaned up", flush=True)

@verb()
def hold(c, image):
    with client.connect().container(image) as container:
        print(container.id, flush=True)
        time.sleep(1000)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "tasks.py").write_text(TASKS.format(root=str(paths.ROOT)))
    return folder


def start(project: Path, *arguments: str, heedless: bool = False) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "invoke", "--search-root", project, *arguments],
        cwd="/",
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=None if heedless else heed,
    )


def heed() -> None:
    """Reset signals to a terminal's defaults: a process under nohup, or behind &, inherits that they are ignored."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def test_help_is_given_wherever_one_stands(project: Path) -> None:
    for arguments in (["build", "--help"], ["--help", "build"]):
        child = start(project, *arguments)
        stdout, stderr = child.communicate(timeout=60)
        assert (child.returncode, stderr) == (0, "")
        assert "What build does." in stdout


@pytest.mark.parametrize(
    ("number", "status", "said"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "SIGTERM"), (signal.SIGHUP, 129, "SIGHUP")],
)
def test_a_signal_lets_a_verb_clean_up(project: Path, number: signal.Signals, status: int, said: str) -> None:
    child = start(project, "wait", "x")
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    child.send_signal(number)
    stdout, stderr = child.communicate(timeout=60)
    assert (child.returncode, stdout) == (status, "cleaned up\n")
    assert said in stderr
    assert "Traceback" not in stderr


def test_a_hang_up_that_is_ignored_stays_ignored(project: Path) -> None:
    ignored = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        child = start(project, "wait", "x", heedless=True)
    finally:
        signal.signal(signal.SIGHUP, ignored)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGHUP)
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=60)
    assert child.returncode == 143


def test_a_file_that_cannot_be_read_is_named_without_a_traceback(project: Path) -> None:
    child = start(project, "build", "/no/such/file")
    _, stderr = child.communicate(timeout=60)
    assert child.returncode == FileError.exit_code
    assert stderr.startswith("error: cannot use /no/such/file\n  why:  No such file or directory\n")


def test_a_full_disk_is_said_to_be_full_and_where_there_is_how_much_room() -> None:
    place = f"{paths.ROOT}/not/yet/there"
    error = explain_os_error(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), place))
    assert f"GB free at {place}" in error.why
    # A copy: the first name is that of the file that was read.
    error = explain_os_error(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/read", None, place))
    assert f"cannot use {place}" in error.what
    # The error of a failed write names no file.
    error = explain_os_error(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    assert f"GB free at {paths.cache()}" in error.why
    assert "FOUNDRY_CACHE" in error.next


def test_a_lack_of_memory_is_told_from_a_fault_of_a_file(project: Path) -> None:
    child = start(project, "exhaust")
    _, stderr = child.communicate(timeout=60)
    assert child.returncode == FileError.exit_code
    assert stderr.startswith(
        "error: there is not enough memory\n  why:  Cannot allocate memory\n  next: free memory; if TMPDIR"
    )
    error = explain_os_error(OSError(errno.ENOMEM, os.strerror(errno.ENOMEM), "/tmp/x"))
    assert error.what == "cannot use /tmp/x" and "TMPDIR" in error.next


@pytest.mark.parametrize("words", [["ci"], ["--help"], ["help", "build"], ["pin"]])
def test_a_reader_that_has_seen_enough_is_no_error(words: list[str]) -> None:
    out, into = os.pipe()
    os.close(out)
    child = subprocess.run([FOUNDRY, *words], stdin=subprocess.DEVNULL, stdout=into, stderr=subprocess.PIPE, text=True)
    os.close(into)
    # rich itself ends with status 1.
    assert (child.returncode in (1, 141), child.stderr) == (True, "")


@pytest.mark.parametrize(("word", "said"), [("doctor", "a container engine"), ("--help", "\nTargets: dpu, ")])
def test_output_fits_a_terminal_that_knows_ascii_only(word: str, said: str) -> None:
    child = subprocess.run(
        [FOUNDRY, word], stdin=subprocess.DEVNULL, capture_output=True, env=os.environ | {"PYTHONIOENCODING": "ascii"}
    )
    printed = (child.stdout + child.stderr).decode("ascii")
    assert "Traceback" not in printed
    assert said in printed


@pytest.mark.docker
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_an_ended_verb_leaves_no_container(project: Path, docker: Engine, tiny: str, number: signal.Signals) -> None:
    child = start(project, "hold", tiny)
    assert child.stdout is not None
    id = child.stdout.readline().strip()
    assert id in containers(docker)
    child.send_signal(number)
    child.communicate(timeout=60)
    assert child.returncode == 128 + number
    assert id not in containers(docker)


def containers(docker: Engine) -> list[str]:
    return [container["Id"] for container in docker._api.containers(all=True)]
