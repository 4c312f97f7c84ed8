"""Copy pure-Python distributions out of this environment, for another Python that runs the same modules."""

from __future__ import annotations

import shutil
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from toolchains.system.errors import CheckError


def copy(name: str, folder: Path) -> None:
    """Copy a distribution and its requirements into a folder, without their programs and byte code.

    Raises:
        CheckError: a distribution has compiled code, which would not run in another Python.
    """
    for each in sorted(closure(name)):
        for file in metadata.files(each) or ():
            if ".." in file.parts or "__pycache__" in file.parts:
                continue
            if file.suffix == ".so":
                raise CheckError(f"{each}, which {name} needs, is not pure Python", why=f"it has {file}")
            target = folder / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(str(file.locate()), target)


def closure(name: str) -> set[str]:
    """Return the names of a distribution and of all its requirements in this environment."""
    found: set[str] = set()

    def visit(name: str) -> None:
        if name in found:
            return
        found.add(name)
        for line in metadata.requires(name) or ():
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                visit(requirement.name)

    visit(name)
    return found
