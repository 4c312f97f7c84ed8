"""Make small archives for tests, and a Python index and a Debian archive in a folder: pip and apt need no network."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import pytest

from toolchains.fetch.apt_sources import Archive
from toolchains.lockfile.lock import Artifact


def artifact(file: Path, *, kind: str, name: str, version: str) -> Artifact:
    """Return a file as a lock describes it."""
    data = file.read_bytes()
    return Artifact(kind, name, version, file.name, len(data), hashlib.sha256(data).hexdigest())


def write(folder: Path, files: Mapping[str, bytes | str]) -> Path:
    """Write files with mode 755 below a folder. "-> x" is a symbolic link to x."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            path.symlink_to(content.removeprefix("-> "))
        else:
            path.write_bytes(content)
            path.chmod(0o755)
    return folder


def control(name: str, version: str, fields: Mapping[str, str]) -> str:
    """Return the description of a Debian package, with these fields besides those that every one has."""
    lines = {"Package": name, "Version": version, "Architecture": "amd64", "Maintainer": "nobody <nobody@localhost>"}
    lines |= {key.replace("_", "-"): value for key, value in fields.items()} | {"Description": "for a test"}
    return "".join(f"{key}: {value}\n" for key, value in lines.items())


def deb(
    folder: Path, name: str, version: str, files: Mapping[str, bytes | str] | None = None, **fields: str
) -> tuple[Path, Artifact]:
    """Write a Debian package of files. Return it, and its description in a lock."""
    file = folder / f"{name}_{version.partition(':')[2] or version}_amd64.deb"
    # Two suites of one folder may have the same package, and then share its file.
    dated = {**os.environ, "SOURCE_DATE_EPOCH": "0"}
    with TemporaryDirectory() as work:
        tree = write(Path(work, "tree"), {"DEBIAN/control": control(name, version, fields).encode(), **(files or {})})
        words = ["dpkg-deb", "--root-owner-group", "--build", str(tree), str(file)]
        subprocess.run(words, check=True, capture_output=True, env=dated)
    return file, artifact(file, kind="deb", name=name, version=version)


def tar(file: Path, files: Mapping[str, bytes | str], mode: Literal["w", "w:gz"] = "w") -> Path:
    """Write a tar of files with mode 755. "-> x" is a symbolic link to x, "=> x" a hard link, "fifo" a pipe."""
    kinds = {"->": tarfile.SYMTYPE, "=>": tarfile.LNKTYPE, "fi": tarfile.FIFOTYPE}
    with tarfile.open(file, mode) as packed:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.mode = 0o755
            if isinstance(content, str):
                entry.type, entry.linkname = kinds[content[:2]], content[3:]
                packed.addfile(entry)
            else:
                entry.size = len(content)
                packed.addfile(entry, io.BytesIO(content))
    return file


def packed(files: Mapping[str, bytes]) -> bytes:
    """Return a tar of files."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return data.getvalue()


def sums(data: bytes | bytearray) -> bytes:
    """Write the right checksum into each header of a tar."""
    changed, at = bytearray(data), -1
    while (at := data.find(b"ustar", at + 1)) >= 0:
        start = at - 257
        if start >= 0 and len(data) >= start + tarfile.BLOCKSIZE:
            block = changed[start : start + 148] + b" " * 8 + changed[start + 156 : start + tarfile.BLOCKSIZE]
            changed[start + 148 : start + 156] = b"%06o\0 " % sum(block)
    return bytes(changed)


class Index:
    """A Python package index as files. The pip of this process uses it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
        monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
        monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
        monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
        monkeypatch.setenv("PIP_INDEX_URL", folder.as_uri())

    def add(self, name: str, version: str, requires: Sequence[str] = (), *, payload: int = 0) -> Artifact:
        """Publish a wheel with a payload of this many bytes."""
        project = self.folder / name
        project.mkdir(parents=True, exist_ok=True)
        return self.list(
            wheel(project, name, version, requires, files={"payload": "x" * payload}), "wheel", name, version
        )

    def list(self, file: Path, kind: str, name: str, version: str) -> Artifact:
        """Add a file of the project's folder to the project's page."""
        made = artifact(file, kind=kind, name=name, version=version)
        page = file.with_name("index.html")
        before = page.read_text() if page.exists() else ""
        page.write_text(f'{before}<a href="{file.name}#sha256={made.sha256}">{file.name}</a>\n')
        return made

    def remove(self, name: str) -> None:
        """Withdraw all versions of a project."""
        (self.folder / name / "index.html").write_text("")


def wheel(
    folder: Path, name: str, version: str, requires: Sequence[str] = (), *, files: Mapping[str, str] | None = None
) -> Path:
    """Write a wheel that contains only what the arguments ask for."""
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {requirement}\n" for requirement in requires)
    content = {
        f"{info}/METADATA": metadata,
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
        **(files or {}),
    }
    file = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as archive:
        for path, text in content.items():
            archive.writestr(zipfile.ZipInfo(path), text)
    return file


class DebianArchive:
    """A Debian archive of one suite as files, unsigned. Several suites may share the folder.

    Args:
        release: more lines of the suite's Release file; those of backports are BACKPORTS.
    """

    BACKPORTS = "NotAutomatic: yes\nButAutomaticUpgrades: yes\n"

    def __init__(self, folder: Path, suite: str = "trixie", release: str = "") -> None:
        self.folder = folder
        self.suite = suite
        self._release = release
        self._index = folder / "dists" / suite / "main" / "binary-amd64" / "Packages"
        self._index.parent.mkdir(parents=True)
        self._source_index = folder / "dists" / suite / "main" / "source" / "Sources"
        self._source_index.parent.mkdir(parents=True)
        self._records: dict[str, str] = {}
        self._source_records: dict[str, str] = {}
        self._publish()

    @property
    def archive(self) -> Archive:
        """Return the archive as apt needs it described."""
        return Archive(f"copy:{self.folder}", "", "trusted=yes")

    def add(self, name: str, version: str, **fields: str) -> Artifact:
        """Publish a package. It replaces an earlier version, as in Debian."""
        pool = self.folder / "pool"
        pool.mkdir(exist_ok=True)
        file, made = deb(pool, name, version, None, **fields)
        place = f"Filename: pool/{file.name}\nSize: {made.size}\nSHA256: {made.sha256}\n"
        self._records[name] = control(name, version, fields) + place
        self._publish()
        return made

    def add_source(self, name: str, version: str, files: Mapping[str, bytes], binary: str = "") -> list[Artifact]:
        """Publish a source package of these files with a .dsc. It replaces an earlier version, as in Debian."""
        pool = self.folder / "pool"
        pool.mkdir(exist_ok=True)
        plain = version.partition(":")[2] or version
        dsc = f"Format: 3.0 (quilt)\nSource: {name}\nVersion: {version}\n"
        made = []
        for file, content in {f"{name}_{plain}.dsc": dsc.encode(), **files}.items():
            (pool / file).write_bytes(content)
            made.append(artifact(pool / file, kind="source", name=name, version=version))
        sums = "".join(f" {each.sha256} {each.size} {each.filename}\n" for each in made)
        self._source_records[name] = (
            f"Package: {name}\nBinary: {binary or name}\nVersion: {version}\nFormat: 3.0 (quilt)\nArchitecture: any\n"
            f"Maintainer: nobody <nobody@localhost>\nDirectory: pool\nChecksums-Sha256:\n{sums}"
        )
        self._publish()
        return sorted(made, key=lambda each: each.filename)

    def _publish(self) -> None:
        self._index.write_text("\n".join(self._records.values()))
        self._source_index.write_text("\n".join(self._source_records.values()))
        entries = ""
        for index in (self._index, self._source_index):
            data = index.read_bytes()
            place = index.relative_to(self.folder / "dists" / self.suite)
            entries += f" {hashlib.sha256(data).hexdigest()} {len(data)} {place}\n"
        release = (
            f"Suite: {self.suite}\nCodename: {self.suite}\nComponents: main\nArchitectures: amd64\n{self._release}"
        )
        (self.folder / "dists" / self.suite / "Release").write_text(f"{release}SHA256:\n{entries}")
