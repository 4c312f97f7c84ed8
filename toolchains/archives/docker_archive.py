"""Write reproducible Docker archives: create one for a base image, or normalise one from an image build.

The output of `docker save` depends on the clock and on the engine. This module writes every layer again: entries are
sorted, and times, owners and modes are reduced to what matters. It does the same with the configuration. The ID of an
image is the sha256 of its configuration, which names the layers by their sha256: the same content gives the same ID.
"""

from __future__ import annotations

import copy
import gzip
import hashlib
import io
import json
import posixpath
import tarfile
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, Any, NotRequired, TypedDict, cast

import msgspec

from toolchains.archives import confine, tar_file
from toolchains.archives.tar_file import EPOCH, HashedWriter, TarWriter, reading
from toolchains.system import foreign
from toolchains.system.errors import ImageError
from toolchains.system.paths import scratch

# The revision of the bytes written: raise it whenever they change. It is part of the identity of artifacts.
FORMAT = 1
# Bytes of manifest.json and of a configuration, as registries limit them.
MOST = 4 << 20
# A label of the images of an unfinished build; its value names the process. A finished image does not have it.
BUILD_LABEL = "org.triton-foundry.build"
_CREATED = datetime.fromtimestamp(EPOCH, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
_GZIP = b"\x1f\x8b"
# An entry of this name hides everything that lower layers have in its folder; .wh.X marks X as deleted.
OPAQUE = ".wh..wh..opq"
WHITEOUT = ".wh."
# Extended attributes belong to the file. Access and change times do not: they come from the machine that built the
# layer.
KEPT_PAX = "SCHILY.xattr."
# The parts of a configuration about running the image. Not kept: the engine's host name, parent image and container.
KEPT_CONFIG = (
    "Cmd",
    "Entrypoint",
    "Env",
    "ExposedPorts",
    "Healthcheck",
    "Labels",
    "OnBuild",
    "Shell",
    "StopSignal",
    "User",
    "Volumes",
    "WorkingDir",
)


class Manifest(TypedDict):
    """What manifest.json says of an image: the names of files in the archive, and its tags."""

    Config: str
    Layers: list[str]
    RepoTags: NotRequired[list[str] | None]


class _Running(TypedDict):
    Labels: NotRequired[dict[str, str] | None]
    Cmd: NotRequired[list[str] | None]
    Env: NotRequired[list[str] | None]


class _Step(TypedDict):
    created_by: NotRequired[str]
    empty_layer: NotRequired[bool]


class _Rootfs(TypedDict):
    diff_ids: list[str]


class ImageConfig(TypedDict):
    """What is read of an image's configuration."""

    architecture: str
    os: str
    config: _Running
    history: list[_Step]
    rootfs: _Rootfs


def write_base_image(
    rootfs: Path, archive: Path, *, name: str, architecture: str, env: list[str], command: list[str]
) -> str:
    """Create an image of one layer from a tar of a root file system.

    Args:
        rootfs: the tar.
        archive: path of the docker-archive to write.
        name: the image's tag when it is loaded.
        architecture: Docker's name for it, such as "amd64".

    Returns:
        The image's ID, "sha256:...".
    """
    with archive.open("wb") as file, rootfs.open("rb") as source:
        writer = _Writer(file)
        writer.layer(partial(_normalise, source, below=_Below()))
        config = {
            "architecture": architecture,
            "os": "linux",
            "config": {"Cmd": command, "Env": env},
            "history": [{"created_by": "mmdebstrap"}],
        }
        return writer.finish(config, name)


def normalise(saved: Path, archive: Path, *, name: str, known: Collection[str] = (), leave_out: bool = False) -> str:
    """Rewrite a saved image, so that two builds of the same content give the same bytes.

    Args:
        saved: the engine's archive, in Docker's own layout or in OCI's with Docker's manifest.
        archive: path of the normalised docker-archive to write.
        name: the image's tag when it is loaded.
        known: digests ("sha256:...") of layers that are already normalised; they are copied unchanged.
        leave_out: name the known layers without copying them, for an engine that has them.

    Returns:
        The image's ID, "sha256:...".

    Raises:
        ImageError: the file is not an archive of one image, or a layer's compression is not supported.
    """
    with saved.open("rb") as source, archive.open("wb") as file, opened(source, f"{saved}") as tar:
        manifest, config = described(tar)
        writer = _Writer(file)
        below = _Below()
        for digest, member in zip(config["rootfs"]["diff_ids"], manifest["Layers"], strict=True):
            with uncompressed(content(tar, member), member) as plain:
                if digest not in known:
                    writer.layer(partial(_normalise, plain, below=below))
                    continue
                below.scan(plain)
                writer.known_layer(digest, None if leave_out else plain)
        return writer.finish(config, name)


@contextmanager
def opened(file: IO[bytes], called: str) -> Iterator[tarfile.TarFile]:
    """Open a docker-archive.

    Raises:
        ImageError: it is damaged, or something else.
    """
    with reading(f"not an archive of one image: {called}", error=ImageError), tar_file.opened(file) as tar:
        yield tar


def described(tar: tarfile.TarFile) -> tuple[Manifest, ImageConfig]:
    """Return the manifest of the one image in a docker-archive, and its configuration.

    Raises:
        ValueError, LookupError: there is no such image; see opened().
        FileError: see text().
    """
    (manifest,) = msgspec.convert(json.loads(text(tar, "manifest.json")), list[Manifest])
    config = json.loads(text(tar, manifest["Config"]))
    # Only checked: a configuration has more than these types do.
    msgspec.convert(config, ImageConfig)
    return manifest, config


@dataclass
class _Below:
    """The content of the layers so far: for a folder its metadata, for anything else None."""

    entries: dict[str, Any] = field(default_factory=dict)

    def scan(self, source: IO[bytes]) -> None:
        """Record the content of a layer."""
        with tar_file.opened(source) as tar:
            for name, entry in _entries(tar).items():
                self.add(name, entry)

    def add(self, name: str, entry: tarfile.TarInfo) -> None:
        """Record an entry, and the folders that its name implies."""
        folder, last = posixpath.split(name)
        if last.startswith(WHITEOUT):
            gone = folder if last == OPAQUE else posixpath.join(folder, last.removeprefix(WHITEOUT))
            inside = gone + "/"
            for path in [path for path in self.entries if path.startswith(inside)]:
                del self.entries[path]
            if last != OPAQUE:
                self.entries.pop(gone, None)
            return
        self.entries[name] = _metadata(entry) if entry.isdir() else None

    def is_redundant(self, name: str, entry: tarfile.TarInfo) -> bool:
        """Return whether an entry changes nothing; engines differ in which of these they write."""
        folder, last = posixpath.split(name)
        if last == OPAQUE:
            return folder not in self.entries
        if last.startswith(WHITEOUT):
            return posixpath.join(folder, last.removeprefix(WHITEOUT)) not in self.entries
        return entry.isdir() and self.entries.get(name) == _metadata(entry)


class _Writer:
    """Writes a docker-archive: layers as they are added, then the configuration and the manifest that name them."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._tar = TarWriter(file)
        self._layers: list[str] = []

    def layer(self, write: Callable[[IO[bytes]], None]) -> None:
        """Add the layer that `write` writes."""
        start = self._file.tell()
        # The header contains the layer's name and size, which are known only at the end: its block is written last.
        self._file.write(bytes(tarfile.BLOCKSIZE))
        hashed = HashedWriter(self._file)
        write(cast(IO[bytes], hashed))
        digest = f"sha256:{hashed.sha256}"
        size = self._file.tell() - start - tarfile.BLOCKSIZE
        self._file.write(tar_file.padding(size))
        end = self._file.tell()
        self._file.seek(start)
        entry = tarfile.TarInfo(_file_name(digest, "tar"))
        entry.size, entry.mtime = size, EPOCH
        self._tar.add(entry)
        self._file.seek(end)
        self._layers.append(digest)

    def known_layer(self, digest: str, source: IO[bytes] | None) -> None:
        """Add a layer unchanged; without a source, add only its name."""
        if source is not None:
            size = source.seek(0, io.SEEK_END)
            source.seek(0)
            self._tar.file(_file_name(digest, "tar"), source, size)
        self._layers.append(digest)

    def finish(self, config: Mapping[str, Any], name: str) -> str:
        """Add the configuration and the manifest; return the image's ID."""
        labels = config["config"].get("Labels") or {}
        running = {**config["config"], "Labels": {key: labels[key] for key in labels if key != BUILD_LABEL}}
        history = []
        for step in config["history"]:
            # The label of an unfinished build.
            if not (step.get("empty_layer") and f"LABEL {BUILD_LABEL}=" in step.get("created_by", "")):
                kept = {key: step[key] for key in ("created_by", "empty_layer") if step.get(key)}
                history.append(kept | {"created": _CREATED})
        content = _canonical(
            {
                "architecture": config["architecture"],
                "os": config["os"],
                "created": _CREATED,
                "config": {key: running[key] for key in KEPT_CONFIG if running.get(key)},
                "history": history,
                "rootfs": {"type": "layers", "diff_ids": self._layers},
            }
        )
        id = f"sha256:{hashlib.sha256(content).hexdigest()}"
        self._tar.file(_file_name(id, "json"), content)
        layers = [_file_name(digest, "tar") for digest in self._layers]
        manifest = [{"Config": _file_name(id, "json"), "Layers": layers, "RepoTags": [name]}]
        self._tar.file("manifest.json", _canonical(manifest))
        self._file.write(tar_file.END)
        return id


def _normalise(source: IO[bytes], out: IO[bytes], below: _Below) -> None:
    """Write a normalised copy of a layer, and record its content."""
    with tar_file.opened(source) as tar, TarWriter(out) as result:
        entries = _entries(tar)
        _link(entries)
        for name in sorted(entries):
            entry = entries[name]
            redundant = below.is_redundant(name, entry)
            below.add(name, entry)
            if redundant:
                continue
            # The entry without metadata that depends on when and where it was created.
            clean = tarfile.TarInfo(name)
            clean.type, clean.size = entry.type, entry.size
            clean.linkname = _name(entry.linkname) if entry.islnk() else entry.linkname
            clean.devmajor, clean.devminor = entry.devmajor, entry.devminor
            clean.mode, clean.uid, clean.gid, clean.mtime, attributes = _metadata(entry)
            clean.pax_headers = dict(attributes)
            result.add(clean, tar.extractfile(entry) if entry.isreg() else None)


def _entries(tar: tarfile.TarFile) -> dict[str, tarfile.TarInfo]:
    """Return the entries of a layer by name, without the root folder, which differs between engines."""
    entries = {_name(entry.name): entry for entry in tar}
    entries.pop(".", None)
    return entries


def _name(path: str) -> str:
    # Root file systems have names with backslashes: systemd's units.
    return confine.relative_path(path.lstrip("/") or ".", "a layer", backslash=True)


def _link(entries: dict[str, tarfile.TarInfo]) -> None:
    """Make the first of a file's names the file, and its other names hard links to it.

    An engine's choice of the first name is random.
    """
    groups: dict[str, list[str]] = {}
    for name, entry in entries.items():
        if entry.islnk():
            target = _name(entry.linkname)
            groups.setdefault(target, [target]).append(name)
    for target, names in groups.items():
        origin = entries.get(target)
        # A link to a file of a lower layer stays unchanged.
        if origin is None or not origin.isreg():
            continue
        first, *others = sorted(names)
        entries[first] = origin
        for name in others:
            entries[name] = link = copy.copy(origin)
            link.type, link.linkname, link.size = tarfile.LNKTYPE, first, 0


def _metadata(entry: tarfile.TarInfo) -> tuple[int, int, int, int, tuple[tuple[str, str], ...]]:
    """Return mode, user, group, date and extended attributes of an entry, as they are kept."""
    attributes = sorted((key, value) for key, value in entry.pax_headers.items() if key.startswith(KEPT_PAX))
    return entry.mode & 0o7777, entry.uid, entry.gid, min(int(entry.mtime), EPOCH), tuple(attributes)


def content(tar: tarfile.TarFile, name: str) -> IO[bytes]:
    """Return the content of a file in an archive."""
    file = tar.extractfile(name)
    if file is None:
        raise KeyError(name)
    return file


def text(tar: tarfile.TarFile, name: str) -> bytes:
    """Return the content of a file in an archive that is read into memory.

    Raises:
        LookupError: there is no such file.
        FileError: it has more than MOST bytes.
    """
    return foreign.read(content(tar, name), MOST, name)


def uncompressed(source: IO[bytes], name: str) -> IO[bytes]:
    """Return the layer as a plain tar that can be read twice.

    Raises:
        ImageError: its compression is not supported.
        FileError: it unpacks to too much.
    """
    magic = source.read(len(_GZIP))
    source.seek(0)
    if magic == _GZIP:
        plain = cast(IO[bytes], tempfile.TemporaryFile(dir=scratch()))  # noqa: SIM115
        with gzip.open(source) as packed:
            foreign.copy(cast(IO[bytes], packed), plain, name)
        plain.seek(0)
        return plain
    source.seek(257)
    if source.read(5) != b"ustar":
        raise ImageError(f"a layer is neither a tar nor compressed by gzip: {name}")
    source.seek(0)
    return source


def _file_name(digest: str, suffix: str) -> str:
    return f"{digest.removeprefix('sha256:')}.{suffix}"


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
