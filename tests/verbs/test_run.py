"""A user's folder in a container: what is copied in, what is copied back, and what a script and a shell see of it."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import tarfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast

import pytest
from archive_files import tar, wheel

from toolchains.archives import received
from toolchains.archives.received import Bounds
from toolchains.assembly.request import Request
from toolchains.cli import commandline
from toolchains.system import paths
from toolchains.system.errors import EngineError, LimitError, UnsafeArchiveError, UsageError
from toolchains.testing import proof
from toolchains.verbs import run
from toolchains.verbs.run import Place

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


def unpack(packed: Path, folder: Path) -> None:
    """Take the files of a tar as if a container had sent it."""
    with packed.open("rb") as file:
        received.take(file, folder, Bounds(1 << 20), what="/w").check("not all files")


def gift(folder: Path, *needs: str) -> None:
    """Create a folder and write a wheel into it that has one module, gift."""
    folder.mkdir()
    wheel(folder, "gift", "1", needs, files={"gift.py": "WORD = 'unwrapped'\n"})


def test_words_after_a_script_belong_to_the_script() -> None:
    def run(c: object, target: str, script: str, with_: str = "", offline: bool = False) -> None: ...

    def cut(line: str) -> list[str]:
        return commandline.split_words(line.split(), run, 2)[1]

    assert cut("spirv x.py") == []
    assert cut("spirv x.py --help -v --offline") == ["--help", "-v", "--offline"]
    assert cut("--offline spirv --with=. x.py a") == ["a"]
    assert cut("spirv --with . x.py a --with b") == ["a", "--with", "b"]
    assert cut("spirv --help") == []
    assert cut("spirv -m pytest -q -m slow") == ["pytest", "-q", "-m", "slow"]
    assert cut("spirv --with . -c print(1) -c") == ["print(1)", "-c"]
    assert cut("spirv x.py -m -c") == ["-m", "-c"]


def test_profile_without_a_value_profiles_kernels() -> None:
    def run(c: object, target: str, script: str, profile: str = "", profile_kernels: bool = False) -> None: ...

    def read(line: str) -> str:
        return " ".join(commandline.with_long_names(line.split(), run, 2))

    assert read("spirv --profile x.py --profile") == "spirv --profile-kernels x.py --profile"
    assert read("spirv --profile=llvm=new x.py") == "spirv --profile=llvm=new x.py"
    assert read("--profile spirv -m a --profile") == "--profile-kernels spirv -m a --profile"


@pytest.mark.parametrize("end", [0, 100, 1100])
def test_an_archive_that_a_container_did_not_finish_is_said_to_be_damaged(tmp_path: Path, end: int) -> None:
    packed = tar(tmp_path / "x.tar", {"a": b"x" * 2000})
    packed.write_bytes(packed.read_bytes()[:end])
    with pytest.raises(UnsafeArchiveError, match="is a damaged archive"):
        unpack(packed, tmp_path / "folder")


def test_nothing_from_a_container_lands_outside_the_folder(tmp_path: Path) -> None:
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (folder / "way").symlink_to(outside)
    (folder / "leak").symlink_to(outside / "leaked")
    packed = tar(
        tmp_path / "x.tar",
        {"w/../up": b"1", "w/way/out": b"2", "w/leak": b"3", "/etc/foundry": b"4", "w/in": b"5"},
    )
    with pytest.raises(UnsafeArchiveError, match="not all files") as caught:
        unpack(packed, folder)
    assert all(f"{name}: " in caught.value.why for name in ("../up", "way/out", "leak", "/etc/foundry"))
    assert (folder / "in").read_bytes() == b"5"
    assert sorted(tmp_path.iterdir()) == [folder, outside, packed]
    assert not any(outside.iterdir())
    assert not Path("/etc/foundry").exists()


def test_a_sparse_file_from_a_container_does_not_fill_the_disk(tmp_path: Path) -> None:
    entry = tarfile.TarInfo("w/x")
    entry.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": str(1 << 60)}
    entry.size = 512
    with tarfile.open(tmp_path / "x.tar", "w") as packed:
        packed.addfile(entry, io.BytesIO(b"0\n".ljust(512, b"\0")))
    with pytest.raises(LimitError, match="not all files"):
        unpack(tmp_path / "x.tar", tmp_path / "folder")


def test_a_home_is_not_copied_unless_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home" / "me"))
    script = tmp_path / "home" / "x.py"
    script.parent.mkdir()
    script.touch()
    with pytest.raises(UsageError, match="would be copied") as caught:
        Place.read(script=str(script))
    assert "--with=PATH" in caught.value.next


def test_wrong_script_or_folder_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "x.ipynb").touch()
    for name in ("env/pyvenv.cfg", "bare/HEAD", "bare/objects"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
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
        ({"folder": str(tmp_path / "env")}, "is an environment of Python"),
        ({"script": str(script), "results": str(tmp_path / "bare")}, "a repository of git itself"),
        ({"script": str(script), "disk": "0"}, "is no size"),
        ({"script": str(script), "env": ["A B=1"]}, "names no variable"),
        ({"script": str(script), "env": ["FOUNDRY_TEST_ABSENT"]}, "has no such variable"),
        ({"script": str(tmp_path / "x.ipynb")}, "is not a notebook"),
        ({"script": str(script), "disk": "9XB"}, "is no size"),
    ):
        with pytest.raises(UsageError, match=why):
            Place.read(**given)
    with pytest.raises(UsageError, match="--results needs a folder"):
        Place.read(results="x")


def test_notebook_is_neither_profiled_nor_given_arguments(tmp_path: Path) -> None:
    place = Place(tmp_path, tmp_path, None, "x.ipynb")
    with pytest.raises(UsageError, match="profiles a script"):
        run.run_script(Request.read("spirv"), place, [], profile=True)
    with pytest.raises(UsageError, match="takes no arguments"):
        run.run_script(Request.read("spirv"), place, ["1"])


def test_outputs_are_written_back_also_of_a_notebook_that_was_interrupted(tmp_path: Path) -> None:
    cell: dict[str, object] = {"cell_type": "code", "metadata": {}, "source": "1", "outputs": []}
    (tmp_path / "x.ipynb").write_text(json.dumps({"nbformat": 4, "cells": [cell]}))

    class Ended:
        def copy_into(self, *_: object) -> None: ...

        def copy_out(self, source: str, destination: Path, *_: object, **__: object) -> None:
            destination.write_text('{"cell": 0, "execution_count": 3, "outputs": []}\n')

    place = Place(tmp_path, tmp_path / "out", None, "x.ipynb")
    with pytest.raises(KeyboardInterrupt), run.outputs_written(cast(Any, Ended()), place):
        raise KeyboardInterrupt
    assert json.loads((tmp_path / "out" / "x.ipynb").read_text())["cells"][0]["execution_count"] == 3


def test_run_without_a_profile_removes_an_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Ended:
        def interactive(self, *_: object, **__: object) -> int:
            return 137

        def copy_out(self, *_: object, **__: object) -> None:
            raise EngineError("there is no such file")

    monkeypatch.setattr(run, "open_container", lambda request, place, **_: nullcontext(Ended()))
    monkeypatch.setattr(run, "open_folder", lambda *_, **__: nullcontext())
    monkeypatch.setattr(proof, "results_folder", lambda request: tmp_path / "results")
    files = tmp_path / "results" / "profiles" / "x.json", tmp_path / "mine" / "profile.json"
    for file in files:
        file.parent.mkdir(parents=True)
        file.write_text("{}")
    place = Place(tmp_path / "mine", tmp_path / "mine", None, "x.py")
    assert run.run_script(Request.read("spirv"), place, []) == 137
    assert all(file.exists() for file in files)
    picture = tmp_path / "roofline.svg"
    picture.touch()
    assert run.run_script(Request.read("spirv"), place, [], plot=picture) == 137
    assert not any(file.exists() for file in (*files, picture))
    assert f"{picture} is not written: no kernel was profiled" in capsys.readouterr().err


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


HOSTILE = """
import os, pathlib, subprocess, sys
here = pathlib.Path.cwd()
evil = "[core]\\n\\tfsmonitor = touch /tmp/owned\\n"
for name in ".git", ".Git", "deep/.git", ".hg", "env":
    pathlib.Path(name).mkdir(parents=True)
    pathlib.Path(name, "config").write_text(evil)
pathlib.Path("sub").mkdir()
pathlib.Path("sub/.git").write_text("gitdir: ../env")
pathlib.Path("env/pyvenv.cfg").write_text("home = /tmp")
pathlib.Path("__pycache__").mkdir()
pathlib.Path("__pycache__/x.cpython-311.pyc").write_text("x")
pathlib.Path("link").symlink_to("/etc")
pathlib.Path("target").write_text("hard")
os.link("target", "target2")
os.mkfifo("pipe")
pathlib.Path("conftest.py").write_text("x")
pathlib.Path("new\\nwritten: nothing\\x1b[2J").write_text("x")
pathlib.Path(os.fsdecode(b"\\xff\\xfe")).write_text("x")
os.chmod("target", 0o6777)
pathlib.Path("became").unlink()
pathlib.Path("became").mkdir()
pathlib.Path("became/x").write_text("x")
with open("sparse", "wb") as file:
    file.truncate(1 << 33)
# Processes that outlive the script, and rewrite what is read and where it was packed in earlier versions.
loop = '''
import io, os, pathlib, signal, tarfile, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
made = io.BytesIO()
with tarfile.open(fileobj=made, mode="w") as tar:
    entry = tarfile.TarInfo(".git/config")
    entry.size = 4
    tar.addfile(entry, io.BytesIO(b"evil"))
while True:
    for name in "raced", "zraced":
        pathlib.Path(name).write_text(str(time.time()))
    for folder in "/foundry/changes", "/foundry/work":
        try:
            pathlib.Path(folder, "files.tar").write_bytes(made.getvalue())
        except OSError:
            pass
'''
for _ in range(3):
    subprocess.Popen([sys.executable, "-c", loop], start_new_session=True)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execv(sys.executable, [sys.executable, "-c", loop])
        os._exit(0)
pathlib.Path("zz").write_text("last")
"""


@pytest.mark.docker
def test_a_hostile_script_leaves_nothing_but_plain_files_in_its_folder(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    subprocess.run(["git", "init", "--quiet", work], check=True)
    settings = (work / ".git" / "config").read_bytes()
    (work / "x.py").write_text(HOSTILE)
    (work / "became").write_text("mine")
    done = foundry("run", "spirv", work / "x.py")
    assert (work / ".git" / "config").read_bytes() == settings, done.stderr
    names = {path.relative_to(work).as_posix() for path in work.rglob("*")}
    names = {name for name in names if name.partition("/")[0] != ".git"}
    expected = {"x.py", "became", "target", "conftest.py", "deep", "env", "sub", "files.tar", "raced", "zraced", "zz"}
    # The sparse file is larger than what may be read, so what follows it by name is not.
    assert names <= expected | {"target2", "env/config"} and {"x.py", "became", "conftest.py", "raced"} <= names
    for path in work.rglob("*"):
        assert path.is_dir() or (path.is_file() and not path.is_symlink() and path.stat().st_nlink == 1)
        assert not path.stat().st_mode & 0o6000
    assert (work / "became").read_text() == "mine"
    assert done.returncode == LimitError.exit_code
    assert "\x1b" not in done.stderr and "\nwritten: nothing" not in done.stderr
    assert re.search("^new or changed, .*conftest.py", done.stderr, re.MULTILINE)


WRITES = """
import os, pathlib, sys, time
pathlib.Path("a.txt").write_text("kept")
# What a watcher without rights cannot look into.
for name, mode in ("private", 0o700), ("closed", 0):
    os.mkdir(name)
    os.chmod(name, mode)
with open("private/b" if sys.argv[2] == "1000" else "b", "wb") as file:
    for _ in range(int(sys.argv[1])):
        file.write(bytes(1 << 20))
pathlib.Path("c.txt").write_text("kept")
time.sleep(float(sys.argv[2]))
"""


@pytest.mark.docker
@pytest.mark.parametrize(("mebibytes", "seconds"), [("150", "0"), ("400", "1000")])
def test_script_that_writes_too_much_keeps_what_fits(tmp_path: Path, mebibytes: str, seconds: str) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "x.py").write_text(WRITES)
    done = foundry("run", "spirv", "--disk=100MB", work / "x.py", mebibytes, seconds)
    assert done.returncode == LimitError.exit_code and "--disk=10GB" in done.stderr, done.stderr
    assert {path.name for path in work.iterdir()} - {"c.txt"} == {"x.py", "a.txt"}
    # The first script may have ended before it was looked at.
    was_ended = "wrote more than 0.1 GB" in done.stderr
    assert was_ended or (seconds == "0" and (work / "c.txt").exists())


NOTEBOOK = """
import numpy as np, pathlib, triton, triton.language as tl
from foundry_core import Tensor
@triton.jit
def double(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, 2 * tl.load(x + i))
x, out = Tensor(np.arange(4, dtype=np.float32)), Tensor(np.full(4, np.nan, np.float32))
double[(1,)](x, out, B=4)
pathlib.Path("new.txt").write_text("new")
print("shown")
"""


@pytest.mark.docker
@pytest.mark.parametrize("option", ["--check", "--interpret"])
def test_notebook_runs_up_to_the_cell_that_fails_and_keeps_what_it_showed(tmp_path: Path, option: str) -> None:
    def code(source: str) -> dict[str, object]:
        return {"cell_type": "code", "metadata": {}, "source": source, "outputs": [], "execution_count": 5, "id": "a"}

    cells = [code(source) for source in (NOTEBOOK, "np.asarray(out).tolist()", "1 / 0", "print('never')")]
    document = {"nbformat": 4, "nbformat_minor": 4, "metadata": {"mine": 1}, "cells": cells}
    (tmp_path / "x.ipynb").write_text(json.dumps(document))
    done = foundry("run", "spirv", option, tmp_path / "x.ipynb")
    assert done.returncode == 1 and "cell 3 of 4 failed: ZeroDivisionError" in done.stderr, done.stderr
    assert "shown" in done.stdout and "\x1b" not in done.stderr
    assert (tmp_path / "new.txt").read_text() == "new"
    written = json.loads((tmp_path / "x.ipynb").read_text())
    assert [cell["source"] for cell in written["cells"]] == [cell["source"] for cell in cells]
    printed, shown, failed, unrun = (cell["outputs"] for cell in written["cells"])
    assert printed == [{"output_type": "stream", "name": "stdout", "text": ["shown\n"]}]
    assert shown[0]["data"]["text/plain"] == ["[0.0, 2.0, 4.0, 6.0]"]
    assert failed[0]["ename"] == "ZeroDivisionError" and unrun == []


@pytest.mark.docker
def test_script_gets_variables_and_advice_to_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.py").write_text(
        "import os\nprint(*(os.environ.get(name) for name in ('FOUNDRY_PRINT_LINES', 'TRITON_CACHE_DIR', 'A', 'B')))\n"
        "import torch\n"
    )
    monkeypatch.setenv("FOUNDRY_PRINT_LINES", "7")
    monkeypatch.setenv("TRITON_CACHE_DIR", "/nowhere")
    monkeypatch.setenv("A", "of this machine")
    done = foundry("run", "spirv", "--env=A", "--env=B=b c", tmp_path / "x.py", "an argument")
    assert done.stdout.splitlines()[-1] == "7 /tmp/cache/triton of this machine b c"
    words = f"'--env=B=b c' {tmp_path / 'x.py'} 'an argument'"
    assert f"  next: ./foundry run spirv-torch --env=A {words}" in done.stderr.splitlines()
    (tmp_path / "x.py").write_text("import os\nos.abort()\n")
    done = foundry("run", "spirv", tmp_path / "x.py")
    assert done.returncode == 134
    assert done.stderr.endswith(f"  next: ./foundry run spirv --check {tmp_path / 'x.py'}\n")
    done = foundry("run", "spirv", "--check", "-c", "import os; print(os.environ['FOUNDRY_CHECK']); os.abort()")
    assert done.returncode == 134 and done.stdout.endswith("1\n") and "--check" not in done.stderr


@pytest.mark.docker
def test_a_module_runs_in_a_copy_of_the_folder_and_pytest_is_there(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("import triton\n\ndef test_a():\n    assert not triton.__version__\n")
    done = foundry("run", "spirv", f"--with={tmp_path}", "-m", "pytest", "-q", "-k", "test_a")
    assert done.returncode == 1 and "1 failed" in done.stdout, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["test_a.py"]


@pytest.mark.docker
def test_a_shell_has_instructions_an_editor_and_a_pip_and_its_changes_come_back(tmp_path: Path) -> None:
    work, results = tmp_path / "work", tmp_path / "results"
    work.mkdir()
    gift(tmp_path / "wheels")
    gift(work / "more")
    page = (paths.ROOT / "docs" / "running.md").read_text(encoding="utf-8")
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
def test_wheel_with_a_missing_requirement_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "x.py").touch()
    gift(tmp_path / "wheels", "no-such-thing")
    done = foundry("run", "spirv", f"--wheels={tmp_path / 'wheels'}", tmp_path / "x.py")
    assert done.returncode != 0
    assert "no-such-thing" in done.stderr and "pip download" in done.stderr


@pytest.mark.docker
@pytest.mark.parametrize("target", ["spirv-torch", "vsi-torch"])
def test_wheel_that_requires_torch_is_installed_next_to_the_images_torch(tmp_path: Path, target: str) -> None:
    gift(tmp_path / "wheels", "torch")
    done = foundry("run", target, f"--wheels={tmp_path / 'wheels'}", "-c", "import gift, torch; print(gift.WORD)")
    assert (done.returncode, done.stdout) == (0, "unwrapped\n"), done.stderr
