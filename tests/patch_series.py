"""Write patch series for tests, and one for a made-up Triton."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from toolchains.patching.layout import Tree
from toolchains.patching.refresh import refresh
from toolchains.patching.series import Series
from toolchains.system import paths

# The fields that every patch has.
HEADER = "Subject: {}\nWhy: to see it\nUpstream: none\nUntil: never\n"


def write(folder: Path, patches: Mapping[str, str]) -> Path:
    """Write a series of these patches. The keys are their names."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "series").write_text("".join(f"{name}\n" for name in patches))
    for name, text in patches.items():
        (folder / name).write_text(text)
    return folder


def hello(path: str, line: str) -> str:
    """Return a patch that adds a line after the only one of a Python file."""
    return f"{HEADER.format('Say hello')}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1,2 @@\n {line}\n+hello = 2\n"


def for_triton(work: Path, monkeypatch: pytest.MonkeyPatch, release: str, patch: str, tree: Tree) -> None:
    """Use a made-up Triton's series in place of the project's. The project's rules of what is left out still apply."""
    rules = (paths.PATCHES / "triton" / "slim.toml").read_text()
    monkeypatch.setattr(paths, "PATCHES", work / "patches")
    folder = write(paths.PATCHES / "triton" / release, {"0001-hello.patch": patch})
    (folder.parent / "slim.toml").write_text(rules)
    refresh(Series.load(folder), tree)
