"""What a hostile container sends: which files this machine takes, where it writes them, and what it says."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripted_engine import ScriptedEngine, http, scripted

from toolchains.archives import received
from toolchains.archives.received import Bounds, Sent, Taken
from toolchains.engine import client
from toolchains.system import paths
from toolchains.system.errors import EngineError, LimitError, UnsafeArchiveError
from toolchains.verbs import run
from toolchains.verbs.run import Place

BOUNDS = Bounds(1 << 20)
# Spellings of .git that some file system or tool takes for it, and the other names that no program may write.
GITS = (
    ".git",
    ".GIT",
    ".Git",
    ".g\u200cit",
    ".git.",
    ".git ",
    "git~1",
    "GIT~2",
    ".git::$INDEX_ALLOCATION",
    "\uff0egit",
)


def entry(
    name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE, **fields: object
) -> tuple[tarfile.TarInfo, bytes]:
    made = tarfile.TarInfo(name)
    made.size, made.type = len(content), kind
    for field, value in fields.items():
        setattr(made, field, value)
    return made, content


def packed(*entries: tuple[tarfile.TarInfo, bytes], form: int = tarfile.PAX_FORMAT) -> io.BytesIO:
    """Return a tar as an engine makes it of a folder work."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=form) as archive:
        archive.addfile(*entry("work", kind=tarfile.DIRTYPE, mode=0o755)[:1])
        for info, content in entries:
            archive.addfile(info, io.BytesIO(content))
    made.seek(0)
    return made


def take(folder: Path, *entries: tuple[tarfile.TarInfo, bytes], bounds: Bounds = BOUNDS, **sent: bytes) -> Taken:
    known = {name: Sent(len(data), hashlib.sha256(data).hexdigest()) for name, data in sent.items()}
    return received.take(packed(*entries), folder, bounds, what="/foundry/work", sent=known)


def below(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir())


@pytest.mark.parametrize("name", [*GITS, *sorted(name.upper() for name in received.LEFT_OUT), ".hg", "__pycache__"])
def test_histories_environments_and_caches_are_never_taken(tmp_path: Path, name: str) -> None:
    found = take(
        tmp_path / "in",
        entry(f"work/{name}/config", b"[core] fsmonitor = x"),
        entry(f"work/deep/{name}", b"gitdir: x"),
        entry("work/kept", b"1"),
    )
    assert below(tmp_path / "in") == found.written == ["kept"]


@pytest.mark.parametrize("name", ["pyvenv.cfg", "PyVenv.cfg", "HEAD", "head"])
def test_a_file_that_makes_a_folder_an_environment_or_a_repository_is_not_taken(tmp_path: Path, name: str) -> None:
    found = take(tmp_path, entry(f"work/a/{name}", b"x"), entry("work/a/config", b"x"))
    assert below(tmp_path) == found.written == ["a/config"] and [*found.left] == [f"a/{name}"]


@pytest.mark.parametrize("marks", [["pyvenv.cfg"], ["HEAD", "objects"]])
def test_environments_and_repositories_of_this_machine_are_not_written_to(tmp_path: Path, marks: list[str]) -> None:
    (tmp_path / "env" / "bin").mkdir(parents=True)
    for mark in marks:
        (tmp_path / "env" / mark).touch()
    (tmp_path / "env" / "bin" / "python").write_text("mine")
    found = take(
        tmp_path, entry("work/env/bin/python", b"theirs"), entry("work/env/config", b"x"), entry("work/z", b"1")
    )
    assert found.written == ["z"] and len(found.refused) == 2
    assert (tmp_path / "env" / "bin" / "python").read_text() == "mine" and not (tmp_path / "env" / "config").exists()


KINDS = [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE]


@pytest.mark.parametrize("kind", KINDS)
def test_links_and_devices_are_not_taken_and_lead_nowhere(tmp_path: Path, kind: bytes) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    found = take(
        tmp_path / "in",
        entry("work/way", kind=kind, linkname=str(outside)),
        entry("work/way/leak", b"x"),
        # A folder first, and then a link.
        entry("work/turn", kind=tarfile.DIRTYPE),
        entry("work/turn/first", b"x"),
        entry("work/turn", kind=kind, linkname=str(outside)),
        entry("work/turn/leak", b"x"),
    )
    assert not any(outside.iterdir()) and sorted(found.left) == ["turn", "way"]
    assert below(tmp_path / "in") == ["turn/first", "turn/leak", "way/leak"]
    assert not any(path.is_symlink() for path in (tmp_path / "in").rglob("*"))


@pytest.mark.parametrize("name", ["work/../up", "/etc/foundry", "work/a/../../../up", "work/a\\..\\up", ".."])
def test_paths_out_of_the_folder_are_refused_and_the_rest_is_taken(tmp_path: Path, name: str) -> None:
    for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        longer = name.replace("work", "work" * 40)
        found = received.take(
            packed(entry(name, b"1"), entry(longer, b"2"), entry("work/in", b"3"), form=form),
            tmp_path / "in",
            BOUNDS,
            what="x",
        )
        assert below(tmp_path) == ["in/in"] and found.written == ["in"] and name in found.refused
        with pytest.raises(UnsafeArchiveError, match="not all"):
            found.check("not all of it")


def test_links_in_the_user_s_folder_are_not_followed(tmp_path: Path) -> None:
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (outside / "target").write_text("mine")
    (folder / "way").symlink_to(outside)
    (folder / "leak").symlink_to(outside / "leaked")
    (folder / "over").symlink_to(outside / "target")
    names = ("way/out", "leak", "over")
    found = take(folder, *(entry(f"work/{name}", b"theirs") for name in names), entry("work/z", b"1"))
    assert {*found.refused} == {*names} and found.written == ["z"]
    assert [path.name for path in outside.iterdir()] == ["target"] and (outside / "target").read_text() == "mine"


def test_a_file_that_became_a_folder_or_a_folder_a_file_does_not_lose_the_rest(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "x").write_text("mine")
    found = take(tmp_path, entry("work/file/x", b"1"), entry("work/folder", b"2"), entry("work/z", b"3"), file=b"mine")
    assert found.written == ["z"] and {*found.refused} == {"file/x", "folder"}
    assert (tmp_path / "file").read_text() == (tmp_path / "folder" / "x").read_text() == "mine"


@pytest.mark.parametrize(
    "name", ["a\nwritten: x", "\x1b[8mx", "a\x7f", "\u202egpj.py", "a\u2028b", "\udcff", "x" * 256]
)
def test_names_that_a_terminal_obeys_or_that_are_too_long_are_refused(tmp_path: Path, name: str) -> None:
    found = take(tmp_path, entry(f"work/{name}", b"1"), entry("work/z", b"2"))
    assert found.written == ["z"] and below(tmp_path) == ["z"]
    with pytest.raises(UnsafeArchiveError) as raised:
        found.check("not all")
    assert all(line.isprintable() for line in raised.value.why.splitlines()) and len(raised.value.why.splitlines()) == 1


def test_names_of_people_are_taken(tmp_path: Path) -> None:
    names = [
        "añadir.py",
        "目录/文件",
        "Screenshot 10.00\u202fAM",
        "\u0645\u06cc\u200c\u062e",
        ".gitignore",
        "a.git",
        "heads",
    ]
    assert take(tmp_path, *(entry(f"work/{name}", b"1") for name in names)).written == names
    assert below(tmp_path) == sorted(names)


def test_the_second_of_two_entries_with_one_name_is_refused(tmp_path: Path) -> None:
    found = take(
        tmp_path,
        entry("work/a", b"same"),
        entry("work/a", b"other"),
        entry("work/./b", b"1"),
        entry("work//b", b"2"),
        a=b"same",
    )
    assert {*found.refused} == {"a", "b"} and (tmp_path / "b").read_bytes() == b"1" and not (tmp_path / "a").exists()


def test_only_what_changed_is_written_and_permissions_stay(tmp_path: Path) -> None:
    for name in ("same", "other"):
        (tmp_path / name).write_text("1234")
        os.utime(tmp_path / name, (1, 1))
    (tmp_path / "other").chmod(0o640)
    found = take(
        tmp_path,
        entry("work/same", b"1234", mode=0o777),
        entry("work/other", b"4321", mode=0o4755),
        entry("work/new", b"1", mode=0o6644),
        same=b"1234",
        other=b"1234",
    )
    assert found.written == ["other", "new"]
    assert (tmp_path / "same").stat().st_mtime == 1 and (tmp_path / "other").read_text() == "4321"
    assert oct((tmp_path / "other").stat().st_mode & 0o7777) == "0o740"
    assert not (tmp_path / "new").stat().st_mode & 0o7111
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".foundry")]


def test_a_large_file_is_refused_and_those_that_fit_are_taken(tmp_path: Path) -> None:
    found = take(
        tmp_path,
        entry("work/a", bytes(600)),
        entry("work/b", bytes(600)),
        entry("work/c", b"1"),
        bounds=Bounds(1000),
        a=b"1",
    )
    assert below(tmp_path) == ["a", "c"]
    with pytest.raises(LimitError, match="not all") as raised:
        found.check("not all", more="--disk=9GB")
    assert "b: it has 600 bytes" in raised.value.why and raised.value.next == "--disk=9GB"


@pytest.mark.parametrize("kind", [*KINDS, tarfile.REGTYPE])
def test_a_folder_that_is_something_else_in_the_container_is_an_error(tmp_path: Path, kind: bytes) -> None:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        archive.addfile(entry("work", kind=kind, linkname="/")[0])
    made.seek(0)
    with pytest.raises(EngineError, match="cannot copy /foundry/work"):
        received.take(made, tmp_path / "in", BOUNDS, what="/foundry/work", only="folder")
    assert below(tmp_path) == []


def test_many_entries_are_bounded(tmp_path: Path) -> None:
    found = take(
        tmp_path, *(entry(f"work/{number}", kind=tarfile.DIRTYPE) for number in range(50)), bounds=Bounds(9, 40)
    )
    assert found.over and not found.written


LYING = {
    "size": ["1152921504606846976", "-5", "0", "x"],
    "path": ["../up", "work/.git/config"],
    "GNU.sparse.realsize": [str(1 << 60)],
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in LYING.items() for value in values])
def test_extended_headers_that_lie_write_nothing_elsewhere(tmp_path: Path, key: str, value: str) -> None:
    headers = {key: value}
    if key.startswith("GNU"):
        headers |= {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}
    made, content = entry("work/x", b"0\n".ljust(512, b"\0"))
    made.pax_headers = headers
    try:
        found = take(tmp_path / "in", entry("work/before", b"1"), (made, content), entry("work/after", b"2"))
    except UnsafeArchiveError as error:
        assert "is a damaged archive" in error.what
    else:
        assert "x" not in found.written or key == "path" or value in ("0", "x")
    assert set(below(tmp_path)) <= {"in/before", "in/after", "in/x"} and (tmp_path / "in" / "before").exists()
    assert sum(path.stat().st_size for path in tmp_path.rglob("*")) < 1 << 16


@pytest.mark.parametrize("end", [1000, 2000, 2500])
def test_a_tar_that_breaks_off_leaves_no_half_of_a_file(tmp_path: Path, end: int) -> None:
    data = packed(entry("work/a", b"x" * 2000)).getvalue()[:end]
    with pytest.raises(UnsafeArchiveError, match="is a damaged archive"):
        received.take(io.BytesIO(data), tmp_path / "in", BOUNDS, what="x")
    assert below(tmp_path) == []


def test_a_file_that_tools_execute_is_named_however_many_others_there_are() -> None:
    many = [f"{number}/conftest.py" for number in range(5000)]
    said = received.executed(
        ["plain.txt", *many, "a/.ENVRC", ".vscode/tasks.json", "x/random.py", ".other/y", "b.pth", "Makefile"]
    )
    assert said == [
        "0/conftest.py and 4999 like it",
        "a/.ENVRC",
        ".vscode/tasks.json",
        "x/random.py",
        ".other/y",
        "b.pth",
        "Makefile",
    ]
    assert received.executed(["plain.txt", "results/table.csv", "train.py", "model.bin"]) == []


def test_the_documentation_names_each_file_that_tools_execute() -> None:
    page = (paths.ROOT / "docs" / "trust.md").read_text(encoding="utf-8")
    missing = [pattern for pattern in received.patterns() if f"`{pattern}`" not in page]
    assert not missing


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedEngine]:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/engine")
    with scripted(tmp_path / "engine") as running:
        yield running


def test_a_hostile_container_s_folder_is_taken_by_the_rules_of_this_machine(
    engine: ScriptedEngine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "x.py").write_text("1")
    engine.answers["get_archive"] = http(
        packed(
            entry("work/.git/config", b"[core]\n\tfsmonitor = x"),
            entry("work/.git", b"gitdir: /tmp"),
            entry("work/link", kind=tarfile.SYMTYPE, linkname="/etc/passwd"),
            entry("work/\x1b[2Jx", b"1"),
            entry("work/.envrc", b"rm"),
            entry("work/x.py", b"1"),
            entry("work/z", b"2"),
        ).getvalue()
    )
    place = Place.read(script=str(mine / "x.py"))
    with (
        pytest.raises(UnsafeArchiveError, match="not all files"),
        client.connect().sandbox("image") as container,
        run.open_folder(container, place),
    ):
        # Nothing may run beside what is read: the container is ended first, and nothing is started after that.
        pass
    assert below(mine) == [".envrc", "x.py", "z"]
    asked = engine.requests
    assert asked.index("stop") < asked.index("get_archive") and "exec_create" not in asked[asked.index("stop") :]
    said = capsys.readouterr().err
    assert said.splitlines()[-1].endswith(": .envrc") and "\x1b" not in said and "x.py" not in said
