"""The names of artifacts cover the revision of the code that writes them: golden digests of tiny artifacts.

If a test here fails, the code writes other bytes than before. Raise FORMAT in the module that the test names, so that
old bytes do not get a new name, nor new bytes an old one. Then write the new revision and digest here.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
from dataclasses import replace
from pathlib import Path

import image_archives
import made_up_triton
import pytest

from toolchains.archives import docker_archive, folders, prefix, wheel_file
from toolchains.artifacts import triton_wheel
from toolchains.contents import component as contents
from toolchains.contents.component import Component, Licence
from toolchains.contents.packages import wheel_documents
from toolchains.fetch.store import Store

FILES = {"bin/tool": b"#!/bin/sh\n", "lib/data": b"\0" * 600, "lib/empty": b""}
GOLDEN = {
    "folders": (folders.FORMAT, 1, "e0d4a2c4cda786207162a07cba37ad495ab4259ac6d44792473d934c071b3dfd"),
    "docker_archive.base": (
        docker_archive.FORMAT,
        1,
        "2b073a56a5649b75d0aded2135e782ac636eb939f4cc03278affee4986bf7318",
    ),
    "docker_archive.normalise": (
        docker_archive.FORMAT,
        1,
        "9f2cb799967eb03fd757a11059209ae617ce5a1d96e650e7fdfc30d9efdf7f08",
    ),
    "prefix": (prefix.FORMAT, 1, "df192374dfc31cccf255654feedde527e71be5f1db84311d2264cdb8add8a1d3"),
    "contents": (contents.FORMAT, 1, "7db637282a7da0da46a75737cef9e39b90196b8308704c4c409fe0e43dfea60b"),
    "wheel_file": (wheel_file.FORMAT, 1, "99a61e2d259abf3a340ac5816d4cbaf0a0429109654a9e7d83317ccc2c04f942"),
}


def tree(root: Path) -> Path:
    for name, content in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o755 if name.startswith("bin/") else 0o644)
    (root / "bin" / "link").symlink_to("tool")
    return root


def tar(path: Path, root: Path) -> Path:
    """Write a tar as root does, whoever runs the tests."""

    def owned(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        return entry

    with tarfile.open(path, "w") as file:
        file.add(root, ".", filter=owned)
    return path


def written(what: str, work: Path) -> bytes:
    """Return the bytes of a tiny artifact."""
    target = work / "target"
    match what:
        case "folders":
            packed = io.BytesIO()
            folders.write_tar(packed, dict(FILES))
            return packed.getvalue()
        case "docker_archive.base":
            rootfs = tar(work / "rootfs.tar", tree(work / "root"))
            docker_archive.write_base_image(
                rootfs, target, name="a/b:c", architecture="amd64", env=["A=b"], command=["sh"]
            )
        case "docker_archive.normalise":
            layers = [
                image_archives.layer(image_archives.folder("etc"), image_archives.entry("etc/a", b"1", mtime=2e9)),
                image_archives.layer(image_archives.entry("etc/.wh.a"), image_archives.entry("b", b"2", uid=7)),
            ]
            return image_archives.normalised(work, *layers)
        case "prefix":
            prefix.normalise(tar(work / "package.tar", tree(work / "root")), target)
        case "contents":
            each = Component(
                "wheel", "tiny", "1.0", Licence("MIT AND LicenseRef-a", "a", texts=(("LicenseRef-a", "a", "b"),))
            )
            subject = replace(each, parts=(replace(each, version="2"),), ancestors=(each,), properties=(("a", "b"),))
            return b"".join(wheel_documents(subject, "tiny-1.0.dist-info").values())
        case "wheel_file":
            writer = wheel_file.WheelWriter(target, "tiny-1.0.dist-info")
            for name, content in FILES.items():
                writer.add(name, content, executable=name.startswith("bin/"))
            writer.close()
    return target.read_bytes()


@pytest.mark.parametrize("what", GOLDEN)
def test_other_bytes_have_another_revision(what: str, tmp_path: Path) -> None:
    revision, expected, sha256 = GOLDEN[what]
    assert (revision, hashlib.sha256(written(what, tmp_path)).hexdigest()) == (expected, sha256)


def test_changed_repacking_has_a_new_revision(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stripped = tmp_path / "stripped"
    stripped.write_bytes(b"what strip leaves depends on the machine's libc")
    monkeypatch.setattr(triton_wheel, "_stripped", lambda *_: stripped)
    release = made_up_triton.locked(wheel)
    # The documents in the result have this digest, and the wheel has the machine's libc.
    release = replace(release, wheel=replace(release.wheel, sha256="0" * 64))
    result = triton_wheel.repack(release, wheel, backends=(), store=Store(tmp_path / "store"))
    assert (triton_wheel.FORMAT, hashlib.sha256(result.read_bytes()).hexdigest()) == (
        2,
        "80e31da15c625954b52cdfbb439a0784d798104917a9407ea9b6befe5bf8ac0f",
    )
