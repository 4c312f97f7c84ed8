"""What is in the images that this store built: each layer's entries in order, and each configuration.

    images/layers/<sha256 of the layer>       a line of JSON for each entry
    images/configs/<sha256 of the config>     the configuration, which names the layers

Both are named by the digest of what they describe. With the contents of its files, a listing is the layer to the bit,
because we write layers in one form only (docker_archive.py). So a difference is named without the layer itself.
"""

from __future__ import annotations

import hashlib
import json
import tarfile
from collections.abc import Collection, Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import IO, cast

import msgspec

from toolchains.archives import docker_archive, tar_file
from toolchains.fetch.store import Store
from toolchains.system import durable
from toolchains.system.errors import FileError


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """An entry of a layer.

    Attributes:
        name: its path, relative to the root folder.
        type: tarfile's constant, such as "0" for a file.
        mode: permissions.
        uid: number of the owner.
        gid: number of the group.
        mtime: seconds since 1970.
        size: bytes of content.
        link: the target of a link.
        device: major and minor number of a device.
        pax: extended attributes.
        sha256: of a file's content; "" for other entries.
    """

    name: str
    type: str
    mode: int
    uid: int
    gid: int
    mtime: int
    size: int = 0
    link: str = ""
    device: tuple[int, int] = (0, 0)
    pax: Mapping[str, str] = {}
    sha256: str = ""

    @classmethod
    def read(cls, tar: tarfile.TarFile, entry: tarfile.TarInfo) -> Entry:
        """Return an entry of an open tar, after reading its content."""
        content = tar.extractfile(entry) if entry.isreg() else None
        return cls(
            name=entry.name.rstrip("/"),
            type=entry.type.decode(),
            mode=entry.mode,
            uid=entry.uid,
            gid=entry.gid,
            mtime=int(entry.mtime),
            size=entry.size,
            link=entry.linkname,
            device=(entry.devmajor, entry.devminor),
            pax={key: value for key, value in entry.pax_headers.items() if key.startswith(docker_archive.KEPT_PAX)},
            sha256=hashlib.file_digest(cast(BufferedReader, content), "sha256").hexdigest() if content else "",
        )

    def header(self) -> bytes:
        """Return the blocks of a tar before the content, as docker_archive writes them."""
        entry = tarfile.TarInfo(self.name)
        entry.type, entry.mode, entry.uid, entry.gid = self.type.encode(), self.mode, self.uid, self.gid
        entry.mtime, entry.size, entry.linkname = self.mtime, self.size, self.link
        (entry.devmajor, entry.devminor), entry.pax_headers = self.device, dict(self.pax)
        return entry.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def scan(layer: IO[bytes]) -> Iterator[Entry]:
    """Yield the entries of a layer, which is an uncompressed tar."""
    with tar_file.opened(layer, "r:") as tar:
        for entry in tar:
            yield Entry.read(tar, entry)


def record(archive: Path, store: Store) -> str:
    """Record the configuration of a normalised image, and the layers that are in the archive.

    Returns:
        The digest of the configuration: "sha256:...".
    """
    with archive.open("rb") as file, docker_archive.opened(file, str(archive)) as tar:
        manifest, config = docker_archive.described(tar)
        names = set(tar.getnames())
        for digest, member in zip(config["rootfs"]["diff_ids"], manifest["Layers"], strict=True):
            place = _layer(store, digest)
            if member in names and not place.exists():
                entries = scan(docker_archive.content(tar, member))
                durable.write(place, "".join(msgspec.json.encode(entry).decode() + "\n" for entry in entries))
        text = docker_archive.text(tar, manifest["Config"])
    digest = f"sha256:{hashlib.sha256(text).hexdigest()}"
    durable.write(_config(store, digest), text.decode())
    return digest


def layer(store: Store, digest: str) -> list[Entry] | None:
    """Return the entries of a layer, or None if this store recorded none.

    Raises:
        FileError: the record is damaged.
    """
    place = _layer(store, digest)
    try:
        return [msgspec.json.decode(line, type=Entry) for line in place.read_bytes().splitlines()]
    except FileNotFoundError:
        return None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FileError(f"{place} is damaged", why=str(error), next="remove it, and build the image again") from error


def unused(store: Store, configs: Collection[str]) -> list[Path]:
    """Return the records of all images but those with one of these configurations."""
    texts = [text for digest in configs if (text := config(store, digest))]
    layers = [digest for text in texts for digest in json.loads(text)["rootfs"]["diff_ids"]]
    kept = {*(_layer(store, digest) for digest in layers), *(_config(store, digest) for digest in configs)}
    return sorted({*store.root.glob("images/layers/*"), *store.root.glob("images/configs/*")} - kept)


def config(store: Store, digest: str) -> bytes | None:
    """Return the text of a configuration, or None if this store recorded none, or another one since damaged it."""
    try:
        text = _config(store, digest).read_bytes()
    except FileNotFoundError:
        return None
    return text if digest == f"sha256:{hashlib.sha256(text).hexdigest()}" else None


def _layer(store: Store, digest: str) -> Path:
    return store.root / "images" / "layers" / digest.removeprefix("sha256:")


def _config(store: Store, digest: str) -> Path:
    return store.root / "images" / "configs" / digest.removeprefix("sha256:")
