"""The manifest of a built part: its content at the time of its build, each file with its size and sha256.

The manifest is inside the part, and is written before the part gets its name.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MANIFEST_FILE = "manifest.json"
_FORMAT = 1


@dataclass(frozen=True)
class Damage:
    """The damage of a part.

    Attributes:
        unlisted: whether it has no manifest because an earlier version of this program built it.
    """

    why: str
    unlisted: bool = False


def write(folder: Path) -> None:
    """Write the manifest of a folder's content."""
    entries = {name: _entry(path) for name, path in contents(folder).items()}
    (folder / MANIFEST_FILE).write_text(
        json.dumps({"format": _FORMAT, "files": entries}, indent=1, sort_keys=True) + "\n"
    )


def read(folder: Path) -> dict[str, Any] | None:
    """Return the entries of a part's manifest by name; None if there is no readable one."""
    try:
        data = json.loads((folder / MANIFEST_FILE).read_bytes())
        entries = data["files"] if data["format"] == _FORMAT else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return entries if isinstance(entries, dict) else None


def damage(folder: Path) -> Damage | None:
    """Return the difference between a part and its manifest; None for an undamaged part."""
    if not (folder / MANIFEST_FILE).exists():
        return Damage("it has no manifest: an earlier version made it", unlisted=True)
    wanted = read(folder)
    if wanted is None:
        return Damage(f"its {MANIFEST_FILE} cannot be read")
    present = contents(folder)
    for name in sorted(wanted.keys() | present.keys() - {MANIFEST_FILE}):
        if name not in present:
            return Damage(f"{name} is missing")
        if name not in wanted:
            return Damage(f"{name} was added")
        try:
            entry = _entry(present[name])
        except OSError as error:
            return Damage(f"{name} cannot be read: {error.strerror}")
        if entry != wanted[name]:
            return Damage(f"{name} has other content\nfound  {_show(entry)}\nmade   {_show(wanted[name])}")
    return None


def contents(folder: Path) -> dict[str, Path]:
    """Return all files and folders below a folder by name, except the manifest."""
    by_name = {}
    for top, folders, files in os.walk(folder):
        for path in (Path(top, name) for name in (*folders, *files)):
            by_name[path.relative_to(folder).as_posix()] = path
    by_name.pop(MANIFEST_FILE, None)
    return by_name


def _entry(path: Path) -> dict[str, Any]:
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return {"link": os.readlink(path)}  # noqa: PTH115
    if stat.S_ISDIR(status.st_mode):
        return {"folder": True}
    if not stat.S_ISREG(status.st_mode):
        return {"special": stat.S_IFMT(status.st_mode)}
    with path.open("rb") as file:
        return {"sha256": hashlib.file_digest(file, "sha256").hexdigest(), "size": status.st_size}


def _show(entry: Any) -> str:
    match entry:
        case {"sha256": str(sha256), "size": int(size)}:
            return f"sha256 {sha256}, {size} bytes"
    return json.dumps(entry)
