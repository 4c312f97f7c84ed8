"""Build base images: exactly the locked Debian packages, unpacked and configured by mmdebstrap, without a network.

The same packages give the same bytes. So the following must not influence the result: the caller's environment,
resolver and host name, logs, caches, and the address of the folder that the packages came from.
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
from toolchains.config import platforms
from toolchains.engine.client import Engine
from toolchains.fetch.store import Store
from toolchains.images import provenance
from toolchains.images.layer import require_image
from toolchains.lockfile.lock import Artifact, LockedTarget, digest
from toolchains.system.children import run, tool
from toolchains.system.errors import CommandError, PinError
from toolchains.system.paths import scratch
from toolchains.system.steps import step

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# dpkg's own defaults, and that it does not wait for the disk after each file: what is interrupted is made again. As an
# option for mmdebstrap it would be written into the image.
_FORCE = "security-mac,downgrade,unsafe-io"
# The revision of how packages become a file system: raise it whenever that changes. It is part of the image's identity.
FORMAT = 2
# Files that mmdebstrap and the packages' scripts leave: they depend on this machine, or contain a date.
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
    """A base image: its tag, and the docker-archive from which it is loaded."""

    name: str
    archive: Path

    def load(self, engine: Engine, store: Store) -> tuple[str, ...]:
        """Ensure that the engine has the image; return the digests of its layers."""
        info = provenance.image(self.name, engine=engine, store=store)
        if info is None:
            engine.load(self.archive)
            info = provenance.note(self.name, require_image(engine, self.name), store)
        return info.layers


def identity(target: LockedTarget) -> str:
    """Return the digest of all inputs of a target's base image."""
    return digest(
        {
            "suite": target.suite,
            "debs": sorted(deb.sha256 for deb in target.debs),
            "paths": _path_options(target),
            "format": [FORMAT, docker_archive.FORMAT],
        }
    )


def ensure_base(target: LockedTarget, store: Store) -> BaseImage:
    """Return the base image of a target, from the store or built now.

    Raises:
        OfflineError: a package is not in the store.
        MissingToolError: mmdebstrap is not installed.
        TruncatedError, HashMismatchError: a package was damaged in the store; it was removed from the store.
        CommandError: mmdebstrap failed, or this user may not create file systems with it.
    """
    name = identity(target)
    tag = f"triton-foundry/base:{target.suite}-{name[:16]}"
    folder = store.part("base", name, lambda folder: make_base(target, store, folder / "image.tar", tag))
    return BaseImage(tag, folder / "image.tar")


def stored(target: LockedTarget, store: Store) -> Path | None:
    """Return the docker-archive of a target's base image, or None if the store does not have it."""
    part = store.found_part("base", identity(target))
    return part / "image.tar" if part else None


def load_base(target: LockedTarget, *, what: str, store: Store, engine: Engine) -> tuple[str, tuple[str, ...]]:
    """Ensure that the engine has the base image of a target; return its tag and the digests of its layers.

    Args:
        what: what the messages call it.

    Raises:
        FoundryError: see ensure_base; or the engine refused it.
    """
    with step(f"{what} from {len(target.debs)} Debian packages"):
        base = ensure_base(target, store)
    with step(f"{what} into the engine"):
        return base.name, base.load(engine, store)


def make_base(target: LockedTarget, store: Store, image: Path, tag: str) -> None:
    # Not in the store: run as an ordinary user, mmdebstrap works with the rights of a subordinate user, who may not
    # enter a home folder.
    with TemporaryDirectory(prefix="foundry-", dir=scratch()) as work:
        folder = Path(work)
        folder.chmod(0o755)
        write_repository(folder / "debs", target.suite, target.debs, store)
        words = [
            "--variant=essential",
            *foreign(target.debs),
            f"--include={','.join(deb.name for deb in target.debs)}",
            *(f"--dpkgopt={option}" for option in _path_options(target)),
            # The container engine creates device nodes. The hook removes apt's folders: mmdebstrap's way to clean them
            # makes one again, and its owner is another where apt's own user may not enter the temporary folder.
            "--skip=output/dev",
            "--skip=cleanup/apt",
            '--customize-hook=cd "$1" && rm -rf ' + " ".join(_LEFT_BEHIND),
            target.suite,
            str(folder / "rootfs.tar"),
            f"deb [trusted=yes] copy://{quote(str(folder / 'debs'))} ./",
        ]
        try:
            mmdebstrap(words, log=f"base-{tag.rpartition(':')[2]}")
        except CommandError:
            # For a package that was damaged in the store, mmdebstrap only reports that something failed.
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


def foreign(debs: Sequence[Artifact]) -> list[str]:
    """Return mmdebstrap's option for packages whose programs are emulated, because this machine is of another kind."""
    name = architecture(debs)
    return [] if name == platforms.load(platforms.here()).debian else [f"--architectures={name}"]


def mmdebstrap(words: Sequence[str], *, log: str, niceness: int = 0) -> None:
    """Run mmdebstrap, as root or in namespaces that it creates itself; for log and niceness see children.run.

    Raises:
        MissingToolError: it is not installed.
        CommandError: it failed, or this user may not create file systems with it.
    """
    program = tool("mmdebstrap", package="mmdebstrap")
    as_root = os.geteuid() == 0
    if not as_root:
        tool("newuidmap", package="uidmap")
    env = {"PATH": _PATH, "HOME": "/", "TMPDIR": str(scratch()), "SOURCE_DATE_EPOCH": str(EPOCH), "DPKG_FORCE": _FORCE}
    mode = f"--mode={'root' if as_root else 'unshare'}"
    run([program, mode, *words], log=log, env=env, isolated=as_root, next="./foundry doctor", niceness=niceness)


def write_repository(folder: Path, suite: str, debs: Sequence[Artifact], store: Store) -> None:
    """Write a package archive of exactly these packages."""
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
    """Return dpkg's options that select files of the packages; the last option that matches a file applies."""
    return [
        *(f"path-exclude={pattern}" for pattern in target.left_out),
        *(f"path-include={pattern}" for pattern in target.kept),
    ]


def architecture(debs: Sequence[Artifact]) -> str:
    """Return the architecture of the packages; Docker uses Debian's names."""
    architectures = {deb.filename.rpartition("_")[2].removesuffix(".deb") for deb in debs} - {"all"}
    if len(architectures) != 1:
        raise PinError(
            f"the packages of a base image are for more than one architecture: {', '.join(sorted(architectures))}"
        )
    return architectures.pop()
