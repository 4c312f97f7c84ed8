"""Archives: two builds of the same content differ, but their normalised bytes are equal."""

from __future__ import annotations

import gc
import gzip
import hashlib
import io
import itertools
import json
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import archive_files
import pytest
from archive_files import sums
from damage import altered
from image_archives import NAME, entry, folder, layer, link, normalised, save

from toolchains.archives import docker_archive
from toolchains.archives.tar_file import EPOCH, opened
from toolchains.archives.wheel_file import WheelWriter, read_files
from toolchains.system.errors import ImageError, UnsafeArchiveError


def layers_of(data: bytes) -> list[dict[str, tuple[tarfile.TarInfo, bytes]]]:
    """Return the entries of each layer of a docker-archive, with their content."""
    found = []
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        (manifest,) = json.loads(read(tar, "manifest.json"))
        for name in manifest["Layers"]:
            with tarfile.open(fileobj=io.BytesIO(read(tar, name))) as inner:
                found.append({info.name: (info, read(inner, info) if info.isreg() else b"") for info in inner})
    return found


def read(tar: tarfile.TarFile, member: str | tarfile.TarInfo) -> bytes:
    file = tar.extractfile(member)
    assert file is not None
    return file.read()


def test_clock_order_owners_and_engine_traces_leave_no_mark(tmp_path: Path) -> None:
    one = normalised(
        tmp_path,
        layer(folder("./etc", mtime=EPOCH + 5), entry("./etc/b", b"bee", uname="root"), entry("./etc/a", b"ay")),
        created="2031-01-01T00:00:00Z",
        container="1234",
        docker_version="20.10",
    )
    other = normalised(
        tmp_path,
        layer(
            entry("etc/a", b"ay", mode=0o100644, pax_headers={"atime": "1.5", "ctime": "2.5"}),
            folder("etc/", mtime=EPOCH + 9999.5),
            entry("etc/b", b"bee", uname="someone", gname="staff"),
        ),
        created="2032-02-02T00:00:00Z",
        history=[{"created": "2032-02-02T00:00:00Z", "created_by": "COPY"}],
        config={"Env": ["A=1"], "Hostname": "f00", "Image": "sha256:1", "User": ""},
    )
    assert one == other
    assert layers_of(one)[0]["etc/b"][1] == b"bee"


def test_content_mode_owner_attributes_and_old_dates_are_kept(tmp_path: Path) -> None:
    data = layer(entry("f", b"content", mode=0o4711, uid=33, gid=44, mtime=1000))
    info, content = layers_of(normalised(tmp_path, data))[0]["f"]
    assert (info.mode, info.uid, info.gid, info.mtime, content) == (0o4711, 33, 44, 1000, b"content")
    # A date after the epoch becomes the epoch.
    assert layers_of(normalised(tmp_path, layer(entry("f", mtime=EPOCH + 1))))[0]["f"][0].mtime == EPOCH
    # Extended attributes are kept.
    capability = {"SCHILY.xattr.security.capability": "x"}
    data = layer(entry("ping", b"", pax_headers=capability))
    assert layers_of(normalised(tmp_path, data))[0]["ping"][0].pax_headers == capability


def test_hard_links_do_not_depend_on_which_name_came_first(tmp_path: Path) -> None:
    one = normalised(tmp_path, layer(entry("b", b"same"), link("a", "b"), link("c", "b")))
    other = normalised(tmp_path, layer(entry("c", b"same"), link("b", "c"), link("a", "c")))
    assert one == other
    entries = layers_of(one)[0]
    assert entries["a"][1] == b"same"
    assert [entries[name][0].linkname for name in "bc"] == ["a", "a"]


def test_a_folder_that_a_layer_repeats_unchanged_is_dropped(tmp_path: Path) -> None:
    lower = layer(folder("etc"), folder("var"), folder("tmp", mode=0o1777))
    upper = layer(folder("etc"), folder("var", mode=0o700), folder("tmp", mode=0o1777, uid=5))
    assert set(layers_of(normalised(tmp_path, lower, upper))[1]) == {"var", "tmp"}


def test_only_whiteouts_that_hide_something_are_kept(tmp_path: Path) -> None:
    lower = layer(folder("d"), entry("d/old", b"1"), entry("d/kept", b"2"))
    upper = layer(entry("d/.wh.old"), entry("d/.wh.never"), entry("gone/.wh..wh..opq"))
    assert set(layers_of(normalised(tmp_path, lower, upper))[1]) == {"d/.wh.old"}
    # One that a layer above repeats is dropped.
    lower = layer(folder("d"), folder("d/in"), entry("d/in/x", b"1"))
    upper = layer(entry(".wh.d"))
    again = layer(entry(".wh.d"), folder("d"))
    assert [set(found) for found in layers_of(normalised(tmp_path, lower, upper, again))[1:]] == [{".wh.d"}, {"d"}]


def test_compressed_or_normalised_layers_give_the_same_image(tmp_path: Path) -> None:
    plain = layer(entry("f", b"content"))
    result = tmp_path / "normal.tar"
    docker_archive.normalise(save(tmp_path / "z.tar", [gzip.compress(plain)], [plain]), result, name=NAME)
    assert result.read_bytes() == normalised(tmp_path, plain)
    once = normalised(tmp_path, layer(entry("b", b"1"), link("a", "b")), layer(folder("d", mtime=EPOCH + 3)))
    (tmp_path / "once.tar").write_bytes(once)
    docker_archive.normalise(tmp_path / "once.tar", tmp_path / "twice.tar", name=NAME)
    assert (tmp_path / "twice.tar").read_bytes() == once


def test_names_are_the_sha256_of_what_they_name(tmp_path: Path) -> None:
    saved = save(tmp_path / "saved.tar", [layer(entry("f", b"content"))])
    id = docker_archive.normalise(saved, tmp_path / "normal.tar", name=NAME)
    with tarfile.open(tmp_path / "normal.tar") as tar:
        (manifest,) = json.loads(read(tar, "manifest.json"))
        config = read(tar, manifest["Config"])
        digests = [f"sha256:{hashlib.sha256(read(tar, name)).hexdigest()}" for name in manifest["Layers"]]
    assert id == f"sha256:{hashlib.sha256(config).hexdigest()}"
    assert json.loads(config)["rootfs"]["diff_ids"] == digests
    assert manifest["RepoTags"] == [NAME]


def test_known_layers_are_copied_or_left_out_and_the_image_stays_the_same(tmp_path: Path) -> None:
    lower, upper = layer(folder("etc")), layer(folder("etc"), entry("etc/f", b"1"))
    whole = normalised(tmp_path, lower, upper)
    saved = save(tmp_path / "again.tar", [normal_layer(whole, 0), upper])
    known = [f"sha256:{hashlib.sha256(normal_layer(whole, 0)).hexdigest()}"]
    docker_archive.normalise(saved, tmp_path / "copied.tar", name=NAME, known=known)
    assert (tmp_path / "copied.tar").read_bytes() == whole
    id = docker_archive.normalise(saved, tmp_path / "thin.tar", name=NAME, known=known, leave_out=True)
    assert id == docker_archive.normalise(saved, tmp_path / "other.tar", name=NAME)
    with tarfile.open(tmp_path / "thin.tar") as tar:
        assert len([name for name in tar.getnames() if name.endswith(".tar")]) == 1


def normal_layer(data: bytes, index: int) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return read(tar, json.loads(read(tar, "manifest.json"))[0]["Layers"][index])


def test_a_base_image_depends_on_the_content_of_its_tar_only(tmp_path: Path) -> None:
    made = []
    for entries in ((entry("./b", b"2"), entry("./a", b"1")), (entry("a", b"1"), entry("b", b"2", uname="root"))):
        (tmp_path / "rootfs.tar").write_bytes(layer(*entries))
        result = tmp_path / "image.tar"
        id = docker_archive.write_base_image(
            tmp_path / "rootfs.tar", result, name=NAME, architecture="amd64", env=["A=1"], command=["/bin/sh"]
        )
        made.append((id, result.read_bytes()))
    assert made[0] == made[1]


@pytest.mark.parametrize("content", [b"", layer(), layer(entry("manifest.json", b"[]"))])
def test_archive_without_one_image_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "saved.tar").write_bytes(content)
    with pytest.raises(ImageError, match="not an archive of one image"):
        docker_archive.normalise(tmp_path / "saved.tar", tmp_path / "normal.tar", name=NAME)


def test_a_damaged_image_of_an_engine_is_refused(tmp_path: Path) -> None:
    file = save(tmp_path / "good.tar", [layer(entry("f", b"content"))], config={"Labels": {"a": "b"}, "Cmd": ["sh"]})
    with tarfile.open(file) as tar:
        files = {name: read(tar, name) for name in tar.getnames()}
    refused = 0
    for name in ("manifest.json", "c.json"):
        for text in ("[" * 99999, *map(json.dumps, altered(json.loads(files[name])))):
            (tmp_path / "saved.tar").write_bytes(
                layer(*(entry(each, text.encode() if each == name else files[each]) for each in files))
            )
            try:
                docker_archive.normalise(tmp_path / "saved.tar", tmp_path / "normal.tar", name=NAME)
            except ImageError:
                refused += 1
    assert refused > 90
    packed = gzip.compress(files["0/layer.tar"])
    for damaged in (packed[:40], packed[:20] + bytes(20), files["0/layer.tar"][:600], files["0/layer.tar"][:512]):
        with pytest.raises(ImageError):
            normalised(tmp_path, damaged)


def test_a_layer_in_an_unknown_compression_is_refused(tmp_path: Path) -> None:
    saved = save(tmp_path / "saved.tar", [b"\x28\xb5\x2f\xfd" + bytes(1000)])
    with pytest.raises(ImageError, match="neither a tar nor compressed by gzip"):
        docker_archive.normalise(saved, tmp_path / "normal.tar", name=NAME)


@pytest.mark.parametrize("size", [1, 100_000])
@pytest.mark.parametrize("kind", ["bytes", "file"])
def test_wheel_without_room_prints_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, size: int
) -> None:
    printed: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", printed.append)
    (tmp_path / "file").write_bytes(bytes(size))
    writer = WheelWriter(Path("/dev/full"), "x.dist-info")
    with pytest.raises(OSError, match="No space left"):
        writer.add("x.py", bytes(size) if kind == "bytes" else tmp_path / "file")
        writer.close()
    del writer
    gc.collect()
    assert printed == []


def number(size: int) -> bytes:
    """Return a size of a tar's header in GNU's form for those that octal digits cannot express."""
    return (b"\xff" if size < 0 else b"\x80") + size.to_bytes(11, "big", signed=True)


@pytest.mark.parametrize(
    ("kind", "size"),
    [
        (tarfile.REGTYPE, -1024),
        (tarfile.REGTYPE, -512),
        (tarfile.XHDTYPE, 1 << 40),
        (tarfile.GNUTYPE_LONGNAME, 1 << 20),
    ],
)
def test_a_size_that_no_header_has_is_refused_before_it_is_read(kind: bytes, size: int) -> None:
    data = bytearray(layer(entry("first", b"content"), entry("second", b"", type=kind)))
    data[1024 + 124 : 1024 + 136] = number(size)
    with pytest.raises(tarfile.TarError, match=f"{size} is no size of 'second'"), opened(io.BytesIO(sums(data))) as tar:
        # tarfile would read the same entries again, for ever.
        assert [each.name for each in itertools.islice(tar, 3)] == ["first"]


def test_damaged_header_is_not_the_end_of_a_tar() -> None:
    data = bytearray(layer(entry("first", b"content"), entry("second", b"content")))
    data[1024 + 100] ^= 1
    with pytest.raises(tarfile.TarError, match="damaged header"), opened(io.BytesIO(data)) as tar:
        tar.getnames()
    with opened(io.BytesIO(layer(entry("first", b"content"))[:1024])) as tar:
        assert tar.getnames() == ["first"]


@pytest.mark.parametrize("damage", [lambda data: data[:-30], lambda data: data[1:]])
def test_a_damaged_wheel_is_refused_with_its_name(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    wheel = archive_files.wheel(tmp_path, "a", "1.0")
    wheel.write_bytes(damage(wheel.read_bytes()))
    with pytest.raises(UnsafeArchiveError, match=r"a-1\.0-py3-none-any\.whl is damaged"):
        read_files(wheel)
