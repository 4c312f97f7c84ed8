"""Write output files completely or not at all: to temporary names first, which are then renamed together."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path


def remove(paths: Iterable[Path]) -> None:
    """Remove the outputs of an earlier run, so that a run that fails leaves nothing that looks like its result.

    Raises:
        OSError: it cannot be taken away.
    """
    for path in paths:
        if path.is_file():
            path.unlink()


def write(contents: Mapping[Path, bytes]) -> None:
    """Write files, all or none. What is no file (/dev/null) is written to, not replaced.

    Raises:
        OSError: one of them cannot be written.
    """
    left: list[Path] = []
    beside: dict[Path, Path] = {}
    try:
        for path, content in contents.items():
            special = path.exists() and not path.is_file()
            written = path if special else path.with_name(f"{path.name}.{os.getpid()}.part")
            if not special:
                beside[path] = written
                left.append(written)
            written.write_bytes(content)
        for path, written in beside.items():
            written.replace(path)
            left.append(path)
    except BaseException:
        for path in left:
            path.unlink(missing_ok=True)
        raise
