"""Make archives of images, layer by layer and entry by entry, as an engine writes them."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from toolchains.archives import docker_archive
from toolchains.archives.tar_file import EPOCH

NAME = "foundry-test/archive:x"


def entry(name: str, content: bytes = b"", /, **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size, info.mtime = len(content), EPOCH - 1000
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content


def folder(name: str, **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    return entry(name, type=tarfile.DIRTYPE, **({"mode": 0o755} | fields))


def link(name: str, target: str) -> tuple[tarfile.TarInfo, bytes]:
    return entry(name, type=tarfile.LNKTYPE, linkname=target)


def layer(*entries: tuple[tarfile.TarInfo, bytes]) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for info, content in entries:
            tar.addfile(info, io.BytesIO(content))
    return data.getvalue()


def save(
    path: Path,
    layers: Sequence[bytes],
    plain: Sequence[bytes] | None = None,
    /,
    *,
    tags: Sequence[str] | None = None,
    **config: object,
) -> Path:
    """Write an archive as an engine does. `plain` are the layers before compression."""
    digests = [f"sha256:{hashlib.sha256(data).hexdigest()}" for data in plain or layers]
    content = {
        "architecture": "amd64",
        "os": "linux",
        "created": "2031-05-05T05:05:05.5Z",
        "config": {"Env": ["A=1"]},
        "history": [{"created": "2031-05-05T05:05:05.5Z", "created_by": "COPY"} for _ in layers],
        "rootfs": {"type": "layers", "diff_ids": digests},
    } | config
    manifest = [{"Config": "c.json", "RepoTags": tags, "Layers": [f"{i}/layer.tar" for i in range(len(layers))]}]
    files = {f"{i}/layer.tar": data for i, data in enumerate(layers)}
    files |= {"c.json": json.dumps(content).encode(), "manifest.json": json.dumps(manifest).encode()}
    path.write_bytes(layer(*(entry(name, data) for name, data in files.items())))
    return path


def normalised(tmp_path: Path, *layers: bytes, **config: Any) -> bytes:
    result = tmp_path / "normal.tar"
    docker_archive.normalise(save(tmp_path / "saved.tar", layers, **config), result, name=NAME)
    return result.read_bytes()


def image(file: Path, files: Mapping[str, bytes], **config: list[str]) -> Path:
    """Write an image of one layer as `docker save` would. `config`: its env and command."""
    rootfs = file.with_suffix(".rootfs")
    rootfs.write_bytes(layer(*(entry(name, content) for name, content in files.items())))
    running = {"env": ["A=1"], "command": ["sh"]} | config
    docker_archive.write_base_image(rootfs, file, name=f"toy:{file.stem}", architecture="amd64", **running)
    return file
