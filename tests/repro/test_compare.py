"""Comparing: each kind of difference is found at its place, at any depth, and equal things have none."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import elves
import pytest
from image_archives import image, layer

from toolchains.repro.compare import Difference, compare_files, compare_folders, compare_images, config_digest

TEXT = b"one\ntwo\nthree\n"


def entry(name: str, content: bytes = TEXT, **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    made = tarfile.TarInfo(name)
    for key, value in fields.items():
        setattr(made, key, value)
    if made.type == tarfile.SYMTYPE:
        content = b""
    made.size = len(content)
    return made, content


def wheel(content: bytes = TEXT, *, mode: int = 0o644, day: int = 1, compression: int = zipfile.ZIP_STORED) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", compression) as packed:
        header = zipfile.ZipInfo("toy/__init__.py", (2026, 1, day, 0, 0, 0))
        header.external_attr, header.compress_type = (0o100000 | mode) << 16, compression
        packed.writestr(header, content)
    return made.getvalue()


def ar(content: bytes, *, mode: str = "100644", date: int = 0) -> bytes:
    members = b"!<arch>\n"
    for name, inner in ((b"//", b"a_name_of_more_than_16_characters.o/\n"), (b"/0", content)):
        members += b"%-16s%-12d%-6d%-6d%-8s%-10d`\n" % (name, date, 0, 0, mode.encode(), len(inner))
        members += inner + b"\n" * (len(inner) % 2)
    return members


def differences(folder: Path, first: bytes, second: bytes) -> list[Difference]:
    for name, content in (("first", first), ("second", second)):
        (folder / name).write_bytes(content)
    return list(compare_files(folder / "first", folder / "second", ("it",)))


FLIPPED = b"one\ntwo!\nthree\n"
DIFF = " one\n-two\n+two!\n three"


@pytest.mark.parametrize(
    ("first", "second", "where", "what", "said"),
    [
        (TEXT, FLIPPED, (), "content", DIFF),
        (b"\0" * 100 + b"a", b"\0" * 100 + b"b", (), "content", "at byte 100:\n-b'a'\n+b'b'"),
        (layer(entry("a")), layer(entry("a", FLIPPED)), ("a",), "content", DIFF),
        (layer(entry("a")), layer(entry("a", mode=0o755)), ("a",), "mode", "0644 0755"),
        (layer(entry("a")), layer(entry("a", uid=7)), ("a",), "owner", "0:0 7:0"),
        (layer(entry("a")), layer(entry("a", mtime=60)), ("a",), "time", "1970-01-01 00:00:00 1970-01-01 00:01:00"),
        (layer(entry("a"), entry("b")), layer(entry("b"), entry("a")), (), "order", "entry 1 is a entry 1 is b"),
        (layer(entry("a")), layer(entry("a"), entry("b")), ("b",), "presence", " file"),
        (layer(entry("a"), entry("b")), layer(entry("a")), ("b",), "presence", "file "),
        (layer(entry("a")), layer(entry("a"), entry("a")), ("a (number 2 of this name)",), "presence", " file"),
        (
            layer(entry("a")),
            layer(entry("a", type=tarfile.SYMTYPE, linkname="b")),
            ("a",),
            "kind",
            "file symbolic link",
        ),
        (
            layer(entry("a", type=tarfile.SYMTYPE, linkname="x")),
            layer(entry("a", type=tarfile.SYMTYPE, linkname="y")),
            ("a",),
            "link",
            "x y",
        ),
        (
            layer(entry("a", pax_headers={"SCHILY.xattr.user.k": "1"})),
            layer(entry("a")),
            ("a",),
            "property",
            "SCHILY.xattr.user.k: 1 ",
        ),
        (wheel(), wheel(FLIPPED), ("toy/__init__.py",), "content", DIFF),
        (wheel(), wheel(mode=0o755), ("toy/__init__.py",), "mode", "100644 100755"),
        (wheel(), wheel(day=2), ("toy/__init__.py",), "time", "2026-01-01 00:00:00 2026-01-02 00:00:00"),
        (
            wheel(),
            wheel(compression=zipfile.ZIP_DEFLATED),
            ("toy/__init__.py",),
            "property",
            "compression: 0 compression: 8",
        ),
        (ar(TEXT), ar(FLIPPED), ("a_name_of_more_than_16_characters.o",), "content", DIFF),
        (gzip.compress(TEXT, mtime=0), gzip.compress(FLIPPED, mtime=0), (), "content", DIFF),
        (
            gzip.compress(TEXT, mtime=0),
            gzip.compress(TEXT, mtime=9),
            (),
            "time",
            "0 in gzip's header 9 in gzip's header",
        ),
        (
            layer(entry("x.tar.gz", gzip.compress(layer(entry("y.whl", wheel())), mtime=0))),
            layer(entry("x.tar.gz", gzip.compress(layer(entry("y.whl", wheel(FLIPPED))), mtime=0))),
            ("x.tar.gz", "y.whl", "toy/__init__.py"),
            "content",
            DIFF,
        ),
    ],
    ids=lambda each: "" if isinstance(each, bytes | tuple) else None,
)
def test_one_difference_is_named_once_at_its_place(
    first: bytes, second: bytes, where: tuple[str, ...], what: str, said: str, tmp_path: Path
) -> None:
    found = differences(tmp_path, first, second)
    assert [(each.where, each.what) for each in found] == [(("it", *where), what)]
    assert said in (found[0].detail if what == "content" else f"{found[0].first} {found[0].second}")
    assert differences(tmp_path, first, first) == differences(tmp_path, second, second) == []


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (layer(entry("a")), layer(entry("a")) + bytes(512), "what is in it is equal"),
        (gzip.compress(bytes(9000), 1, mtime=0), gzip.compress(bytes(9000), 9, mtime=0), "what is in it is equal"),
        (layer(entry("a"))[:520], layer(entry("a")), "it cannot be read"),
        (b"PK\x03\x04 no zip", b"PK\x03\x04 nor this", "it cannot be read: BadZipFile"),
        (b"\x7fELF none", b"\x7fELF nor this", "it cannot be read: ELF"),
        (b"!<arch>\nnone" + bytes(60), b"!<arch>\nnor this" + bytes(60), "it cannot be read: ValueError"),
    ],
    ids=lambda each: "" if isinstance(each, bytes) else None,
)
def test_unequal_bytes_are_always_a_difference(first: bytes, second: bytes, said: str, tmp_path: Path) -> None:
    assert any(each.what == "content" and said in each.detail for each in differences(tmp_path, first, second))


def test_a_long_difference_is_cut_and_moves_no_cursor(tmp_path: Path) -> None:
    lines = [f"{n}\x1b[31m{'x' * 1000}\n" for n in range(500)]
    (found,) = differences(tmp_path, b"", "".join(lines).encode())
    assert "\x1b" not in str(found) and "\\x1b[31m" in str(found)
    assert found.detail.endswith("more lines") and max(map(len, str(found).splitlines())) < 1000


def test_library_differs_by_its_sections_and_by_bytes_of_none(tmp_path: Path) -> None:
    one, other = (elves.make(tmp_path / name, {function: ""}) for name, function in (("a", "sine"), ("b", "cosine")))
    found = {each.where[-1]: each for each in compare_files(one, other, ("lib.so",))}
    assert "-sine\n+cosine" in found["section .dynstr"].detail
    assert "section .text" not in found
    flipped = bytearray(one.read_bytes())
    flipped[flipped.index(b"\xc3", 0x200)] = 0x90
    (found_text,) = differences(tmp_path, one.read_bytes(), bytes(flipped))
    assert found_text.where == ("it", "section .text") and "-b'\\xc3" in found_text.detail
    library = elves.make(tmp_path / "a", {"sin": ""}).read_bytes()
    (header,) = differences(tmp_path, library, elves.for_freebsd(library))
    assert header.where == ("it",) and "at byte 7" in header.detail


def test_folders_are_compared_by_content_links_and_presence(tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    for folder in (first, second):
        (folder / "in").mkdir(parents=True)
        (folder / "same").write_bytes(TEXT)
        (folder / "left-out").write_text(folder.name)
        (folder / "in" / "x.whl").write_bytes(wheel(TEXT if folder == first else FLIPPED))
        (folder / "link").symlink_to(folder.name)
    (second / "empty").mkdir()
    (second / "same").chmod(0o600)
    found = {each.where: each.what for each in compare_folders(first, second, without={"left-out"})}
    assert found == {("in/x.whl", "toy/__init__.py"): "content", ("link",): "link", ("empty",): "presence"}


def zipped_layers(file: Path) -> Path:
    """Return a docker-archive as engines write it that keep compressed layers."""
    made = file.with_suffix(".zipped")
    with tarfile.open(file) as packed, made.open("wb") as out:
        entries = [(header, packed.extractfile(header).read()) for header in packed]  # type: ignore[union-attr]
        out.write(
            layer(
                *(
                    entry(each.name, gzip.compress(data) if each.name.endswith(".tar") else data)
                    for each, data in entries
                )
            )
        )
    return made


@pytest.mark.parametrize("kept", [lambda file: file, zipped_layers], ids=["plain", "compressed"])
def test_images_are_compared_by_their_layers_and_configurations(kept: Callable[[Path], Path], tmp_path: Path) -> None:
    one = image(tmp_path / "a.tar", {"etc/x": TEXT})
    other = kept(image(tmp_path / "b.tar", {"etc/x": FLIPPED}))
    (found,) = compare_images(one, other)
    assert found.where == ("layer 1: mmdebstrap", "etc/x") and DIFF in found.detail
    same = kept(image(tmp_path / "c.tar", {"etc/x": TEXT}))
    assert list(compare_images(one, same)) == []
    (found,) = compare_images(one, kept(image(tmp_path / "d.tar", {"etc/x": TEXT}, env=["A=2"])))
    assert found.where == ("configuration",) and '+   "A=2"' in found.detail


def test_an_images_id_is_that_of_its_configuration(tmp_path: Path) -> None:
    file = image(tmp_path / "a.tar", {"x": TEXT})
    with tarfile.open(file) as packed:
        manifest = json.load(packed.extractfile("manifest.json"))  # type: ignore[arg-type]
    assert {config_digest(file), config_digest(zipped_layers(file))} == {
        "sha256:" + manifest[0]["Config"].removesuffix(".json")
    }
