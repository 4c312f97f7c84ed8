"""What users of a target have as a folder of their own, put where the target's documents say that it is in a container.

It is no part of an image, so that an edit there leaves the image alone.
"""

from __future__ import annotations

from toolchains.engine.client import Container
from toolchains.lockfile.lock import LockedTarget
from toolchains.system import paths

# Folders below backends/ and where they go. TritonPIM's documents mount theirs there; VeriSilicon's say
# `cd triton_vsi_backend`, and build a wheel of the sources in it.
_PLACES = {"dpu/tritonpim": "/mnt/host_cwd", "vsi": "/foundry/triton_vsi_backend"}


def folders(target: LockedTarget) -> tuple[str, ...]:
    """The places outside /foundry that furnish() writes to."""
    places = (place for name, place in _PLACES.items() if name.split("/")[0] == target.backend)
    return tuple(place for place in places if not place.startswith("/foundry/"))


# What the project's users read and try; the folder of a backend's own examples is below the common one.
_INSTRUCTIONS = {"README.md": "/foundry/README.md", "docs": "/foundry/docs", "examples": "/foundry/examples"}


def instruct(container: Container, target: LockedTarget) -> None:
    """Copy documents and examples into a container: the project's, and those of the target's backend."""
    for name, place in _INSTRUCTIONS.items():
        container.copy_into(paths.ROOT / name, place)
    own = paths.BACKENDS / target.backend
    for name, place in {"README.md": f"docs/{target.backend}.md", "examples": f"examples/{target.backend}"}.items():
        if (own / name).exists():
            container.copy_into(own / name, f"/foundry/{place}")


def furnish(container: Container, target: LockedTarget) -> None:
    """Copy a backend's user folders into a container of its image; nothing, where it has none."""
    for name, place in _PLACES.items():
        folder = paths.BACKENDS / name
        if name.split("/")[0] != target.backend or not folder.is_dir():
            continue
        container.copy_into(folder, place)
        # Archives carry regular files only.
        for link in (path for path in folder.rglob("*") if path.is_symlink()):
            container.call(["ln", "-sfn", str(link.readlink()), f"{place}/{link.relative_to(folder)}"])
