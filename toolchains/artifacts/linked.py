"""Link programs with static archives of Debian packages, of which the image then needs no package.

    root      the locked packages, unpacked without what they depend on, in a temporary folder
    part      what toolchains/recipes/NAME/link.sh, run in that folder as its root, leaves in /out

The part is named by the digest of the packages and of the recipe, so targets of one suite share it. It needs no
container engine, and is linked while the base image is made. Two runs give the same bytes.

For another platform than this machine's, the compiler and the linker are those that are locked for this machine, and
everything else is the platform's own. Nothing is emulated: clang and lld write the same bytes on any machine.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from toolchains.archives import folders, prefix
from toolchains.config import platforms
from toolchains.config.platforms import Platform
from toolchains.contents import licences
from toolchains.contents.component import Component, properties
from toolchains.contents.packages import DebianPackages
from toolchains.fetch.store import Store
from toolchains.images import base
from toolchains.lockfile import lock
from toolchains.lockfile.lock import Artifact, Linked, LockedTarget, digest
from toolchains.system import paths
from toolchains.system.errors import CommandError
from toolchains.system.steps import step

# The revision of how packages become a part: raise it whenever that changes. It is part of the part's identity.
FORMAT = 1
_KIND = "linked"
_SCRIPT = "link.sh"
# The end of the names of packages with archives to link.
_ARCHIVES = "-dev"


def identity(what: Linked) -> str:
    """Return the digest of all inputs of a program's part."""
    return _identity(what, _sources(what))


def component(what: Linked, debs: DebianPackages) -> Component:
    """Return a program as a component, whose ancestors are the packages that it is linked in and with.

    Args:
        debs: describes these packages.
    """
    sources = _sources(what)
    return Component(
        "program",
        what.recipe,
        identity(what)[:16],
        licences.of_linked(what.recipe, sources[_SCRIPT].read_bytes()),
        ancestors=debs.components(what.debs),
        properties=properties(
            inputs=identity(what), sources=folders.files_digest(sources), left_out=list(what.left_out)
        ),
    )


def fetch_if_needed(target: LockedTarget, store: Store) -> LockedTarget:
    """Fetch the packages that programs are linked with; return the target with those that are really used."""
    linked = []
    for what in target.linked:
        if not store.has_part(_KIND, identity(what)):
            with step(f"{len(what.debs)} locked files to link {what.recipe} with"):
                fetched = store.fetch(what.debs, suite=target.suite, python=target.python, platform=target.platform)
                store.fetch(_tools(what), suite=target.suite, python=target.python, platform=platforms.here())
            # Packages that drift come with all that they depend on.
            by_name = {deb.name: deb for deb in fetched}
            what = replace(what, debs=tuple(by_name[deb.name] for deb in what.debs))
        linked.append(what)
    return replace(target, linked=tuple(linked))


def part(what: Linked, suite: str, store: Store) -> Path:
    """Return a tar of the linked files, from the store or linked now.

    Args:
        what: its packages must be in the store.

    Raises:
        TruncatedError, HashMismatchError: a package was damaged in the store; it was removed from the store.
        CommandError: mmdebstrap or the recipe failed; carries the last lines printed.
    """
    with TemporaryDirectory(prefix="foundry-", dir=paths.scratch()) as work:
        work_folder = Path(work)
        # Run as an ordinary user, mmdebstrap works with the rights of a subordinate user.
        work_folder.chmod(0o755)
        copies = folders.copy(_sources(what), work_folder / "recipe")
        identity = _identity(what, copies)
        _platform(what).rewrite_files(copies.values())

        def link(folder: Path) -> None:
            with step(f"linking {what.recipe}"):
                _run_recipe(what, suite, work_folder, store)
                prefix.normalise(work_folder / "out.tar", folder / "files.tar", below="out")

        return store.part(_KIND, identity, link) / "files.tar"


def _run_recipe(what: Linked, suite: str, work: Path, store: Store) -> None:
    """Unpack the packages in a folder, and run the recipe with it as its root; its files are then in work/out.tar."""
    debs = work / "debs"
    base.write_repository(debs, suite, what.debs, store)
    tools = _tools(what)
    if tools:
        base.write_repository(work / "tools", suite, tools, store)
    without = " ".join(f"--exclude={shlex.quote(f'.{pattern}')}" for pattern in what.left_out)
    # The tools come last: their programs replace those of another platform.
    packages = " ".join(f"{shlex.quote(str(work / name))}/*.deb" for name in ("debs", *["tools"] * bool(tools)))
    unpacked = f'for deb in {packages}; do dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$1" {without}'
    words = [
        "--variant=extract",
        "--format=null",
        f"--extract-hook={unpacked}; done",
        f"--extract-hook=copy-in {shlex.quote(str(work / 'recipe'))} /",
        '--extract-hook=chroot "$1" /usr/bin/busybox sh -eu /recipe/' + _SCRIPT,
        f"--extract-hook=tar-out /out {shlex.quote(str(work / 'out.tar'))}",
        suite,
        "/dev/null",
        f"deb [trusted=yes] copy://{quote(str(debs))} ./",
    ]
    try:
        # The base image, which is made at the same time, is needed earlier.
        base.mmdebstrap(words, log=f"linked-{what.recipe}", niceness=10)
    except CommandError:
        store.verify([*what.debs, *tools])
        raise


def _sources(what: Linked) -> dict[str, Path]:
    return folders.files(paths.RECIPES / what.recipe)


def _tools(what: Linked) -> tuple[Artifact, ...]:
    """Return the packages of compiler and linker for this machine if the program is for another platform."""
    here = platforms.here()
    if _platform(what).name == here:
        return ()
    targets = lock.load(platform=here).targets.values()
    programs = (program for target in targets for program in target.linked if program.recipe == what.recipe)
    # Archives and start files have the same paths on both platforms, and are the program's.
    return tuple(deb for deb in next(programs).debs if not deb.name.endswith(_ARCHIVES))


def _platform(what: Linked) -> Platform:
    """Return the platform of the packages that a program is linked with."""
    architecture = base.architecture(what.debs)
    return platforms.load(next(name for name in platforms.names() if platforms.load(name).debian == architecture))


def _identity(what: Linked, sources: Mapping[str, Path]) -> str:
    return digest(
        {
            "sources": folders.files_digest(sources),
            "debs": sorted(deb.sha256 for deb in what.debs),
            "left-out": what.left_out,
            "format": [FORMAT, prefix.FORMAT],
            **_platform(what).identity,
        }
    )
