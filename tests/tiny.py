"""What container tests share: an image of a few megabytes from this host's tools, and an empty store."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from toolchains.archives import docker_archive
from toolchains.engine.client import Engine
from toolchains.fetch.store import Store
from toolchains.system import paths

# Two test runs may share an engine.
NAME = f"foundry-test/tiny:{os.getpid()}"
_TOOLS = (
    "sh",
    "cat",
    "chmod",
    "df",
    "du",
    "echo",
    "env",
    "head",
    "id",
    "ln",
    "ls",
    "mkdir",
    "nproc",
    "pwd",
    "rm",
    "sleep",
    "stty",
    "test",
    "timeout",
)
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@contextmanager
def tiny_image(engine: Engine, work: Path) -> Iterator[str]:
    """Build the image and yield its name. The image is removed afterwards."""
    rootfs, image = work / "tiny-rootfs.tar", work / "tiny.tar"
    tools = [Path(found) for name in _TOOLS if (found := shutil.which(name))]
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
    docker_archive.write_base_image(
        rootfs, image, name=NAME, architecture=machine, env=["PATH=/bin", "GREETING=hello"], command=["sh"]
    )
    engine.load(image)
    try:
        yield NAME
    finally:
        engine.remove(NAME)


def empty_store(root: Path) -> Store:
    """Return an empty store, except for the records about the images that the user's own store made."""
    root.mkdir(parents=True, exist_ok=True)
    (paths.cache() / "images").mkdir(parents=True, exist_ok=True)
    if not (root / "images").exists():
        (root / "images").symlink_to(paths.cache() / "images")
    return Store(root)
