"""The verb ci: what CI systems run, made from the targets: a matrix, files for GitHub and GitLab, and a bake file.

The files for GitHub and GitLab are where these systems read them, and are made from templates in ci/. They have a job
for each release of each proven target, one for the quick tests before all others, one for .ci/run, and one that writes
the report from the results of all. The bake file has the image of each job, for BuildKit. A target that is added to the
lock is a part of the next files; tests/verbs/test_ci.py says when they are old.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from toolchains.lockfile.lock import AMD64, Lock
from toolchains.system import durable, paths
from toolchains.system.errors import UsageError, suggestion
from toolchains.verbs import bake

_FOLDER = paths.ROOT / "ci"
# The place of each system's file; its template is ci/SYSTEM.yml.in.
SYSTEMS = {"github": ".github/workflows/foundry.yml", "gitlab": ".gitlab-ci.yml"}
# The system of one more file: `docker buildx bake` builds the images.
BAKE = "bake"


@dataclass(frozen=True)
class _Job:
    """What a CI system proves: a target with several releases of Triton, for a platform; "" for linux/amd64."""

    target: str
    releases: Sequence[str]
    platform: str


def matrix(lock: Lock) -> str:
    """Return one line of JSON, {"include": [{"target": ..., "triton": ...}, ...]}; some have a "platform", too."""
    rows = [
        {"target": job.target, "triton": release} | ({"platform": job.platform} if job.platform else {})
        for job in _jobs(lock)
        for release in job.releases
    ]
    return json.dumps({"include": rows})


def text(system: str, lock: Lock) -> str:
    """Return the file for a CI system.

    Raises:
        UsageError: there is no file for it.
    """
    if system == BAKE:
        return bake.combined(lock)
    if system not in SYSTEMS:
        known = (*SYSTEMS, BAKE)
        raise UsageError(
            f"there is no file for {system}{suggestion(system, known)}",
            why=f"there are files for {', '.join(known)}",
            next="let it run .ci/run, and `./foundry e2e TARGET --triton=RELEASE` for each pair of `./foundry ci`",
        )
    template = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    source = (_FOLDER / f"{system}.yml.in").read_text(encoding="utf-8")
    return template.from_string(source).render(jobs=(jobs := _jobs(lock)), foreign=any(job.platform for job in jobs))


def place(system: str) -> Path:
    """Return where a system's file is."""
    return _FOLDER / bake.BAKE_FILE if system == BAKE else paths.ROOT / SYSTEMS[system]


def write(system: str, lock: Lock) -> Path:
    """Write a system's file to its place, and return that."""
    written = text(system, lock)
    durable.write(place(system), written)
    return place(system)


def _jobs(lock: Lock) -> list[_Job]:
    """Return a job for each target. Variants without their own parts are left out; see Lock.proven."""
    return [
        _Job(target.name, list(target.tritons), target.platform if target.platform != AMD64 else "")
        for target in lock.proven()
    ]
