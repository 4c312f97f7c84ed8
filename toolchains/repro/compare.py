"""Compare two files, folders or images, and say of each difference where it is and what differs.

A difference of archives is that of the entry which differs, at any depth: the place of a line in a wheel's file is
("layer 3: COPY wheels", "opt/x.whl", "x/__init__.py"). Text is shown as a unified diff, and an ELF file by its
sections. What cannot be read, because it is damaged or of another kind, is compared by its bytes.
"""

from __future__ import annotations

import bz2
import difflib
import gzip
import hashlib
import json
import lzma
import re
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Literal, TypeVar, cast

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import Section

from toolchains.archives import docker_archive
from toolchains.repro import members
from toolchains.repro.members import Member
from toolchains.system.console import printable
from toolchains.system.paths import scratch

Aspect = Literal["content", "presence", "kind", "mode", "owner", "time", "order", "link", "property"]
# The parts of a path: a file, the entry in it, the entry in that.
Where = tuple[str, ...]
_Named = TypeVar("_Named", Member, Section)

_CHUNK = 1 << 20
# An archive in so many others is compared by its bytes.
_DEEPEST = 12
# A text is shown as a diff up to this size in bytes, and the diff up to so many lines and characters a line.
_TEXT, _LINES, _WIDTH = 1 << 20, 60, 240
# Bytes of a difference that are shown.
_SHOWN = 24
_ELF = b"\x7fELF"
_COMPRESSED: Mapping[bytes, Callable[[IO[bytes]], Any]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ": lzma.LZMAFile,
}
# What the classic builder writes before the command of a step, with the values of its ARGs; characters of the command
# that name a layer.
_SHELL, _STEP = re.compile(r"(?:\|\d+ )?(?:\w+=\S* )*/bin/sh -c (?:#\(nop\) +)?"), 80
_STRING = re.compile(rb"[\t\x20-\x7e]{4,}")


@dataclass(frozen=True)
class Difference:
    """One difference.

    Attributes:
        where: the place, from the outermost file to the innermost entry or section.
        what: what differs there.
        first: it in the first build, for people; "" if it is absent there.
        second: it in the second build.
        detail: lines that show the difference, such as a unified diff; may be empty.
    """

    where: Where
    what: Aspect
    first: str
    second: str
    detail: str = ""

    def __str__(self) -> str:
        lines = [f"{printable(' > '.join(self.where), '')}: {self.what}"]
        shown = [printable(text, "") or "absent" for text in (self.first, self.second)]
        lines += [f"  first:  {shown[0]}", f"  second: {shown[1]}"]
        return "\n".join([*lines, *(f"  {line}" for line in self.detail.splitlines())])


def compare_files(first: Path, second: Path, where: Where = ()) -> Iterator[Difference]:
    """Yield the differences of two files."""
    with first.open("rb") as one, second.open("rb") as other:
        yield from _streams(one, other, where)


def compare_folders(
    first: Path, second: Path, where: Where = (), *, without: Collection[str] = ()
) -> Iterator[Difference]:
    """Yield the differences of the files and links below two folders; not of modes and times on this machine.

    Args:
        without: names of topmost files that are not compared.
    """
    yield from _entries(members.of_folder(first, without), members.of_folder(second, without), where)


def compare_images(first: Path, second: Path, where: Where = ()) -> Iterator[Difference]:
    """Yield the differences of two images, layer by layer, and of their configurations.

    Args:
        first, second: docker-archives.

    Raises:
        ImageError: one is not an archive of one image.
    """
    with ExitStack() as stack:
        files = [stack.enter_context(path.open("rb")) for path in (first, second)]
        tars = [stack.enter_context(docker_archive.opened(file, str(file.name))) for file in files]
        (manifest, config), (other_manifest, other_config) = (docker_archive.described(tar) for tar in tars)
        # The digests of layers are left out: the layers are compared.
        shown = [{key: value for key, value in one.items() if key != "rootfs"} for one in (config, other_config)]
        texts = [json.dumps(one, indent=1, sort_keys=True).encode() for one in shown]
        if texts[0] != texts[1]:
            yield _content((*where, "configuration"), [_described(text) for text in texts], _diff(*texts))
        steps = [step for step in config["history"] if not step.get("empty_layer")]
        layers = zip_longest(
            zip(config["rootfs"]["diff_ids"], manifest["Layers"], strict=True),
            zip(other_config["rootfs"]["diff_ids"], other_manifest["Layers"], strict=True),
        )
        for number, (one, other) in enumerate(layers, 1):
            made_by = _SHELL.sub("", steps[number - 1].get("created_by", "") if number <= len(steps) else "")
            place = (*where, f"layer {number}: {' '.join(made_by.split())[:_STEP]}".rstrip(": "))
            if one is None or other is None:
                yield Difference(place, "presence", *(each[0] if each else "" for each in (one, other)))
            elif one[0] != other[0]:
                pair = zip(tars, (one[1], other[1]), strict=True)
                plain = [docker_archive.uncompressed(docker_archive.content(tar, name), name) for tar, name in pair]
                yield from _streams(plain[0], plain[1], place)


def first_difference(first: bytes, second: bytes) -> int:
    """Return the number of the first byte that differs; the length of the shorter one if it begins the other."""
    pairs = zip(first, second, strict=False)
    return next((n for n, (one, other) in enumerate(pairs) if one != other), min(len(first), len(second)))


def config_digest(archive: Path, name: str = "") -> str:
    """Return the sha256 of the configuration of the image in a docker-archive: its ID, whatever engine has it.

    Args:
        name: what an error calls the archive, if not by its path.

    Raises:
        ImageError: it is not an archive of one image.
    """
    with archive.open("rb") as file, docker_archive.opened(file, name or str(archive)) as tar:
        manifest, _ = docker_archive.described(tar)
        return f"sha256:{hashlib.sha256(docker_archive.text(tar, manifest['Config'])).hexdigest()}"


def _streams(first: IO[bytes], second: IO[bytes], where: Where) -> Iterator[Difference]:
    at = _first_difference(first, second)
    if at is None:
        return
    note = ""
    if len(where) < _DEEPEST:
        # A damaged file may make its reader raise anything; its bytes are compared then.
        try:
            with ExitStack() as closing:
                inner = _inside(first, second, where, closing)
                is_named = False
                for difference in inner or ():
                    is_named = True
                    yield difference
                if is_named:
                    return
                note = "what is in it is equal, its own bytes are not: headers, padding or compression\n" * bool(inner)
        except Exception as error:
            note = f"it cannot be read: {error!r}\n"
    described = []
    for file in (first, second):
        file.seek(0)
        digest = hashlib.file_digest(cast(Any, file), "sha256").hexdigest()
        described.append(f"{file.tell()} bytes, sha256 {digest[:16]}")
    yield _content(where, described, note + _detail(first, second, at))


def _inside(first: IO[bytes], second: IO[bytes], where: Where, closing: ExitStack) -> Iterator[Difference] | None:
    """Return what differs inside two files of one kind; None if only their bytes can be compared."""
    starts = [_start(each, 6) for each in (first, second)]
    for magic, opened in _COMPRESSED.items():
        if all(start.startswith(magic) for start in starts):
            return _compressed(first, second, opened, where)
    if all(start.startswith(_ELF) for start in starts):
        return _sections(first, second, where)
    one, other = (members.read(each, closing) for each in (first, second))
    if one and other and one[0] == other[0]:
        return _entries(one[1], other[1], where, ordered=True)
    return None


def _entries(
    first: Sequence[Member], second: Sequence[Member], where: Where, *, ordered: bool = False
) -> Iterator[Difference]:
    ours, theirs = _by_name(first), _by_name(second)
    for key in dict.fromkeys((*ours, *theirs)):
        one, other = ours.get(key), theirs.get(key)
        place = (*where, key[0] if key[1] == 1 else f"{key[0]} (number {key[1]} of this name)")
        if one is None or other is None:
            yield Difference(place, "presence", *(each.kind if each else "" for each in (one, other)))
        elif one.kind != other.kind:
            yield Difference(place, "kind", one.kind, other.kind)
        else:
            yield from _entry(one, other, place)
    if ordered:
        orders = [key for key in ours if key in theirs], [key for key in theirs if key in ours]
        pairs = zip(*orders, strict=True)
        moved = next((pair for pair in pairs if pair[0] != pair[1]), None)
        if moved:
            number = orders[0].index(moved[0]) + 1
            yield Difference(where, "order", *(f"entry {number} is {key[0]}" for key in moved))


def _entry(first: Member, second: Member, where: Where) -> Iterator[Difference]:
    aspects: tuple[Aspect, ...] = ("mode", "owner", "time", "link")
    for aspect in aspects:
        one, other = getattr(first, aspect), getattr(second, aspect)
        if one != other:
            yield Difference(where, aspect, one, other)
    for name in sorted({*first.more, *second.more}):
        if first.more.get(name) != second.more.get(name):
            pair = (f"{name}: {each.more[name]}" if name in each.more else "" for each in (first, second))
            yield Difference(where, "property", *pair)
    if first.kind == "file":
        with first.open() as one, second.open() as other:
            yield from _streams(one, other, where)


def _by_name(entries: Iterable[_Named]) -> dict[tuple[str, int], _Named]:
    """Return entries or sections by name and number: several may have one name."""
    counts: Counter[str] = Counter()
    result = {}
    for entry in entries:
        counts[entry.name] += 1
        result[entry.name, counts[entry.name]] = entry
    return result


def _compressed(
    first: IO[bytes], second: IO[bytes], opened: Callable[[IO[bytes]], Any], where: Where
) -> Iterator[Difference]:
    heads = [_start(each, 10) for each in (first, second)]
    if heads[0][:2] == b"\x1f\x8b" and heads[0][4:8] != heads[1][4:8]:
        yield Difference(where, "time", *(f"{int.from_bytes(head[4:8], 'little')} in gzip's header" for head in heads))
    with ExitStack() as stack:
        plain = []
        for each in (first, second):
            each.seek(0)
            file = cast(IO[bytes], stack.enter_context(TemporaryFile(dir=scratch())))
            with opened(each) as packed:
                shutil.copyfileobj(packed, file, _CHUNK)
            plain.append(file)
        yield from _streams(plain[0], plain[1], where)


def _sections(first: IO[bytes], second: IO[bytes], where: Where) -> Iterator[Difference]:
    """Yield the sections of two ELF files that differ. An address that moved is no difference of the section."""
    ours, theirs = (_by_name(ELFFile(each).iter_sections()) for each in (first, second))
    for key in dict.fromkeys((*ours, *theirs)):
        one, other = ours.get(key), theirs.get(key)
        place = (*where, f"section {key[0] or '(without a name)'}")
        if one is None or other is None:
            yield Difference(place, "presence", *(f"{each['sh_size']} bytes" if each else "" for each in (one, other)))
            continue
        for name in ("sh_type", "sh_flags", "sh_addralign", "sh_entsize"):
            if one[name] != other[name]:
                yield Difference(place, "property", f"{name}: {one[name]}", f"{name}: {other[name]}")
        if one["sh_type"] == other["sh_type"] == "SHT_NOBITS":
            contents = [b"", b""]
            if one["sh_size"] != other["sh_size"]:
                yield Difference(place, "content", *(f"{each['sh_size']} bytes" for each in (one, other)))
        else:
            contents = [each.data() for each in (one, other)]
        if contents[0] != contents[1]:
            yield _content(place, list(map(_described, contents)), _section_detail(contents[0], contents[1]))


def _content(where: Where, described: Sequence[str], detail: str) -> Difference:
    return Difference(where, "content", described[0], described[1], detail)


def _section_detail(first: bytes, second: bytes) -> str:
    """Return the strings that only one of two sections has if there are any; otherwise the first bytes that differ."""
    ours, theirs = (dict.fromkeys(_STRING.findall(each)) for each in (first, second))
    only = [f"-{text.decode('ascii')}" for text in ours if text not in theirs]
    only += [f"+{text.decode('ascii')}" for text in theirs if text not in ours]
    # In machine code, some bytes look like text by chance.
    if only and sum(map(len, ours)) > len(first) / 2:
        return _limited(only)
    at = first_difference(first, second)
    return _bytes_at(at, first[at : at + _SHOWN], second[at : at + _SHOWN])


def _detail(first: IO[bytes], second: IO[bytes], at: int) -> str:
    texts = [_text(each) for each in (first, second)]
    if texts[0] is not None and texts[1] is not None:
        return _diff(texts[0], texts[1])
    pieces = []
    for each in (first, second):
        each.seek(at)
        pieces.append(each.read(_SHOWN))
    return _bytes_at(at, *pieces)


def _bytes_at(at: int, first: bytes, second: bytes) -> str:
    return f"at byte {at}:\n-{first!r}\n+{second!r}"


def _text(file: IO[bytes]) -> bytes | None:
    """Return the content of a text of a moderate size; None for other files."""
    content = _start(file, _TEXT + 1)
    if len(content) > _TEXT or b"\0" in content:
        return None
    try:
        content.decode()
    except UnicodeDecodeError:
        return None
    return content


def _diff(first: bytes, second: bytes) -> str:
    # Not splitlines: a form feed ends no line, and a return that only one text has must be seen.
    ours, theirs = (each.decode().split("\n") for each in (first, second))
    lines = list(difflib.unified_diff(ours, theirs, lineterm="", n=2))[2:]
    return _limited(lines)


def _limited(lines: Sequence[str]) -> str:
    shown = [printable(line[:_WIDTH], "") + "..." * (len(line) > _WIDTH) for line in lines[:_LINES]]
    return "\n".join(shown + [f"... and {len(lines) - _LINES} more lines"] * (len(lines) > _LINES))


def _start(file: IO[bytes], size: int) -> bytes:
    file.seek(0)
    return file.read(size)


def _first_difference(first: IO[bytes], second: IO[bytes]) -> int | None:
    """Return the number of the first byte that differs; None if there is none."""
    for each in (first, second):
        each.seek(0)
    at = 0
    while True:
        one, other = first.read(_CHUNK), second.read(_CHUNK)
        if one != other:
            return at + first_difference(one, other)
        if not one:
            return None
        at += len(one)


def _described(content: bytes) -> str:
    return f"{len(content)} bytes, sha256 {hashlib.sha256(content).hexdigest()[:16]}"
