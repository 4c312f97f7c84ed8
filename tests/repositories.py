"""Make git repositories for tests, and map network addresses to folders, as a user's mirror does."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from toolchains.system import paths

_WHO = {
    "GIT_AUTHOR_NAME": "nobody",
    "GIT_AUTHOR_EMAIL": "nobody@localhost",
    "GIT_AUTHOR_DATE": "2020-01-01T00:00:00Z",
    "GIT_COMMITTER_NAME": "nobody",
    "GIT_COMMITTER_EMAIL": "nobody@localhost",
    "GIT_COMMITTER_DATE": "2020-01-01T00:00:00Z",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
}
ADDRESS = "https://git.invalid"


class Repository:
    """A repository with a working tree."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main")

    @property
    def url(self) -> str:
        """Return the address that it is fetched by; see mirror."""
        return f"{ADDRESS}/{self.folder.name}"

    def git(self, *words: str, **env: str) -> str:
        """Run git in the repository. Return what it printed."""
        done = subprocess.run(
            ["git", "-C", str(self.folder), *words],
            env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **_WHO, **env},
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def write(self, files: Mapping[str, str | bytes]) -> None:
        """Write files; "-> x" makes a link to x."""
        for name, content in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            data = content if isinstance(content, bytes) else content.encode()
            if data.startswith(b"-> "):
                path.symlink_to(data[3:].decode())
            else:
                path.write_bytes(data)

    def commit(self, files: Mapping[str, str | bytes] | None = None) -> str:
        """Commit these files and all other changes. Return the commit."""
        self.write(files or {})
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "for a test")
        return self.git("rev-parse", "HEAD")

    def submodule(self, path: str, url: str, commit: str) -> None:
        """Add a submodule at a commit, without fetching it."""
        before = (self.folder / ".gitmodules").read_text() if (self.folder / ".gitmodules").exists() else ""
        (self.folder / ".gitmodules").write_text(f'{before}[submodule "{path}"]\n\tpath = {path}\n\turl = {url}\n')
        self.git("update-index", "--add", "--cacheinfo", f"160000,{commit},{path}")
        self.git("add", ".gitmodules")


def mirror(folder: Path, monkeypatch: pytest.MonkeyPatch, *, more: str = "") -> Path:
    """Make git fetch folders below this one for addresses below ADDRESS. Return the user's git configuration file."""
    config = folder / ".gitconfig"
    config.write_text(f'[url "file://{folder}/"]\n\tinsteadOf = {ADDRESS}/\n{more}')
    # The store is found by HOME, too. It stays the user's: it knows the images that were built.
    monkeypatch.setenv("FOUNDRY_CACHE", str(paths.cache()))
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name in ("GIT_CONFIG_GLOBAL", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    return config
