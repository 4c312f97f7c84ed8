"""Describe the files that the lock names, as components: Debian packages, wheels, source distributions.

Licences and source packages are read from the files themselves, which are in the store. What is read of a Debian
package is kept as a part, because it takes decompressing the package. What is written into our own wheels is here, too.
"""

from __future__ import annotations

import email
import io
import json
import posixpath
import re
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from packaging.utils import canonicalize_name

from toolchains.archives import ar_file, tar_file, wheel_file
from toolchains.archives.tar_file import reading
from toolchains.contents import licences
from toolchains.contents.component import Component, Licence, purl
from toolchains.fetch.store import Store
from toolchains.lockfile.lock import Artifact, digest
from toolchains.system.errors import UnsafeArchiveError

# The revision of what is kept of a package: raise it whenever that changes.
FORMAT = 1
_KIND = "copyright"
# No text and no wheel in a package is longer; a few compressed bytes may stand for more than the memory.
_LONGEST = 64 << 20
_DOC = "usr/share/doc"
# Where Debian keeps the wheels from which `python3 -m venv` installs pip, and setuptools up to Python 3.11.
_ENSURED = "usr/share/python-wheels"
# Files of a wheel that may state its licence.
_STATING = ("LICENSE", "LICENCE", "COPYING")
_METADATA = re.compile(r"[^/]+\.dist-info/METADATA")


@dataclass(frozen=True)
class DebianPackages:
    """The Debian packages of one suite, as components.

    Args:
        suite: "trixie".
        known: packages whose copyright file others may refer to; all are in the store.
        store: has their files.
    """

    suite: str
    known: Sequence[Artifact]
    store: Store

    def component(self, deb: Artifact) -> Component:
        """Return a package with its source package as the ancestor."""
        facts = self._facts(deb)
        name, _, version = facts["source"].partition(" ")
        version = version.strip("()") or deb.version
        suite = deb.suite or self.suite
        source = Component(
            "source", name, version, purl=purl("deb", name, version, namespace="debian", arch="source", distro=suite)
        )
        where = purl("deb", deb.name, deb.version, namespace="debian", arch=facts["architecture"], distro=suite)
        return Component("deb", deb.name, deb.version, self._licence(deb, name), where, deb.sha256, ancestors=(source,))

    def components(self, debs: Iterable[Artifact]) -> tuple[Component, ...]:
        return tuple(self.component(deb) for deb in debs)

    def _licence(self, deb: Artifact, source: str) -> Licence:
        """Return a package's licence; several packages of one source may share one copyright file."""
        by_name = {package.name: package for package in (*self.known, deb)}
        seen, name = [deb.name], self._facts(deb)["shares"]
        while name:
            if name in seen or name not in by_name:
                return Licence(origin=f"{licences.UNKNOWN}its copyright file is that of {name}, which is not locked")
            seen.append(name)
            name = self._facts(by_name[name])["shares"]
        return licences.of_debian_package(source, (self._kept(by_name[seen[-1]]) / "copyright").read_bytes())

    def _facts(self, deb: Artifact) -> dict[str, str]:
        """Return what a package's control file says: its architecture and source; and whose copyright file it has."""
        facts: dict[str, str] = json.loads((self._kept(deb) / "facts.json").read_bytes())
        return facts

    def _kept(self, deb: Artifact) -> Path:
        return self.store.part(_KIND, identity(deb), lambda folder: _read(deb, self.store.path(deb), folder))


def identity(deb: Artifact) -> str:
    """Return the digest that names what is kept of a package."""
    return digest({"deb": deb.sha256, "format": FORMAT})


def _read(deb: Artifact, file: Path, folder: Path) -> None:
    """Write what is kept of a package into a folder."""
    with _member(file, "control.tar") as tar:
        (control,) = [_content(tar, entry) for entry in tar if posixpath.normpath(entry.name) == "control"]
    fields = email.message_from_bytes(control)
    place = f"{_DOC}/{deb.name}"
    shares, copyright = "", b""
    with _member(file, "data.tar") as tar:
        for entry in tar:
            name = posixpath.normpath(entry.name)
            if name in (place, f"{place}/copyright"):
                if entry.issym():
                    # /usr/share/doc/PACKAGE is a link to another package's folder, or its copyright to another's.
                    target = posixpath.normpath(posixpath.join("/", posixpath.dirname(name), entry.linkname))
                    shares = target.removeprefix(f"/{_DOC}/").split("/")[0]
                elif entry.isfile():
                    copyright = _content(tar, entry)
                if shares or copyright:
                    break
    facts = {"architecture": str(fields["Architecture"]), "source": str(fields["Source"] or deb.name), "shares": shares}
    (folder / "facts.json").write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n")
    (folder / "copyright").write_bytes(copyright)


@contextmanager
def _member(deb: Path, name: str) -> Iterator[tarfile.TarFile]:
    """Yield one of the two tars of a Debian package, which is an archive of ar's, to be read in order."""
    with deb.open("rb") as file, reading(f"{deb.name} is damaged"):
        for member in ar_file.members(file):
            if member.name.strip("/").startswith(name):
                with tar_file.opened(tar_file.section(file, member.start, member.size), "r|*") as tar:
                    yield tar
                return
        raise UnsafeArchiveError(f"{deb.name} has no {name}")


def _content(tar: tarfile.TarFile, entry: tarfile.TarInfo) -> bytes:
    content = tar.extractfile(entry)
    if entry.size > _LONGEST:
        raise ValueError(f"{entry.name} has {entry.size} bytes, where a text is expected")
    return content.read() if content else b""


def wheel(artifact: Artifact, store: Store) -> Component:
    """Return a locked wheel as a component."""
    with store.path(artifact).open("rb") as file:
        return replace(read_wheel(file), sha256=artifact.sha256)


def sdist(artifact: Artifact, store: Store) -> Component:
    """Return a locked source distribution as a component."""
    with reading(f"{artifact.filename} is damaged"), tar_file.opened(store.path(artifact)) as tar:
        (metadata,) = [_content(tar, entry) for entry in tar if entry.name.split("/")[1:] == ["PKG-INFO"]]
    return replace(_distribution(metadata, {}), kind="sdist", sha256=artifact.sha256)


def ensured(deb: Artifact, store: Store) -> Iterator[Component]:
    """Yield the wheels in one of Debian's packages from which `python3 -m venv` installs pip and setuptools."""
    with _member(store.path(deb), "data.tar") as tar:
        for entry in tar:
            name = posixpath.normpath(entry.name)
            if name.startswith(f"{_ENSURED}/") and name.endswith(".whl") and entry.isfile():
                yield read_wheel(io.BytesIO(_content(tar, entry)))


def read_wheel(file: IO[bytes]) -> Component:
    """Return a wheel as a component, without its sha256."""
    with wheel_file.opened(file) as archive:
        (place,) = [name for name in archive.namelist() if _METADATA.fullmatch(name)]
        info = place.removesuffix("METADATA")
        names = [name for name in archive.namelist() if name.split("/")[-1].upper().startswith(_STATING)]
        files = {name.removeprefix(info): archive.read(name) for name in names}
        return _distribution(archive.read(place), files)


def _distribution(metadata: bytes, files: Mapping[str, bytes]) -> Component:
    fields = email.message_from_bytes(metadata)
    name, version = canonicalize_name(str(fields["Name"])), str(fields["Version"])
    return Component("wheel", name, version, licences.of_distribution(name, fields, files), purl("pypi", name, version))


def wheel_documents(subject: Component, info: str) -> dict[str, bytes]:
    """Return the documents about a wheel by their names in it, where PEP 770 has them: NAME.dist-info/sboms.

    Args:
        info: the name of its .dist-info folder.
    """
    # Its libraries take a third of a second to import, and few commands write a document.
    from toolchains.contents.documents import ENDINGS, WRITERS

    return {f"{info}/sboms/{subject.name}{ENDINGS[form]}": write(subject) for form, write in WRITERS.items()}
