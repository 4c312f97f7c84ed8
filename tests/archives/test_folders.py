"""Trees: the digest of a folder covers names, contents and execute permission, and nothing of the machine."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from toolchains.archives import folders, tar_file
from toolchains.system.errors import FileError


def fill(folder: Path, **contents: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / name).write_text(content)
    return folder


def packed(folder: Path) -> bytes:
    data = io.BytesIO()
    folders.write_tar(data, folders.entries_below(folder, "in"))
    return data.getvalue()


def test_date_umask_and_litter_change_neither_digest_nor_tar(tmp_path: Path) -> None:
    one = fill(tmp_path / "one", a="1", b="2")
    other = fill(tmp_path / "other", b="2", a="1")
    os.utime(other / "a", (1, 1))
    (other / "a").chmod(0o600)
    fill(other / "__pycache__", c="3")
    assert folders.files_digest(folders.files(one)) == folders.files_digest(folders.files(other))
    assert packed(one) == packed(other)


def test_content_name_and_execute_permission_change_the_digest(tmp_path: Path) -> None:
    digests = {folders.files_digest(folders.files(fill(tmp_path / "0", a="1")))}
    digests.add(folders.files_digest(folders.files(fill(tmp_path / "1", a="2"))))
    digests.add(folders.files_digest(folders.files(fill(tmp_path / "2", b="1"))))
    (fill(tmp_path / "3", a="1") / "a").chmod(0o755)
    digests.add(folders.files_digest(folders.files(tmp_path / "3")))
    assert len(digests) == 4


def test_a_tar_has_the_files_at_their_place_and_no_folders(tmp_path: Path) -> None:
    fill(fill(tmp_path / "x", a="1") / "deep", b="2")
    with tarfile.open(fileobj=io.BytesIO(packed(tmp_path / "x"))) as tar:
        assert tar.getnames() == ["in/a", "in/deep/b"]
        assert {info.mtime for info in tar} == {tar_file.EPOCH}


def test_a_file_that_becomes_shorter_while_it_is_packed_is_an_error() -> None:
    with pytest.raises(FileError, match="a became shorter"), tar_file.TarWriter(io.BytesIO()) as tar:
        tar.file("a", io.BytesIO(b"12"), 3)
