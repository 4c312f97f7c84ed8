"""Prepare a Triton wheel that was compiled here to replace the official one in an image.

The wheel is treated like the official one in triton_wheel.py: the LLVM in its libtriton.so is compared, what no target
uses is left out, it is stripped, and it gets the same name, X+foundry.N. Only the patches are not applied, because the
compiled tree already had them.
"""

from __future__ import annotations

import hashlib
import re
import zipfile
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from toolchains.archives import tar_file, wheel_file
from toolchains.archives.wheel_file import wheel_files
from toolchains.artifacts import triton_wheel
from toolchains.contents import component as contents
from toolchains.contents.component import Component
from toolchains.fetch.store import Store
from toolchains.fromsource.build import Built, Wanted
from toolchains.lockfile.lock import LockedTriton, digest
from toolchains.system import paths
from toolchains.system.errors import LlvmHashError, PinError

# Vendors' backends, which every Triton compiles. Other backends in a wheel are plugins that were added to its tree.
_VENDORS = ("amd", "nvidia")
_BACKEND = re.compile(r"triton/backends/([^/]+)/")
# The revision of this preparation: raise it whenever that changes. It is part of the wheel's identity.
FORMAT = 1


def identity(locked: LockedTriton, want: Wanted) -> str:
    """Return the digest of all inputs of the wheel."""
    return digest(
        {
            "built": want.identity,
            "version": triton_wheel.version(locked),
            "rules": hashlib.sha256((paths.PATCHES / "triton" / "slim.toml").read_bytes()).hexdigest(),
            "format": [FORMAT, triton_wheel.FORMAT, wheel_file.FORMAT, contents.FORMAT],
        }
    )


def make_wheel(locked: LockedTriton, want: Wanted, built: Built, store: Store) -> Path:
    """Return the X+foundry.N wheel of a Triton that was compiled here; write it unless the store has it.

    Args:
        locked: the image's release; its official wheel is not used.
        want: the description of the build.
        built: the resulting part.

    Raises:
        PinError: the sources are of another version, or had other patches, than the release.
        LlvmHashError: libtriton.so has another LLVM than the one given to its build.
    """
    series = f"triton/{locked.version}"
    if want.profile.patches != series:
        raise PinError(
            f"profile {want.profile.name} of {want.name} is not patched as Triton {locked.version} is",
            why=f"its patches: {want.profile.patches or 'none'}; those of the release: {series}",
            next=f'a profile with patches = "{series}", or a release of Triton that goes with this one: --triton',
        )

    def make(folder: Path) -> None:
        with TemporaryDirectory(prefix="foundry-", dir=paths.scratch()) as work:
            with tar_file.opened(built.path) as tar:
                (member,) = [entry for entry in tar if entry.isfile() and entry.name.endswith(".whl")]
                tar.extract(member, work, filter="data")
            file = Path(work, member.name)
            if not file.name.startswith(f"triton-{locked.version}-"):
                raise PinError(
                    f"what was built of {want.profile.name} is {file.name}, and the image has Triton {locked.version}",
                    next="the sources of that version, or --triton with the version of these",
                )
            for llvm in want.requires:
                _check_llvm(llvm.source.commit, file)
            with zipfile.ZipFile(file) as archive:
                matches = (_BACKEND.match(entry.filename) for entry in wheel_files(archive))
                plugins = {match[1] for match in matches if match}.difference(_VENDORS)
            triton_wheel.rewrite(locked, file, folder, component(locked, want), backends=plugins, patched={})

    folder = store.part("triton", identity(locked, want), make)
    (wheel,) = folder.glob("*.whl")
    return wheel


def component(locked: LockedTriton, want: Wanted) -> Component:
    """Return the wheel as a component."""
    return triton_wheel.rewritten(locked, replace(want.component, kind="wheel"), identity(locked, want))


def _check_llvm(commit: str, file: Path) -> None:
    """Compare the LLVM in libtriton.so with the one that was given to its build.

    If that LLVM was built from a folder that is not a clean checkout, it has no commit, and nothing is compared.
    """
    if not re.fullmatch("[0-9a-f]{40}", commit):
        return
    compiled = triton_wheel.llvm_hash_of(file)
    if compiled != commit:
        raise LlvmHashError(
            "the Triton that was compiled here has another LLVM in it than it was given",
            why=f"in libtriton.so: {compiled}\ngiven:           {commit}",
            next="look in build/logs/upstream-triton.log where CMake found LLVM and MLIR",
        )
