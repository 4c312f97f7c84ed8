"""What users of a target have as a folder of their own, put where the target's documents say that it is in a container.

It is no part of an image, so that an edit there leaves the image alone.
"""

from __future__ import annotations

from . import paths
from .engine import Container
from .lock import LockedTarget

# Folders beside a backend's sources, by name. TritonPIM's documents mount theirs there.
_PLACES = {"tritonpim": "/mnt/host_cwd"}


def furnish(container: Container, target: LockedTarget) -> None:
    """Copy a backend's user folders into a container of its image; nothing, where it has none."""
    for name, place in _PLACES.items():
        folder = paths.BACKENDS / target.backend / name
        if not folder.is_dir():
            continue
        container.copy_into(folder, place)
        # Archives carry regular files only.
        for link in (path for path in folder.rglob("*") if path.is_symlink()):
            container.call(["ln", "-sfn", str(link.readlink()), f"{place}/{link.relative_to(folder)}"])
