"""Makes base images: exactly the locked Debian packages, unpacked and configured by mmdebstrap, without a network.

The same packages give the same bytes. What would break that is closed here: the environment of the caller, his resolver
and host name, logs, caches, and the address of the folder that the packages came from.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from toolchains.archives import docker_archive
from toolchains.archives.tar_file import EPOCH
from toolchains.engine.client import Engine
from toolchains.fetch.store import Store
from toolchains.images import provenance
from toolchains.lockfile.lock import Artifact, LockedTarget, digest
from toolchains.system.children import run, tool
from toolchains.system.errors import CommandError, PinError
from toolchains.system.paths import scratch

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# The revision of how packages become a file system: raise it with every change of that. It is part of the image's name.
FORMAT = 1
# Left behind by mmdebstrap and by the packages' scripts: of this machine, or dated.
_LEFT_BEHIND = (
    "etc/resolv.conf",
    "etc/hostname",
    "etc/apt/sources.list",
    "var/lib/apt",
    "var/cache/apt",
    "var/cache/debconf",
    "var/cache/ldconfig/aux-cache",
    "var/log/apt",
    "var/log/dpkg.log",
    "var/log/alternatives.log",
)


@dataclass(frozen=True)
class BaseImage:
    """A base image: the tag under which an engine knows it, and the docker-archive that it is loaded from."""

    name: str
    archive: Path

    def load(self, engine: Engine, store: Store) -> tuple[str, ...]:
        """Have it in the engine; returns the digests of its layers."""
        info = provenance.image(self.name, engine=engine, store=store)
        if info is None:
            engine.load(self.archive)
            info = engine.image(self.name)
            assert info is not None
            provenance.note(self.name, info, store)
        return info.layers


def identity(target: LockedTarget) -> str:
    """Return the digest of all that goes into a target's base image."""
    return digest(
        {
            "suite": target.suite,
            "debs": sorted(deb.sha256 for deb in target.debs),
            "paths": _path_options(target),
            "format": [FORMAT, docker_archive.FORMAT],
        }
    )


def ensure_base(target: LockedTarget, store: Store) -> BaseImage:
    """Return the base image of a target, from the store or made now.

    Raises:
        OfflineError: a package is not in the store.
        MissingToolError: mmdebstrap is not installed.
        TruncatedError, HashMismatchError: a package was damaged in the store; it was removed from there.
        CommandError: mmdebstrap failed, or may not make file systems as this user.
    """
    name = identity(target)
    tag = f"triton-foundry/base:{target.suite}-{name[:16]}"
    folder = store.part("base", name, lambda folder: make_base(target, store, folder / "image.tar", tag))
    return BaseImage(tag, folder / "image.tar")


def make_base(target: LockedTarget, store: Store, image: Path, tag: str) -> None:
    mmdebstrap = tool("mmdebstrap", package="mmdebstrap")
    as_root = os.geteuid() == 0
    if not as_root:
        tool("newuidmap", package="uidmap")
    # Not in the store: as another user than root, mmdebstrap works with the rights of a subordinate user, who may not
    # look into a home folder.
    with TemporaryDirectory(prefix="foundry-", dir=scratch()) as work:
        folder = Path(work)
        folder.chmod(0o755)
        _repository(folder / "debs", target.suite, target.debs, store)
        argv: list[str | Path] = [
            mmdebstrap,
            f"--mode={'root' if as_root else 'unshare'}",
            "--variant=essential",
            f"--include={','.join(deb.name for deb in target.debs)}",
            *(f"--dpkgopt={option}" for option in _path_options(target)),
            # Device nodes are the container engine's business.
            "--skip=output/dev",
            '--customize-hook=cd "$1" && rm -rf ' + " ".join(_LEFT_BEHIND),
            target.suite,
            folder / "rootfs.tar",
            f"deb [trusted=yes] copy://{quote(str(folder / 'debs'))} ./",
        ]
        env = {"PATH": _PATH, "HOME": "/", "TMPDIR": str(scratch()), "SOURCE_DATE_EPOCH": str(EPOCH)}
        # As another user than root, mmdebstrap makes namespaces itself.
        try:
            run(argv, log=f"base-{target.suite}", env=env, isolated=as_root, next="./foundry doctor")
        except CommandError:
            # Of a package that was damaged in the store, mmdebstrap only says that something failed.
            store.verify(target.debs)
            raise
        docker_archive.write_base_image(
            folder / "rootfs.tar",
            image,
            name=tag,
            architecture=architecture(target.debs),
            env=[f"PATH={_PATH}"],
            command=["/bin/bash"],
        )


def _repository(folder: Path, suite: str, debs: Sequence[Artifact], store: Store) -> None:
    """A package archive of exactly these packages."""
    folder.mkdir()
    entries = []
    for deb in debs:
        source, copy = store.path(deb), folder / deb.filename
        try:
            copy.hardlink_to(source)
        except OSError:
            shutil.copyfile(source, copy)
        try:
            fields = run(["dpkg-deb", "--field", copy], log="dpkg-deb").stdout
        except CommandError:
            store.verify([deb])
            raise
        entries.append(f"{fields}Filename: ./{deb.filename}\nSize: {deb.size}\nSHA256: {deb.sha256}\n")
    (folder / "Packages").write_text("\n".join(entries))
    (folder / "Release").write_text(f"Suite: {suite}\nCodename: {suite}\n")


def _path_options(target: LockedTarget) -> list[str]:
    """Which files of the packages come in, in dpkg's words; of the options that match a file the last one counts."""
    return [
        *(f"path-exclude={pattern}" for pattern in target.left_out),
        *(f"path-include={pattern}" for pattern in target.kept),
    ]


def architecture(debs: Sequence[Artifact]) -> str:
    """Return what the packages were compiled for; Docker took the names over from Debian."""
    found = {deb.filename.rpartition("_")[2].removesuffix(".deb") for deb in debs} - {"all"}
    if len(found) != 1:
        raise PinError(f"the packages of a base image are for more than one architecture: {', '.join(sorted(found))}")
    return found.pop()
