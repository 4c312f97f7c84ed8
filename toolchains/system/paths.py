"""The paths of the project's own folders, and of the caches that it may fill."""

from __future__ import annotations

import os
from pathlib import Path

from toolchains.system import scratch as folders

ROOT = Path(__file__).resolve().parents[2]
PINS = ROOT / "toolchains" / "pins"
TARGETS = ROOT / "toolchains" / "targets"
UPSTREAMS = ROOT / "toolchains" / "upstreams"
BUILDERS = ROOT / "toolchains" / "builders"
PLATFORMS = ROOT / "toolchains" / "platforms"
LOCK = ROOT / "toolchains" / "lock.json"
# What the lock's images and their parts were built to: IDs and sha256.
EXPECTED = ROOT / "toolchains" / "expected.json"
PATCHES = ROOT / "patches"
BACKENDS = ROOT / "backends"
DOCKER = ROOT / "docker"
RECIPES = ROOT / "toolchains" / "recipes"
SDKS = ROOT / "toolchains" / "sdks"
SCHEMAS = ROOT / "toolchains" / "schemas"
CMAKE = ROOT / "cmake"
# The version of all packages, and nothing else; the packages have links to it.
VERSION = ROOT / "VERSION"
# Ignored by git: logs, results, working folders. Safe to delete at any time.
BUILD = ROOT / "build"
LOGS = BUILD / "logs"
RESULTS = BUILD / "results"


def cache() -> Path:
    """Return the folder of the store, which has every built part.

    FOUNDRY_CACHE takes precedence; then the XDG cache directory; then ~/.cache. All checkouts of a user share it,
    because every name in it is a digest.
    """
    override = os.environ.get("FOUNDRY_CACHE")
    if override:
        return Path(override).expanduser().resolve()
    xdg = os.environ.get("XDG_CACHE_HOME")
    base = Path(xdg) if xdg else Path.home() / ".cache"
    return base / "triton-foundry"


def temporary() -> Path:
    """Return the folder for temporary files: TMPDIR, or /var/tmp, because /tmp is often in memory."""
    return Path(os.environ.get("TMPDIR") or "/var/tmp").absolute()


def scratch() -> Path:
    """Return this process's own folder for large temporary files: removed when it ends, or by the next run."""
    return folders.process_folder(temporary())
