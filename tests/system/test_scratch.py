"""Scratch folders: removed with their process, or by the next process if that one was killed."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from toolchains.system import scratch
from toolchains.system.errors import FileError
from toolchains.system.paths import ROOT

# The points at which a process may be killed.
POINTS = {
    "in this process": "(paths.scratch() / 'large').write_text('x' * 100000); die()",
    "in a temporary folder": "d = TemporaryDirectory(dir=paths.scratch()); Path(d.name, 'x').write_text('x'); die()",
    "in a child": "run(['sh', '-c', 'echo x > $TMPDIR/x; echo at work; exec sleep 1000'], log='test', line=die)",
}
KILLED = """
import os, signal, sys
from pathlib import Path
from tempfile import TemporaryDirectory
from toolchains.system import paths
from toolchains.system.children import run
def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def killed(code: str, temporary: Path) -> None:
    child = subprocess.run(
        [sys.executable, "-c", KILLED + code], cwd=ROOT, env=os.environ | {"TMPDIR": str(temporary)}, timeout=60
    )
    assert child.returncode == -signal.SIGKILL


def swept(temporary: Path, seconds: float = 30) -> list[scratch.Leftover]:
    """Return what is removed once everything that the killed process started is dead."""
    end = time.monotonic() + seconds
    while not (found := scratch.sweep(temporary)) and time.monotonic() < end:
        time.sleep(0.05)
    return found


@pytest.mark.parametrize("point", POINTS)
def test_sweep_removes_the_scratch_folder_of_a_killed_process(point: str, tmp_path: Path) -> None:
    killed(POINTS[point], tmp_path)
    (left,) = swept(tmp_path)
    assert left.size > 0
    assert not left.path.exists()
    assert scratch.leftovers(tmp_path) == []
    assert [path.name for path in tmp_path.rglob("*")] == [f"foundry-{os.geteuid()}", "lock"]


def test_a_folder_goes_with_its_process(tmp_path: Path) -> None:
    code = "from toolchains.system import paths; (paths.scratch() / 'x').write_text('x'); print(paths.scratch())"
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    printed = subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, env=environment, text=True)
    assert Path(printed.strip()).is_relative_to(tmp_path)
    assert [path.name for path in tmp_path.rglob("*")] == [f"foundry-{os.geteuid()}", "lock"]


def test_the_folder_of_a_living_process_stays(tmp_path: Path) -> None:
    # One owner file names a dead process, the other one a living process. Both are wrong: only the lock counts.
    mine = scratch.process_folder(tmp_path)
    (mine / "x").write_text("x")
    mine.with_name(f"{mine.name}.owner").write_text("process 999999999 on nowhere")
    assert scratch.sweep(tmp_path) == []
    killed("paths.scratch(); die()", tmp_path)
    (other,) = (path for path in tmp_path.glob("*/*.owner") if path.stem != mine.name)
    host = other.read_text().rpartition(" ")[2]
    other.write_text(f"process {os.getpid()} on {host}")
    assert [left.path.name for left in swept(tmp_path)] == [other.stem]
    assert (mine / "x").exists()


def test_a_folder_stays_while_a_child_of_its_dead_process_works_in_it(tmp_path: Path) -> None:
    # The grandchild outlives both: the kernel was not told to kill it, but it holds the lock.
    code = "run(['sh', '-c', 'setsid sleep 1000 >/dev/null 2>&1 & echo $!; wait'], log='t', line=tell)"
    tell = "\ndef tell(text):\n    Path(sys.argv[1]).write_text(text)\n    die()\n"
    child = subprocess.run(
        [sys.executable, "-c", KILLED + tell + code, tmp_path / "pid"],
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        timeout=60,
    )
    assert child.returncode == -signal.SIGKILL
    assert scratch.leftovers(tmp_path) == []
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert len(swept(tmp_path)) == 1


def test_the_folder_of_another_machine_stays(tmp_path: Path) -> None:
    killed("paths.scratch(); die()", tmp_path)
    (owner,) = tmp_path.glob("*/*.owner")
    owner.write_text("process 1 on another-machine")
    assert scratch.sweep(tmp_path) == []
    assert owner.exists()


def test_full_disk_leaves_nothing_to_remove_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for function in ("write", "mkdir"):
        with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left"):
            (tmp_path / f"foundry-{os.geteuid()}").mkdir(mode=0o711, exist_ok=True)
            patch.setattr(os, function, full)
            scratch.process_folder(tmp_path)
    assert [path.name for path in tmp_path.rglob("*")] == [f"foundry-{os.geteuid()}", "lock"]
    assert scratch.sweep(tmp_path) == []


def test_a_folder_that_another_user_may_have_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"foundry-{os.geteuid()}").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileError, match="for temporary files"):
        scratch.process_folder(tmp_path)
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="as another user than root, mmdebstrap makes its own namespaces")
def test_mounts_and_children_of_a_killed_mmdebstrap_are_gone(tmp_path: Path) -> None:
    script = "mkdir $TMPDIR/proc && mount -t proc proc $TMPDIR/proc && echo at work; sh -c 'sleep 1000; echo'"
    killed(f"run(['sh', '-c', {script!r}], log='t', isolated=True, line=die)", tmp_path)
    (left,) = swept(tmp_path)
    assert not left.path.exists()
    assert str(tmp_path) not in Path("/proc/self/mountinfo").read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_sweep_does_not_delete_through_a_mount(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("x")
    killed("paths.scratch(); die()", tmp_path)
    (owner,) = tmp_path.glob("*/*.owner")
    place = owner.with_suffix("") / "with a space"
    place.mkdir()
    subprocess.run(["mount", "--bind", tmp_path / "precious", place], check=True)
    try:
        assert scratch.sweep(tmp_path) == []
        assert (tmp_path / "precious" / "file").exists()
    finally:
        subprocess.run(["umount", place], check=True)
    assert len(scratch.sweep(tmp_path)) == 1
