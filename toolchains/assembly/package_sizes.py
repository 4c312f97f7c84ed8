"""Find which Debian or Python package owns the bytes of a file system.

It runs inside an image, `python3 package_sizes.py`, and prints JSON. So it uses only the standard library.
"""

from __future__ import annotations

import csv
import json
import os
import sys
from pathlib import Path

# These belong to the kernel or to the running container, not to the image.
_NOT_IMAGE = ("proc", "sys", "dev")
NOBODY = "(no package)"


def measure(root: Path) -> dict[str, int]:
    """Return the bytes of the regular files below a root by their owner; a file with several names counts once."""
    owners = _debian(root) | _python(root)
    sizes: dict[str, int] = {}
    seen = set()
    for folder, folders, names in os.walk(root):
        if Path(folder) == root:
            folders[:] = [name for name in folders if name not in _NOT_IMAGE]
        for name in names:
            path = Path(folder, name)
            state = path.lstat()
            if path.is_symlink() or not path.is_file() or (state.st_dev, state.st_ino) in seen:
                continue
            seen.add((state.st_dev, state.st_ino))
            owner = owners.get(str(_source(path.relative_to(root))), NOBODY)
            sizes[owner] = sizes.get(owner, 0) + state.st_size
    return sizes


def _source(path: Path) -> Path:
    """Return the Python source of a file with byte code, which no package lists; the path itself for any other file."""
    if path.parent.name != "__pycache__":
        return path
    return path.parent.parent / f"{path.name.partition('.')[0]}.py"


def _debian(root: Path) -> dict[str, str]:
    owners = {}
    for listing in root.glob("var/lib/dpkg/info/*.list"):
        package = listing.stem.partition(":")[0]
        for line in listing.read_text().splitlines():
            # Packages still use names in /lib and /bin, which are links into /usr.
            name = line.lstrip("/")
            owners[f"usr/{name}" if name.split("/")[0] in ("bin", "sbin", "lib", "lib64") else name] = package
    return owners


def _python(root: Path) -> dict[str, str]:
    owners = {}
    for record in root.glob("opt/*/lib/python3*/site-packages/*.dist-info/RECORD"):
        distribution = f"python: {record.parent.name.partition('-')[0]}"
        packages = record.parent.parent.relative_to(root)
        with record.open(newline="") as file:
            for name, *_ in csv.reader(file):
                owners[os.path.normpath(packages / name)] = distribution
    return owners


if __name__ == "__main__":
    json.dump(measure(Path("/")), sys.stdout)
