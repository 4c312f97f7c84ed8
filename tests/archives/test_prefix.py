"""Prefixes as tars: the same bytes for the same content, and nothing outside the folder they are unpacked into."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

import pytest

from toolchains.archives import prefix, tar_file
from toolchains.system.errors import UnsafeArchiveError

Mode = Literal["w", "w:gz", "w:xz", "w:bz2"]


def entry(
    name: str, content: str = "", *, mode: int = 0o644, kind: bytes = tarfile.REGTYPE, to: str = "", mtime: int = 5
) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode, info.mtime, info.uid = kind, to, mode, mtime, mtime
    data = content.encode()
    info.size = len(data)
    return info, data


def tar(path: Path, entries: Sequence[tuple[tarfile.TarInfo, bytes]], mode: Mode = "w") -> Path:
    with tarfile.open(path, mode) as file:
        for info, data in entries:
            file.addfile(info, io.BytesIO(data))
    return path


PACKAGE = [
    entry("./", kind=tarfile.DIRTYPE, mode=0o755),
    entry("./notes.txt", "of the day"),
    entry("./lib/liba.so", "code"),
    entry("./bin/tool", "program", mode=0o775),
    entry("./bin/again", kind=tarfile.LNKTYPE, to="./bin/tool"),
    entry("./bin/other", kind=tarfile.SYMTYPE, to="tool"),
]


@pytest.mark.parametrize("mode", get_args(Mode))
def test_files_and_links_come_out_sorted_without_owner_and_date(tmp_path: Path, mode: Mode) -> None:
    prefix.normalise(tar(tmp_path / "a.tar", PACKAGE, mode), tmp_path / "b.tar", without=["notes.txt"])
    with tarfile.open(tmp_path / "b.tar") as result:
        found = {info.name: info for info in result}
        contents = {each.name: (result.extractfile(each) or io.BytesIO()).read() for each in result if each.isreg()}
    assert list(found) == ["bin/again", "bin/other", "bin/tool", "lib/liba.so"]
    assert contents == {"bin/again": b"program", "bin/tool": b"program", "lib/liba.so": b"code"}
    assert found["bin/other"].linkname == "tool"
    assert {(info.uid, info.mtime) for info in found.values()} == {(0, tar_file.EPOCH)}
    assert [oct(found[name].mode) for name in ("bin/again", "bin/tool", "lib/liba.so")] == ["0o755", "0o755", "0o644"]


def test_order_owner_date_and_umask_make_no_difference(tmp_path: Path) -> None:
    one = [entry("./lib/liba.so", "code"), entry("./bin/tool", "program", mode=0o755)]
    other = [entry("bin/tool", "program", mode=0o700, mtime=9), entry("lib/liba.so", "code", mode=0o600, mtime=9)]
    for name, entries in (("one", one), ("other", other)):
        prefix.normalise(tar(tmp_path / f"{name}.tar", entries), tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_a_folder_of_the_archive_can_be_taken_alone(tmp_path: Path) -> None:
    source = tar(tmp_path / "a.tar", [entry("top/bin/tool", "1"), entry("top", kind=tarfile.DIRTYPE), entry("x", "2")])
    prefix.normalise(source, tmp_path / "b.tar", below="top")
    with tarfile.open(tmp_path / "b.tar") as result:
        assert result.getnames() == ["bin/tool"]


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ([entry("../a")], r"leaves its folder: \.\./a"),
        ([entry("a/../../b")], r"leaves its folder: a/\.\./\.\./b"),
        ([entry("/etc/passwd")], "leaves its folder: /etc/passwd"),
        ([entry("a", kind=tarfile.FIFOTYPE)], "neither a file nor a link: a"),
        ([entry("a", kind=tarfile.SYMTYPE, to="/etc"), entry("a/b/c")], "through a link: a/b/c"),
        ([entry("a", kind=tarfile.LNKTYPE, to="b")], "a file that it does not have: a"),
    ],
)
def test_entry_outside_is_refused(tmp_path: Path, entries: list[tuple[tarfile.TarInfo, bytes]], says: str) -> None:
    with pytest.raises(UnsafeArchiveError, match=says):
        prefix.normalise(tar(tmp_path / "a.tar", entries), tmp_path / "b.tar")


def test_a_folder_gives_the_bytes_that_a_tar_of_it_gives(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    for name, content, mode in (("bin/tool", "program", 0o700), ("lib/liba.so", "code", 0o600), ("top", "", 0o644)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
        (folder / name).chmod(mode)
    (folder / "bin/other").symlink_to("tool")
    (folder / "all").symlink_to("bin")
    (folder / "empty").mkdir()
    with tarfile.open(tmp_path / "a.tar", "w") as packed:
        packed.add(folder, ".")
    prefix.normalise(tmp_path / "a.tar", tmp_path / "b.tar")
    with (tmp_path / "c.tar").open("wb") as file:
        prefix.write(prefix.folder_entries(folder), file)
    with tarfile.open(tmp_path / "c.tar") as result:
        assert result.getnames() == ["all", "bin/other", "bin/tool", "lib/liba.so", "top"]
    assert (tmp_path / "b.tar").read_bytes() == (tmp_path / "c.tar").read_bytes()


def test_pipe_in_a_folder_or_a_missing_folder_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UnsafeArchiveError, match=r"neither a file nor a link: .*pipe"):
        prefix.folder_entries(tmp_path)
    with pytest.raises(FileNotFoundError):
        prefix.folder_entries(tmp_path / "nothing")
