"""Pruning: what the lock names stays. The rest is listed first, and is deleted only on request."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from pathlib import Path
from urllib.parse import quote

import pytest
from filelock import FileLock

from toolchains.artifacts import native
from toolchains.contents import packages
from toolchains.engine import client
from toolchains.images import base as rootfs
from toolchains.lockfile import lock
from toolchains.system import paths
from toolchains.system.errors import EngineError
from toolchains.system.terminal import make_console
from toolchains.verbs import prune

OLD = "0" * 64


class Docker:
    """An engine with images and volumes. Records what is removed."""

    def __init__(self, images: dict[str, tuple[tuple[str, ...], int]]) -> None:
        self.images = images
        self.removed: list[str] = []
        self.used: set[str] = set()

    def named(self, pattern: str) -> dict[str, tuple[tuple[str, ...], int]]:
        return self.images

    def abandoned(self) -> dict[str, int]:
        return {}

    def volumes(self, prefix: str) -> tuple[str, ...]:
        return ("triton-foundry-ccache", "triton-foundry-conan-server", "triton-foundry-llvm-0123")

    def remove(self, name: str) -> None:
        if name not in self.used:
            self.removed.append(name)

    def image(self, name: str) -> str | None:
        return name if name in self.used else None

    def remove_volume(self, name: str) -> None:
        raise EngineError(f"cannot remove the volume {name}", why="in use")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[Path, Docker, set[str]]:
    locked = lock.load()
    target = locked.targets["spirv"]
    needed = [target.debs[0].sha256, next(iter(locked.builders.values())).debs[0].sha256]
    kept = [f"artifacts/{each[:2]}/{each}/file" for each in needed]
    kept += [f"parts/base/{rootfs.identity(target)}/image.tar", f"parts/upstream/{OLD}/llvm.tar"]
    kept += [f"parts/copyright/{packages.identity(target.linked[0].debs[0])}/copyright"]
    name = next(iter(prune._images(locked)))
    text = json.dumps({"rootfs": {"diff_ids": [f"sha256:{'a' * 64}"]}})
    config = hashlib.sha256(text.encode()).hexdigest()
    kept += [f"verdicts/{needed[0]}", f"verdicts/upstream-{OLD}", f"apt/{target.suite}-sources/lists"]
    kept += [f"images/{quote(name, safe='')}.json", f"images/configs/{config}", f"images/layers/{'a' * 64}"]
    gone = [
        f"images/configs/{OLD}",
        f"images/layers/{OLD}",
        f"artifacts/00/{OLD}/old.deb",
        f"parts/base/{OLD}/image.tar",
        f"parts/copyright/{OLD}/copyright",
        f"parts/native/.{OLD}.partial/file",
        f"parts/native/.{OLD}.gone/file",
        f"verdicts/{'1' * 64}",
        f"verdicts/base-{'1' * 64}",
        "apt/wheezy+wheezy-backports/lists",
    ]
    store = tmp_path / "store"
    for path in (*kept, *gone):
        (store / path).parent.mkdir(parents=True, exist_ok=True)
        (store / path).write_text("x")
    (store / kept[-3]).write_text(json.dumps([{"id": "1", "labels": {}, "config": f"sha256:{config}"}]))
    (store / kept[-2]).write_text(text)
    (store / "locks").mkdir()
    base = f"triton-foundry/base:{target.suite}-"
    docker = Docker(
        {
            "1": ((f"{base}{rootfs.identity(target)[:16]}",), 1),
            "2": ((f"{base}{'0' * 16}",), 2_000_000),
            "3": ((f"triton-foundry/spirv:{'0' * 16}",), 3_000_000),
            "4": ((f"triton-foundry/spirv:{'1' * 16}", "triton-foundry/spirv:latest"), 4),
            "5": ((native.recipe_builder_name(next(iter(locked.builders.values()))),), 5),
            "6": ((f"triton-foundry/python:{'0' * 16}",), 6_000_000),
        }
    )
    monkeypatch.setenv("FOUNDRY_CACHE", str(store))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr(paths, "LOGS", tmp_path / "logs")
    monkeypatch.setattr(client, "connect", lambda: docker)
    return store, docker, set(kept)


def files(store: Path) -> set[str]:
    found = {path.relative_to(store).as_posix() for path in store.rglob("*") if path.is_file()}
    return {name for name in found if not name.startswith("locks/")}


def test_nothing_is_removed_unasked(machine: tuple[Path, Docker, set[str]], capsys: pytest.CaptureFixture[str]) -> None:
    store, docker, _ = machine
    before = files(store)
    prune.prune(remove=False)
    assert files(store) == before
    assert docker.removed == []
    shown = capsys.readouterr().out
    assert "./foundry prune --remove" in shown
    for row in ("fetched files", "built parts: base", "records of images", "left unfinished"):
        assert row in shown
    assert re.search(r"images \(they share layers\)\W+3\W+11\W", shown), "3 images of 11 MB together"
    assert not re.search(r"nothing\W+0\W", shown)
    prune.Prunable(items=[]).render(make_console())
    assert re.search(r"nothing\W+0\W+0\W", capsys.readouterr().out)


def test_prune_removes_unused_images_children_first_and_names_what_stays(
    machine: tuple[Path, Docker, set[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    store, docker, kept = machine
    prune.prune(remove=True)
    assert files(store) == kept
    zeros = "0" * 16
    suite = lock.load().targets["spirv"].suite
    assert docker.removed == [
        f"triton-foundry/spirv:{zeros}",
        f"triton-foundry/python:{zeros}",
        f"triton-foundry/base:{suite}-{zeros}",
    ]
    said = " ".join(capsys.readouterr().out.split())
    assert "removed 13 of 14" in said
    assert "kept: triton-foundry-llvm-0123" in said
    assert paths.cache() == store


def test_image_in_use_stays(machine: tuple[Path, Docker, set[str]], capsys: pytest.CaptureFixture[str]) -> None:
    _, docker, _ = machine
    docker.used.add(f"triton-foundry/spirv:{'0' * 16}")
    prune.prune(remove=True)
    said = " ".join(capsys.readouterr().out.split())
    assert "removed 12 of 14" in said
    assert f"kept: triton-foundry/spirv:{'0' * 16}: " in said
    assert "a container or another image uses it" in said


def test_old_logs_go_and_a_part_that_is_being_built_stays(machine: tuple[Path, Docker, set[str]]) -> None:
    store, _, _ = machine
    (store / "locks").mkdir(exist_ok=True)
    with FileLock(store / "locks" / f"native-{OLD}"):
        found = list(prune._store(store, lock.load()))
    assert not [item for item in found if "partial" in item.name]
    paths.LOGS.mkdir()
    for name, age in (("old.log", 2), ("new.log", 0), ("dockerd.log", 9)):
        (paths.LOGS / name).write_text("x")
        then = time.time() - age * 86400
        os.utime(paths.LOGS / name, (then, then))
    prune.prune(remove=True)
    assert {each.name for each in paths.LOGS.iterdir()} == {"new.log", "dockerd.log"}


def test_every_artifact_of_the_lock_is_found() -> None:
    text = paths.LOCK.read_text()
    found = {artifact.sha256 for artifact in prune._artifacts(lock.load())}
    assert found
    locked = lock.load()
    for target in (*locked.targets.values(), *locked.builders.values()):
        assert {artifact.sha256 for artifact in (*target.debs, *target.wheels, *target.sdists)} <= found
        assert {release.wheel.sha256 for release in target.tritons.values()} <= found
    assert all(sha256 in text for sha256 in found)
