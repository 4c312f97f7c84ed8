"""A tiny image for tests that need a container: a shell and a few tools of this host's, a few megabytes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from toolchains import archive
from toolchains.engine import Engine

# Two test runs may share an engine.
NAME = f"foundry-test/tiny:{os.getpid()}"
_TOOLS = (
    "sh", "cat", "chmod", "df", "du", "echo", "env", "head", "id", "ln", "ls", "mkdir", "nproc", "pwd", "rm", "sleep",
    "stty", "test", "timeout",
)  # fmt: skip
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@contextmanager
def tiny_image(engine: Engine, work: Path) -> Iterator[str]:
    """The image's name; it is removed afterwards."""
    rootfs, image = work / "tiny-rootfs.tar", work / "tiny.tar"
    tools = [Path(path) for name in _TOOLS if (path := shutil.which(name))]
    linked = subprocess.run(["ldd", *tools], capture_output=True, text=True, check=False).stdout
    libraries = {Path(path) for path in re.findall(r"(/\S+) \(0x", linked)}
    with tarfile.open(rootfs, "w", dereference=True) as tar:
        for path in tools:
            tar.add(path, f"bin/{path.name}")
        for path in sorted(libraries):
            tar.add(path, str(path).lstrip("/"))
        removed = tarfile.TarInfo("removed")
        tar.addfile(removed)
    machine = _ARCHITECTURES[subprocess.check_output(["uname", "-m"], text=True).strip()]
    archive.base(rootfs, image, name=NAME, architecture=machine, env=["PATH=/bin", "GREETING=hello"], command=["sh"])
    engine.load(image)
    try:
        yield NAME
    finally:
        engine.remove(NAME)
