"""A user's folder in a container: what is copied in, what is copied back, and what a script and a shell see of it."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tarfile
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from archives import tar, wheel

from toolchains.assembly.request import Request
from toolchains.cli import script_words, workplace
from toolchains.cli.workplace import Place
from toolchains.system import paths
from toolchains.system.errors import UnsafeArchiveError, UsageError
from toolchains.testing import proof

SCRIPT = """
import os, pathlib, sys
import gift
print(sys.argv[1:], gift.WORD, sys.stdin.read())
print("to stderr", file=sys.stderr)
here = pathlib.Path.cwd()
assert here == pathlib.Path("/foundry/work") and pathlib.Path("empty").is_dir()
pathlib.Path("deep/er").mkdir(parents=True)
pathlib.Path("deep/er/new.bin").write_bytes(bytes(range(256)))
pathlib.Path("changed.txt").write_text("after")
pathlib.Path("same.txt").write_text("same")
pathlib.Path("deleted.txt").unlink()
pathlib.Path("link").symlink_to("/etc/passwd")
sys.exit(7)
"""


def foundry(*words: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    invoke = [sys.executable, "-P", "-m", "invoke", "--search-root", str(paths.ROOT)]
    return subprocess.run([*invoke, *words], input=stdin, capture_output=True, text=True, timeout=1200, check=False)


def gift(folder: Path, *needs: str) -> None:
    """Create a folder and write a wheel into it that has one module, gift."""
    folder.mkdir()
    wheel(folder, "gift", "1", needs, files={"gift.py": "WORD = 'unwrapped'\n"})


def test_what_follows_a_script_is_the_scripts() -> None:
    def run(c: object, target: str, script: str, with_: str = "", offline: bool = False) -> None: ...

    def cut(line: str) -> list[str]:
        return script_words.split_words(line.split(), run, 2)[1]

    assert cut("spirv x.py") == []
    assert cut("spirv x.py --help -v --offline") == ["--help", "-v", "--offline"]
    assert cut("--offline spirv --with=. x.py a") == ["a"]
    assert cut("spirv --with . x.py a --with b") == ["a", "--with", "b"]
    assert cut("spirv --help") == []


@pytest.mark.parametrize("end", [0, 100, 1100])
def test_an_archive_that_a_container_did_not_finish_is_said_to_be_damaged(tmp_path: Path, end: int) -> None:
    packed = tar(tmp_path / "x.tar", {"a": b"x" * 2000})
    packed.write_bytes(packed.read_bytes()[:end])
    with pytest.raises(UnsafeArchiveError, match="is a damaged archive"):
        workplace.unpack(packed, tmp_path / "folder")


def test_nothing_from_a_container_lands_outside_the_folder(tmp_path: Path) -> None:
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (folder / "way").symlink_to(outside)
    (folder / "leak").symlink_to(outside / "leaked")
    packed = tar(tmp_path / "x.tar", {"../up": b"1", "way/out": b"2", "leak": b"3", "/etc/foundry": b"4", "in": b"5"})
    with pytest.raises(UnsafeArchiveError, match="4 files were not copied out") as caught:
        workplace.unpack(packed, folder)
    assert all(name in caught.value.why for name in ("../up", "way/out", "leak", "/etc/foundry"))
    assert (folder / "in").read_bytes() == b"5"
    assert sorted(tmp_path.iterdir()) == [folder, outside, packed]
    assert not any(outside.iterdir())
    assert not Path("/etc/foundry").exists()


def test_a_sparse_file_from_a_container_does_not_fill_the_disk(tmp_path: Path) -> None:
    entry = tarfile.TarInfo("x")
    entry.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": str(1 << 60)}
    entry.size = 512
    with tarfile.open(tmp_path / "x.tar", "w") as packed:
        packed.addfile(entry, io.BytesIO(b"0\n".ljust(512, b"\0")))
    with pytest.raises(UnsafeArchiveError, match="1 files were not copied out"):
        workplace.unpack(tmp_path / "x.tar", tmp_path / "folder")


def test_a_home_is_not_copied_unless_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home" / "me"))
    script = tmp_path / "home" / "x.py"
    script.parent.mkdir()
    script.touch()
    with pytest.raises(UsageError, match="would be copied") as caught:
        Place.read(script=str(script))
    assert "--with=PATH" in caught.value.next


def test_what_cannot_be_run_is_said_before_anything_is_built(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    script = tmp_path / "x.py"
    script.touch()
    for given, why in (
        ({"script": str(tmp_path)}, "not a Python script"),
        ({"script": str(tmp_path / "nowhere.py")}, "not a Python script"),
        ({"script": str(script), "folder": str(tmp_path / "in")}, "is not in"),
        ({"script": str(script), "folder": str(script)}, "no such folder"),
        ({"script": str(script), "wheels": str(tmp_path)}, "nothing to install"),
        ({"script": str(script), "results": str(script)}, "cannot be written to"),
        ({"script": str(script), "results": str(script / "out")}, "cannot be written to"),
    ):
        with pytest.raises(UsageError, match=why):
            Place.read(**given)
    with pytest.raises(UsageError, match="--results needs a folder"):
        Place.read(results="x")


def test_a_run_that_ends_without_a_profile_leaves_none_of_an_earlier_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Ended:
        def interactive(self, *_: object, **__: object) -> int:
            return 137

        def run(self, *_: object) -> SimpleNamespace:
            return SimpleNamespace(status=1, stdout="")

    monkeypatch.setattr(workplace, "_open_container", lambda request: nullcontext(Ended()))
    monkeypatch.setattr(workplace, "open_folder", lambda container, place: nullcontext())
    monkeypatch.setattr(proof, "results_folder", lambda request: tmp_path / "results")
    files = tmp_path / "results" / "profiles" / "x.json", tmp_path / "mine" / "profile.json"
    for file in files:
        file.parent.mkdir(parents=True)
        file.write_text("{}")
    place = Place(tmp_path / "mine", tmp_path / "mine", None, "x.py")
    assert workplace.run_script(Request.read("spirv"), place, []) == 137
    assert all(file.exists() for file in files)
    assert workplace.run_script(Request.read("spirv"), place, [], profile=True) == 137
    assert not any(file.exists() for file in files)


@pytest.mark.docker
def test_a_script_runs_in_a_copy_of_its_folder_and_what_it_wrote_comes_back(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "empty").mkdir(parents=True)
    (work / ".venv").mkdir()
    (work / ".venv" / "large").touch()
    (work / "x.py").write_text(SCRIPT)
    for name in ("changed.txt", "same.txt", "deleted.txt"):
        (work / name).write_text(name.partition(".")[0])
        os.utime(work / name, (1, 1))
    gift(tmp_path / "wheels")
    wheels = f"--wheels={tmp_path / 'wheels'}"
    done = foundry("run", "spirv", wheels, work / "x.py", "--n=5", "a b", "--help", stdin="in")
    assert done.returncode == 7, done.stderr
    # Only the script writes to stdout; Foundry's messages go to stderr.
    assert done.stdout.splitlines()[-1:] == ["['--n=5', 'a b', '--help'] unwrapped in"]
    assert "to stderr" in done.stderr
    assert (work / "deep" / "er" / "new.bin").read_bytes() == bytes(range(256))
    assert (work / "changed.txt").read_text() == "after"
    assert "link" in done.stderr and not (work / "link").exists()
    # Unchanged files are not written, and no file is deleted.
    assert {name: (work / name).stat().st_mtime for name in ("same.txt", "deleted.txt")} == {
        "same.txt": 1,
        "deleted.txt": 1,
    }
    assert sorted(path.name for path in work.iterdir()) == [
        ".venv",
        "changed.txt",
        "deep",
        "deleted.txt",
        "empty",
        "same.txt",
        "x.py",
    ]


@pytest.mark.docker
def test_a_shell_has_instructions_an_editor_and_a_pip_and_its_changes_come_back(tmp_path: Path) -> None:
    work, results = tmp_path / "work", tmp_path / "results"
    work.mkdir()
    gift(tmp_path / "wheels")
    gift(work / "more")
    page = (paths.ROOT / "docs" / "getting-started.md").read_text(encoding="utf-8")
    (tried,) = re.findall(r"Try `(python [^`]+)`", page)
    line = f"""
        {tried} --only 'n=1000 block=256 f32' | tail -1
        pwd; nano --version | head -1; ls /foundry/docs/spirv.md /foundry/examples/get_started.py /foundry/README.md
        python -m pip install --quiet --find-links more gift && python -c 'import gift, numpy; print(gift.WORD)'
        echo kept > kept.txt
        false
    """
    # The end of the input has the effect of Ctrl-D.
    done = foundry("shell", "spirv", "--with", work, "--results", results, stdin=line)
    assert done.returncode == 1, done.stderr
    assert "1 passed, 0 failed" in done.stdout
    for said in ("/foundry/work", "nano", "/foundry/docs/spirv.md", "/foundry/examples/get_started.py", "unwrapped"):
        assert said in done.stdout
    assert (results / "kept.txt").read_text() == "kept\n"
    assert [path.name for path in work.iterdir()] == ["more"]


@pytest.mark.docker
def test_a_wheel_that_needs_what_is_not_there_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "x.py").touch()
    gift(tmp_path / "wheels", "no-such-thing")
    done = foundry("run", "spirv", f"--wheels={tmp_path / 'wheels'}", tmp_path / "x.py")
    assert done.returncode != 0
    assert "no-such-thing" in done.stderr and "pip download" in done.stderr
