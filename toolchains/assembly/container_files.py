"""Copy checks, and a target's user folders, documents and examples into a container.

They are not part of an image: editing them does not change the image.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolchains.config import components
from toolchains.engine.container import Container
from toolchains.lockfile.lock import LockedTarget
from toolchains.system import paths

# The folder that a sandbox can always write to.
_HOME = "/foundry/"
# Documents and examples for users. A backend's own examples go into a folder below the common one.
_INSTRUCTIONS = {"README.md": "/foundry/README.md", "docs": "/foundry/docs", "examples": "/foundry/examples"}


def writable_folders(target: LockedTarget) -> tuple[str, ...]:
    """Return the folders outside /foundry that copy_user_folders() writes to."""
    places = components.target(target.name).user_folders.values()
    return tuple(place for place in places if not place.startswith(_HOME))


def copy_user_folders(container: Container, target: LockedTarget) -> None:
    """Copy the folders that the target's file names (`user-folders`) to their places in a container."""
    for name, place in components.target(target.name).user_folders.items():
        folder = paths.BACKENDS / name
        container.copy_into(folder, place)
        # The archives that copy_into() writes contain only regular files; a link to a file is that file in them.
        for link in (path for path in folder.rglob("*") if path.is_symlink() and not path.is_file()):
            container.call(["ln", "-sfn", str(link.readlink()), f"{place}/{link.relative_to(folder)}"])


def copy_checks(container: Container, target: LockedTarget, folders: Sequence[str] = ("e2e",)) -> None:
    """Copy folders with checks into a container, and the target's file with their settings (e2e/settings.py).

    Args:
        folders: folders of this repository.
    """
    file = f"{target.backend}.toml"
    for name in folders:
        container.copy_into(paths.ROOT / name, _HOME + name)
    container.copy_into(paths.TARGETS / file, f"{_HOME}{paths.TARGETS.relative_to(paths.ROOT)}/{file}")


def copy_documents(container: Container, target: LockedTarget) -> None:
    """Copy documents and examples into a container: the project's, and those of the target's backend."""
    for name, place in _INSTRUCTIONS.items():
        container.copy_into(paths.ROOT / name, place)
    own = paths.BACKENDS / target.backend
    for name, place in {"README.md": f"docs/{target.backend}.md", "examples": f"examples/{target.backend}"}.items():
        if (own / name).exists():
            container.copy_into(own / name, f"/foundry/{place}")
