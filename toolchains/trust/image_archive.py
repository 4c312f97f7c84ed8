"""Account for every byte of a saved image: the archive around it, its configuration, each entry of its layers.

What is expected is a configuration, which names the layers by their digests, and listings of these layers. The archive
is docker_archive's or an engine's. Nothing that an engine writes around an image is trusted: headers and padding must
be a tar's, JSON must be the engine's, and the manifest or Docker's older layout must name each file.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import posixpath
import re
import stat
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from toolchains.archives import confine, docker_archive, tar_file
from toolchains.images.listing import Entry, scan
from toolchains.system import json_text
from toolchains.system.errors import ImageError

Listing = Callable[[str], Sequence[Entry] | None]
_CHUNK = 4 << 20
# Where a configuration says how the image is run, and on what.
_SETTINGS = ("config.", "architecture", "os")
_KEPT = tuple(f"config.{key}" for key in docker_archive.KEPT_CONFIG)
_MANIFEST = "manifest.json"
_LAYERS = ("application/vnd.oci.image.layer.v1.tar", "application/vnd.docker.image.rootfs.diff.tar")
_BLOB = re.compile(r"blobs/sha256/([0-9a-f]{64})")


@dataclass(frozen=True)
class Found:
    """Something that is not as expected: the file, label or part of the archive, and what is wrong with it."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass(frozen=True)
class _Part:
    """An entry of the archive: where its content is, and its size; whether it is a folder."""

    offset: int
    size: int
    is_folder: bool = False


def check(archive: Path, config: bytes, listing: Listing, names: Sequence[str]) -> Iterator[Found]:
    """Yield each part of an archive that is not accounted for.

    Args:
        archive: a docker-archive of one image.
        config: the text of the configuration that it must have.
        listing: returns the entries of a layer by its digest, or None.
        names: the tags that it may have.

    Raises:
        ImageError: see read.
    """
    with archive.open("rb") as file:
        parts = _parts(file)
        manifest = _manifest(file, parts)
        text = _content(file, parts[manifest["Config"]], manifest["Config"])
        expected = json.loads(config)
        findings = [
            *_layers(file, [parts[name] for name in manifest["Layers"]], expected["rootfs"]["diff_ids"], listing),
            *(
                Found(f"the tag {tag}", f"not one of this image: {', '.join(names)}")
                for tag in manifest.get("RepoTags") or []
                if tag not in names
            ),
            *_settings(text, expected),
            *_around(file, parts, manifest, expected),
        ]
        if not findings and text != config:
            findings.append(Found("the configuration", "other bytes, outside of its settings"))
        yield from findings


def read(archive: Path) -> tuple[Sequence[str], bytes]:
    """Return the tags of the image in an archive, and the text of its configuration.

    Raises:
        ImageError: it is not an archive of one image, or damaged; names the part, and says why.
    """
    with archive.open("rb") as file:
        parts = _parts(file)
        manifest = _manifest(file, parts)
        return manifest.get("RepoTags") or [], _content(file, parts[manifest["Config"]], manifest["Config"])


def _parts(file: IO[bytes]) -> dict[str, _Part]:
    """Return the files and folders of a tar, after checking each header, and that everything else is zero.

    Raises:
        ImageError: says at which file.
    """
    parts: dict[str, _Part] = {}
    last, links = "the first file", {}
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    while True:
        block = file.read(tarfile.BLOCKSIZE)
        if block == bytes(tarfile.BLOCKSIZE):
            break
        try:
            entry = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except tarfile.HeaderError as error:
            raise ImageError(f"the archive, after {last}", why=f"a damaged header: {error}") from error
        if entry.name in parts:
            raise ImageError(entry.name, why="the archive has it twice")
        if not 0 <= entry.size <= (size if entry.isreg() else 0):
            raise ImageError(entry.name, why=f"it would have {entry.size} bytes")
        if block not in _headers(entry):
            raise ImageError(entry.name, why="its header in the archive is damaged, or is not as an engine writes it")
        last = entry.name
        if entry.issym():
            folder = posixpath.dirname(entry.name)
            links[entry.name] = target = posixpath.normpath(posixpath.join(folder, entry.linkname))
            if entry.linkname != posixpath.relpath(target, folder):
                raise ImageError(entry.name, why=f"an engine writes no link to {entry.linkname}")
        elif not entry.isreg() and not entry.isdir():
            raise ImageError(entry.name, why="neither a file nor a folder of an image")
        parts[entry.name] = _Part(file.tell(), entry.size, entry.isdir())
        file.seek(entry.size, 1)
        if file.read(-entry.size % tarfile.BLOCKSIZE).strip(b"\0"):
            raise ImageError(entry.name, why="the padding after it is not empty")
    while rest := file.read(_CHUNK):
        if rest.strip(b"\0"):
            raise ImageError("the end of the archive", why="it is not empty")
    for name, target in links.items():
        if target not in parts or parts[target].is_folder:
            raise ImageError(name, why=f"it is a link to {target}, which the archive does not have")
        parts[name] = parts[target]
    return parts


def _headers(entry: tarfile.TarInfo) -> Iterator[bytes]:
    """Yield the headers that engines write for an entry, in tarfile's formats and in Go's.

    They have only the entry's name, kind, size, date, and the target of a link; a mode with which nobody but its owner
    can write to it; and no owner, or root.
    """
    plain = tarfile.TarInfo(entry.name)
    # tarfile takes other kinds for plain files, too.
    plain.type = tarfile.REGTYPE if entry.isreg() else entry.type
    plain.size, plain.mtime = entry.size, entry.mtime
    plain.linkname = entry.linkname if entry.issym() else ""
    kind = stat.S_IFLNK if entry.issym() else stat.S_IFDIR if entry.isdir() else stat.S_IFREG
    mode = entry.mode & (0o777 if entry.issym() else 0o755)
    for owner in ("", "root"):
        plain.uname = plain.gname = owner
        for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT):
            with suppress(ValueError):
                block = plain.tobuf(form)
                # Docker writes what kind of a file it is into the mode, too, and the numbers of a device for each file.
                for shown, device in itertools.product((mode, kind | mode), (bytes(16), b"0000000\0" * 2)):
                    before = block[:100] + b"%07o\0" % shown + block[108:148]
                    after = block[156:329] + device + block[345:]
                    yield before + b"%06o\0 " % sum(before + b" " * 8 + after) + after


def _manifest(file: IO[bytes], parts: Mapping[str, _Part]) -> docker_archive.Manifest:
    """Return what manifest.json says.

    Raises:
        ImageError: it is none of one image, or names files that are not there.
    """
    if _MANIFEST not in parts or parts[_MANIFEST].is_folder:
        raise ImageError(_MANIFEST, why="the archive does not have it")
    text = _content(file, parts[_MANIFEST], _MANIFEST)
    try:
        manifests = json_text.parse(text, list[docker_archive.Manifest])
        (manifest,) = manifests
    except ValueError as error:
        raise ImageError(_MANIFEST, why=f"not of one image: {error}") from error
    allowed = {"Config", "Layers", "RepoTags", "LayerSources"}
    fields = json.loads(text)[0]
    if (
        not _is_compact(text)
        or set(fields) - allowed
        or not _are_sources(fields.get("LayerSources") or {}, manifest, parts)
    ):
        raise ImageError(_MANIFEST, why="it is not as an engine writes it")
    for name in (manifest["Config"], *manifest["Layers"]):
        if name not in parts or parts[name].is_folder:
            raise ImageError(name, why=f"{_MANIFEST} names it, and the archive does not have it")
    return manifest


def _are_sources(sources: Any, manifest: docker_archive.Manifest, parts: Mapping[str, _Part]) -> bool:
    """Return whether a manifest's LayerSources describe its layers, and say nothing else."""
    layers = {f"sha256:{blob[1]}": parts[name] for name in manifest["Layers"] if (blob := _BLOB.fullmatch(name))}
    return isinstance(sources, dict) and all(
        digest in layers
        and sources[digest] in [{"mediaType": kind, "size": layers[digest].size, "digest": digest} for kind in _LAYERS]
        for digest in sources
    )


def _is_compact(text: bytes) -> bool:
    """Return whether a text is JSON as engines write it, without spaces."""
    return text.removesuffix(b"\n") == _go_json(json.loads(text))


def _go_json(value: Any) -> bytes:
    """Return JSON as Go writes it, with the keys in their order."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.encode()


def _settings(text: bytes, expected: Mapping[str, Any]) -> Iterator[Found]:
    """Yield the labels and other settings that differ in a configuration."""
    try:
        actual = dict(_leaves(json.loads(text)))
    except (ValueError, RecursionError) as error:
        yield Found("the configuration", f"it is damaged: {error}")
        return
    wanted = dict(_leaves(expected))
    # The settings that an engine's `commit` adds come last.
    for key in sorted({*actual, *wanted}, key=lambda key: (not key.startswith(_KEPT), key)):
        if key.startswith(_SETTINGS) and actual.get(key) != wanted.get(key):
            yield Found(f"the configuration's {key}", f"{_shown(wanted, key)} became {_shown(actual, key)}")


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield what is in a configuration by dotted names; lists are one value."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(inner, f"{name}.{key}" if name else key)
    else:
        yield name, value


def _shown(values: Mapping[str, Any], key: str) -> str:
    return json.dumps(values[key]) if key in values else "nothing"


def _layers(file: IO[bytes], parts: Sequence[_Part], expected: Sequence[str], listing: Listing) -> Iterator[Found]:
    digests = [_digest(file, part) for part in parts]
    if digests == list(expected):
        return
    findings = list(_in_files(file, parts, expected, listing))
    if findings:
        yield from findings
        return
    # The same files, so what differs is how they are written.
    for number, (part, digest, wanted) in enumerate(zip(parts, digests, expected, strict=False), 1):
        entries = listing(wanted)
        if digest != wanted:
            what = "no record of its files" if entries is None else first_difference(_view(file, part), entries)
            yield Found(f"layer {number}", what)
    if len(parts) != len(expected):
        yield Found("the layers", f"{len(expected)} became {len(parts)}")


def _in_files(file: IO[bytes], parts: Sequence[_Part], expected: Sequence[str], listing: Listing) -> Iterator[Found]:
    """Yield the files that differ when all layers are applied; nothing if a layer cannot be read."""
    wanted, actual = _Tree(), _Tree()
    for digest in expected:
        entries = listing(digest)
        if entries is None:
            return
        wanted.apply(entries)
    try:
        for part in parts:
            view = _view(file, part)
            actual.apply(scan(view))
            # A tar ends for its reader where a header is damaged.
            if view.read().strip(b"\0"):
                return
    except tar_file.DAMAGED:
        return
    yield from wanted.differences(actual)


class _Tree:
    """A file system: the entries that layers leave, by path."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}

    def apply(self, layer: Iterable[Entry]) -> None:
        """Put a layer over what is there."""
        for entry in layer:
            path = posixpath.normpath(entry.name.lstrip("/"))
            folder, last = posixpath.split(path)
            if last.startswith(docker_archive.WHITEOUT):
                gone = posixpath.join(folder, last.removeprefix(docker_archive.WHITEOUT))
                gone = folder if last == docker_archive.OPAQUE else gone
                for inner in [inner for inner in self.entries if inner.startswith(gone + "/")]:
                    del self.entries[inner]
                if last != docker_archive.OPAQUE:
                    self.entries.pop(gone, None)
            elif path != ".":
                self.entries[path] = entry

    def differences(self, other: _Tree) -> Iterator[Found]:
        """Yield what differs in another tree. A time alone comes last: it follows from other changes."""
        removed = {path: entry for path, entry in self.entries.items() if path not in other.entries}
        by_content = {entry.sha256: path for path, entry in removed.items() if entry.size}
        times = []
        for path, after in sorted(other.entries.items()):
            before = self.entries.get(path)
            if before is None:
                renamed = by_content.pop(after.sha256, "")
                removed.pop(renamed, None)
                yield Found(path, f"it was added: {renamed} under another name" if renamed else "it was added")
            elif changes := _changes(before, after):
                yield Found(path, ", ".join(changes))
            elif before.mtime != after.mtime:
                times.append(Found(path, f"its time: {before.mtime} became {after.mtime}"))
        for path in removed:
            yield Found(path, "it was removed")
        yield from times


def _changes(before: Entry, after: Entry) -> list[str]:
    """Return what changed in an entry besides its time."""
    shown = {
        "type": (before.type, after.type),
        "mode": (f"{before.mode & 0o7777:o}", f"{after.mode & 0o7777:o}"),
        "owner": (f"{before.uid}:{before.gid}", f"{after.uid}:{after.gid}"),
        "size": (before.size, after.size),
        "target": (before.link, after.link),
        "device": (before.device, after.device),
        "attributes": (dict(before.pax), dict(after.pax)),
    }
    changes = [
        f"its {what}: {old or 'none'} became {new or 'none'}" for what, (old, new) in shown.items() if old != new
    ]
    return changes + ["its content"] * (before.sha256 != after.sha256)


def first_difference(layer: IO[bytes], entries: Sequence[Entry]) -> str:
    """Return where the bytes of a layer first differ from those of a listing, and how.

    Args:
        layer: an uncompressed tar.
        entries: the entries that it must have, in their order.
    """
    size = 0
    for entry in entries:
        header = entry.header()
        if layer.read(len(header)) != header:
            return f"{entry.name}: its header"
        content = _sha256(layer, entry.size if entry.sha256 else 0)
        if entry.sha256 and content != entry.sha256:
            return f"{entry.name}: its content"
        padding = tar_file.padding(entry.size) if entry.sha256 else b""
        if layer.read(len(padding)) != padding:
            return f"{entry.name}: the padding after it"
        size += len(header) + (entry.size if entry.sha256 else 0) + len(padding)
    end = tar_file.END + bytes(-(size + len(tar_file.END)) % tarfile.RECORDSIZE)
    return "its end" if layer.read(len(end) + 1) != end else "nothing of its bytes, but its digest"


def _view(file: IO[bytes], part: _Part) -> IO[bytes]:
    return tar_file.section(file, part.offset, part.size)


def _content(file: IO[bytes], part: _Part, name: str) -> bytes:
    """Return the content of one of the archive's texts.

    Raises:
        ImageError: it is too large for one.
    """
    if part.size > docker_archive.MOST:
        raise ImageError(name, why=f"it has {part.size} bytes, more than any text of an image")
    return _view(file, part).read()


def _digest(file: IO[bytes], part: _Part) -> str:
    return f"sha256:{_sha256(_view(file, part), part.size)}"


def _sha256(file: IO[bytes], size: int) -> str:
    """Return the sha256 of the next bytes of a file."""
    digest = hashlib.sha256()
    while size > 0 and (chunk := file.read(min(size, _CHUNK))):
        digest.update(chunk)
        size -= len(chunk)
    return digest.hexdigest()


def _around(
    file: IO[bytes], parts: Mapping[str, _Part], manifest: docker_archive.Manifest, config: Mapping[str, Any]
) -> Iterator[Found]:
    """Yield the entries around an image that say something else than its manifest, or that nothing names."""
    named = {_MANIFEST, manifest["Config"], *manifest["Layers"]}
    allowed = set(_older(file, parts, manifest, config))
    for name in (manifest["Config"], *manifest["Layers"]):
        blob = _BLOB.fullmatch(name)
        if blob and _digest(file, parts[name]) != f"sha256:{blob[1]}":
            yield Found(name, "its name is not its digest")
    folders = {folder for name in named | allowed for folder in confine.parent_folders(name)}
    for name in sorted(set(parts) - named - allowed):
        if not (name in folders and parts[name].is_folder):
            yield Found(name, "nothing names this entry of the archive, or it is not as an engine writes it")


def _older(
    file: IO[bytes], parts: Mapping[str, _Part], manifest: docker_archive.Manifest, config: Mapping[str, Any]
) -> Iterator[str]:
    """Yield the files of Docker's older layout that are right: a layer's folder is named by the digest of its JSON."""
    chain, parent = "", ""
    for name, layer in zip(manifest["Layers"], config["rootfs"]["diff_ids"], strict=False):
        chain = f"sha256:{hashlib.sha256(f'{chain} {layer}'.encode()).hexdigest()}" if chain else layer
        folder = posixpath.dirname(name)
        if {f"{folder}/VERSION", f"{folder}/json"} <= parts.keys():
            if _content(file, parts[f"{folder}/VERSION"], f"{folder}/VERSION") == b"1.0":
                yield f"{folder}/VERSION"
            text = _content(file, parts[f"{folder}/json"], f"{folder}/json")
            if _is_older_json(text, folder, parent, chain, config["os"]):
                yield f"{folder}/json"
        parent = folder
    tags: dict[str, dict[str, str]] = {}
    for tag in manifest.get("RepoTags") or []:
        repository, _, label = tag.rpartition(":")
        tags.setdefault(repository, {})[label] = parent
    if "repositories" in parts and _content(file, parts["repositories"], "repositories") == _go_json(tags) + b"\n":
        yield "repositories"


def _is_older_json(text: bytes, folder: str, parent: str, chain: str, system: str) -> bool:
    """Return whether a layer's JSON is the one that names its folder: Docker's v1.CreateID."""
    try:
        value = json.loads(text)
        if not _is_compact(text) or value.pop("id") != folder or value.pop("parent", "") != parent:
            return False
        # Docker adds it afterwards to all but the last layer.
        if "config" not in value and value.pop("os") != system:
            return False
        value |= {"layer_id": chain} | ({"parent": f"sha256:{parent}"} if parent else {})
        return hashlib.sha256(_go_json(dict(sorted(value.items())))).hexdigest() == folder
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return False
