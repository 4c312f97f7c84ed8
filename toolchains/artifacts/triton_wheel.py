"""Repack Triton's official wheel: check its LLVM, patch it, slim it, and name it X+foundry.N.

The steps of repack():
    1. check that the LLVM commit compiled into libtriton.so is the one in the pin; if libtriton.so names only a
       version, compare that with the pin's version
    2. apply the release's patch series to the wheel's Python files
    3. leave out what none of our targets uses: the files in patches/triton/slim.toml, and backends other than the
       ones asked for
    4. strip debug information from libtriton.so: strip --strip-unneeded, 499 MB to 192 MB for 3.9.0. GNU strip 2.40
       and 2.44 give the same bytes, so its version is not part of the result's identity
    5. add the documents that say what is in it, as PEP 770 has them
    6. make name, version, metadata, entry points and RECORD agree. triton.__version__ changes too, because the keys
       of the cache of compiled kernels include it, but do not include every file that we patch

The result is a part in the store, named by identity(): the same wheel, patches and rules are never repacked twice.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
import tomllib
import zipfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO

from toolchains.archives import wheel_file
from toolchains.config import platforms
from toolchains.contents import component as contents
from toolchains.contents import licences, packages
from toolchains.contents.component import Component, patches, properties, purl
from toolchains.fetch.store import Store
from toolchains.lockfile.lock import LockedTriton
from toolchains.patching import series
from toolchains.patching.layout import WheelTree, source_path, wheel_path
from toolchains.patching.series import Series
from toolchains.system import children, paths
from toolchains.system.errors import LlvmHashError, PatchTargetError, PinError

# The revision of how a wheel is rewritten: raise it whenever that changes. It is part of the wheel's identity.
FORMAT = 2
LIBRARY = "triton/_C/libtriton.so"
_BACKENDS = "triton/backends/"
# The recipe of the project whose libraries are in libtriton.so.
_LLVM = "llvm"
_COMMIT = re.compile(rb"LLVM version \S+ \(([0-9a-f]{40})\)")
# A version without a commit: LLVM was built from an archive of its sources. Other files have this and the commit.
_VERSION = re.compile(rb"LLVM version ([^\s\0]+)\0")
_CHUNK = 16 << 20
# The overlap of two chunks in bytes: longer than any match of these patterns.
_OVERLAP = 256


def llvm_hash(library: IO[bytes]) -> str:
    """Return the LLVM commit that was compiled into a libtriton.so; if it names no commit, the LLVM version.

    Raises:
        LlvmHashError: the file names neither, or several.
    """
    commits: set[str] = set()
    versions: set[str] = set()
    tail = b""
    while chunk := library.read(_CHUNK):
        commits |= {match.decode() for match in _COMMIT.findall(tail + chunk)}
        versions |= {match.decode() for match in _VERSION.findall(tail + chunk)}
        tail = chunk[-_OVERLAP:]
    named = commits or versions
    if len(named) != 1:
        raise LlvmHashError(
            f"libtriton.so names {len(named)} LLVM commits",
            why=", ".join(sorted(named)) or "it has no string of the form: LLVM version 1.2.3 (40 hexadecimal digits)",
            next="check that the locked wheel is a Triton release: ./foundry pin --check",
        )
    return named.pop()


def check_llvm_hash(locked: LockedTriton, file: Path) -> None:
    """Compare the LLVM commit in a Triton wheel with the pinned one, or the version if the wheel names only that.

    Raises:
        LlvmHashError: they differ. PinError: the file is not a Triton wheel.
    """
    compiled = llvm_hash_of(file)
    pinned = locked.llvm_version or locked.llvm_hash
    if compiled != pinned:
        raise LlvmHashError(
            f"Triton {locked.version} was built with another LLVM than its pin says",
            why=f"in libtriton.so: {compiled}\nin the pin:      {pinned}",
            next=f"if {file.name} is the wheel you want, write {compiled} as the "
            f"{'llvm-version' if locked.llvm_version else 'llvm-hash'} of {locked.version} in toolchains/pins; "
            "if the pin is right, change the version that it belongs to. Then: ./foundry pin --update",
        )


def llvm_hash_of(file: Path) -> str:
    """Return what llvm_hash() returns for the libtriton.so in a wheel.

    Raises:
        LlvmHashError: see llvm_hash. PinError: the file is not a Triton wheel.
    """
    with zipfile.ZipFile(file) as archive:
        if LIBRARY not in archive.namelist():
            raise PinError(f"{file.name} has no {LIBRARY}", next="correct toolchains/pins/triton.toml")
        with archive.open(LIBRARY) as library:
            return llvm_hash(library)


def version(locked: LockedTriton) -> str:
    """Return the version of the repacked wheel, X+foundry.N: N is the revision of the patch series."""
    return f"{locked.version}+foundry.{Series.load(series.series_folder(locked.version)).revision()}"


def identity(locked: LockedTriton, backends: Collection[str]) -> str:
    """Return the digest of all inputs of a repacked wheel: wheel, LLVM commit, patches, rules, kept backends."""
    inputs = [
        locked.wheel.sha256,
        locked.llvm_hash + locked.llvm_version,
        version(locked),
        series.series_digest(locked.version),
        hashlib.sha256(_rules().read_bytes()).hexdigest(),
        f"format {FORMAT} {wheel_file.FORMAT} {contents.FORMAT}",
        licences.of_recipe(_LLVM).expression,
        *sorted(backends),
    ]
    return hashlib.sha256("\n".join(inputs).encode()).hexdigest()


def repack(locked: LockedTriton, file: Path, *, backends: Sequence[str], store: Store) -> Path:
    """Return the X+foundry.N wheel of a release; build it unless the store has it.

    Args:
        locked: the locked release.
        file: its official wheel.
        backends: the backends inside the wheel to keep; empty for a target that has its own.

    Returns:
        The wheel's path.

    Raises:
        LlvmHashError: the wheel's LLVM is not the pinned one. PatchError: the series does not fit the wheel.
        UnsafeArchiveError: the wheel has an entry that leaves its folder.
    """

    def build(folder: Path) -> None:
        check_llvm_hash(locked, file)
        patched = Series.load(series.series_folder(locked.version)).changes(WheelTree(file))
        rewrite(locked, file, folder, component(locked, file, backends), backends=backends, patched=patched)

    (result,) = store.part("triton", identity(locked, backends), build).glob("*.whl")
    return result


def component(locked: LockedTriton, file: Path, backends: Collection[str]) -> Component:
    """Return a repacked wheel as a component; for the arguments see repack()."""
    with file.open("rb") as content:
        official = replace(packages.read_wheel(content), sha256=locked.wheel.sha256)
    llvm = Component(
        "source",
        "llvm-project",
        locked.llvm_hash,
        licences.of_recipe(_LLVM),
        purl("github", "llvm-project", locked.llvm_hash, namespace="llvm"),
        commit=locked.llvm_hash,
    )
    made_from = replace(official, ancestors=(official,), sha256="", parts=(llvm,))
    return rewritten(locked, made_from, identity(locked, backends))


def rewritten(locked: LockedTriton, made_from: Component, identity: str) -> Component:
    """Return what rewrite() makes of a wheel of Triton: another version, patched, without what no target uses.

    Args:
        made_from: a component with that wheel, or its sources, as the ancestor.
        identity: the digest of all inputs.
    """
    return replace(
        made_from,
        version=version(locked),
        purl=purl("pypi", "triton", version(locked)),
        patches=patches(Series.load(series.series_folder(locked.version))),
        properties=properties(inputs=identity, left_out=[*_drop(), f"{_BACKENDS}*/*"], stripped=LIBRARY),
    )


def rewrite(
    locked: LockedTriton,
    file: Path,
    folder: Path,
    described: Component,
    *,
    backends: Collection[str],
    patched: Mapping[str, str],
) -> None:
    """Write a release's wheel to a folder again: slim, stripped, under its new name.

    Args:
        locked: the release; only its version is used.
        file: its wheel.
        described: the result as a component.
        backends: the backends inside the wheel to keep.
        patched: new texts of files by their paths in Triton's source tree.

    Raises:
        PinError: the wheel is of another version.
        UnsafeArchiveError: it has an entry that leaves its folder.
    """
    drop = _drop()
    old, new = locked.version, version(locked)
    old_info, new_info = f"triton-{old}.dist-info/", f"triton-{new}.dist-info/"
    target = folder / file.name.replace(f"triton-{old}-", f"triton-{new}-", 1)
    with zipfile.ZipFile(file) as archive, tempfile.TemporaryDirectory(dir=folder) as work:
        kept = {
            entry.filename: entry
            for entry in wheel_file.wheel_files(archive)
            if not any(fnmatchcase(entry.filename, pattern) for pattern in drop)
            and _is_kept_backend(entry.filename, backends)
            and entry.filename != f"{old_info}RECORD"
        }
        writer = wheel_file.WheelWriter(target, new_info.rstrip("/"))
        for name, entry in sorted(kept.items()):
            content: bytes | Path
            if name == LIBRARY:
                content = _stripped(archive, Path(work), platforms.of_file(file.name))
            else:
                content = archive.read(name)
                path = source_path(name)
                if path is not None and path in patched:
                    content = patched[path].encode()
                match name.removeprefix(old_info):
                    case "METADATA":
                        content = _replace(content, f"\nVersion: {old}\n", f"\nVersion: {new}\n", name)
                    case "WHEEL":
                        content = re.sub(rb"(?m)^Generator: .*$", b"Generator: triton-foundry", content)
                    case "entry_points.txt":
                        content = wheel_file.drop_missing_entry_points(content.decode(), kept).encode()
                    case "triton/__init__.py":
                        content = _replace(content, f"__version__ = '{old}'", f"__version__ = '{new}'", name)
            executable = bool(entry.external_attr >> 16 & 0o100)
            writer.add(name.replace(old_info, new_info, 1), content, executable=executable)
        present = set(archive.namelist())
        for path, text in sorted(patched.items()):
            inner = wheel_path(path)
            if inner is None:
                raise PatchTargetError(f"a patch of Triton {old} adds {path}, which is in no wheel")
            if inner not in present:
                writer.add(inner, text.encode(), executable=False)
        for inner, document in packages.wheel_documents(described, new_info.rstrip("/")).items():
            writer.add(inner, document)
        writer.close()


def _stripped(archive: zipfile.ZipFile, work: Path, platform: str) -> Path:
    library = work / "libtriton.so"
    with archive.open(LIBRARY) as source, library.open("wb") as target:
        shutil.copyfileobj(source, target, _CHUNK)
    program, package = platforms.strip(platform)
    children.run([children.tool(program, package=package), "--strip-unneeded", library], log="strip-triton")
    return library


def _replace(content: bytes, old: str, new: str, name: str) -> bytes:
    if content.count(old.encode()) != 1:
        raise PinError(f"{name} of the wheel does not say its version as expected", why=f"looked for {old!r}, once")
    return content.replace(old.encode(), new.encode())


def _is_kept_backend(name: str, backends: Collection[str]) -> bool:
    backend, slash, _ = name.removeprefix(_BACKENDS).partition("/")
    return not (name.startswith(_BACKENDS) and slash) or backend in backends


def _drop() -> list[str]:
    """Return the patterns of what is left out."""
    return [str(pattern) for pattern in tomllib.loads(_rules().read_text())["drop"]]


def _rules() -> Path:
    return paths.PATCHES / "triton" / "slim.toml"
