"""A Triton wheel that was compiled here, made ready to take the official one's place in an image.

What triton.py does to the official wheel is done to this one: the LLVM in its libtriton.so is compared, what no target
uses is left out, it is stripped, and it gets the same name, X+foundry.N. Only the patches are in it already: the tree
that it was compiled from had them.
"""

from __future__ import annotations

import hashlib
import re
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from toolchains.archives import wheel_file
from toolchains.archives.wheel_file import wheel_files
from toolchains.artifacts import triton_wheel
from toolchains.fetch.store import Store
from toolchains.fromsource.build import Built, Wanted
from toolchains.lockfile.lock import LockedTriton, digest
from toolchains.system import paths
from toolchains.system.errors import LlvmHashError, PinError

# Vendors' backends, which every Triton compiles; the others in a wheel are plugins that somebody put into its tree.
_VENDORS = ("amd", "nvidia")
_BACKEND = re.compile(r"triton/backends/([^/]+)/")
# The revision of what is done here: raise it with every change of that. It is part of what names the wheel.
FORMAT = 1


def identity(locked: LockedTriton, want: Wanted) -> str:
    """The digest of all that goes into the wheel."""
    return digest(
        {
            "built": want.identity,
            "version": triton_wheel.version(locked),
            "rules": hashlib.sha256((paths.PATCHES / "triton" / "slim.toml").read_bytes()).hexdigest(),
            "format": [FORMAT, triton_wheel.FORMAT, wheel_file.FORMAT],
        }
    )


def make_wheel(locked: LockedTriton, want: Wanted, built: Built, store: Store) -> Path:
    """The X+foundry.N wheel of a Triton that was compiled here, made unless the store has it.

    Args:
        locked: the release that the image has; its official wheel is not looked at.
        want: what was built.
        built: the part that came of it.

    Raises:
        PinError: the sources are of another version, or had other patches, than the release.
        LlvmHashError: libtriton.so has another LLVM in it than the one that it was to be linked with.
    """
    series = f"triton/{locked.version}"
    if want.profile.patches != series:
        raise PinError(
            f"profile {want.profile.name} of {want.name} is not patched as Triton {locked.version} is",
            why=f"its patches: {want.profile.patches or 'none'}; those of the release: {series}",
            next=f'a profile with patches = "{series}", or a release of Triton that goes with this one: --triton',
        )
    folder = store.part("triton", identity(locked, want), lambda folder: _make(locked, want, built.path, folder))
    (result,) = folder.glob("*.whl")
    return result


def _make(locked: LockedTriton, want: Wanted, part: Path, folder: Path) -> None:
    with _wheel(part) as file:
        if not file.name.startswith(f"triton-{locked.version}-"):
            raise PinError(
                f"what was built of {want.profile.name} is {file.name}, and the image has Triton {locked.version}",
                next="the sources of that version, or --triton with the version of these",
            )
        for llvm in want.requires:
            _check_llvm(llvm.source.commit, file)
        with zipfile.ZipFile(file) as archive:
            found = {match[1] for entry in wheel_files(archive) if (match := _BACKEND.match(entry.filename))}
        triton_wheel.rewrite(locked, file, folder, backends=found.difference(_VENDORS), patched={})


@contextmanager
def _wheel(part: Path) -> Iterator[Path]:
    """The one wheel in the tar of a part, while the context lasts."""
    with tarfile.open(part) as tar, TemporaryDirectory(prefix="foundry-", dir=paths.scratch()) as work:
        (member,) = [entry for entry in tar if entry.isfile() and entry.name.endswith(".whl")]
        tar.extract(member, work, filter="data")
        yield Path(work, member.name)


def _check_llvm(commit: str, file: Path) -> None:
    """Compare the LLVM in libtriton.so with the one that was given to its build.

    That of a folder which is no clean checkout has no commit to be told by, and is not looked at.
    """
    if not re.fullmatch("[0-9a-f]{40}", commit):
        return
    found = triton_wheel.llvm_hash_of(file)
    if found != commit:
        raise LlvmHashError(
            "the Triton that was compiled here has another LLVM in it than it was given",
            why=f"in libtriton.so: {found}\ngiven:           {commit}",
            next="look in build/logs/upstream-triton.log where CMake found LLVM and MLIR",
        )
