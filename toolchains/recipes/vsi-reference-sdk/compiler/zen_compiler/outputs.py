"""Output files that are there whole or not at all: written beside their place, then all put there at once."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping


def remove(paths: list[str]) -> None:
    """Take away what an earlier run left, so that a run that fails leaves nothing that looks like its result.

    Raises:
        OSError: it cannot be taken away.
    """
    for path in paths:
        if _is_file(path):
            os.unlink(path)  # noqa: PTH108


def write(contents: Mapping[str, bytes]) -> None:
    """Write files, all or none. What is no file (/dev/null) is written to, not replaced.

    Raises:
        OSError: one of them cannot be written.
    """
    beside: dict[str, str] = {}
    placed: list[str] = []
    try:
        for path, content in contents.items():
            special = os.path.exists(path) and not _is_file(path)  # noqa: PTH110
            written = path if special else f"{path}.{os.getpid()}.part"
            if not special:
                beside[path] = written
            with open(written, "wb") as file:  # noqa: PTH123
                file.write(content)
        for path, written in beside.items():
            os.replace(written, path)  # noqa: PTH105
            placed.append(path)
    except BaseException:
        for path, written in beside.items():
            for left in (written, path) if path in placed else (written,):
                if _is_file(left):
                    os.unlink(left)  # noqa: PTH108
        raise


def _is_file(path: str) -> bool:
    """Whether it is a file, or a link to one."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)  # noqa: PTH116
    except FileNotFoundError:
        return False
