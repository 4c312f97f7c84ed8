"""Base images: exactly the locked packages, the same bytes each time."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import subprocess
import tarfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from toolchains.fetch.store import Store
from toolchains.images import base
from toolchains.lockfile import lock
from toolchains.lockfile.lock import Artifact, LockedTarget
from toolchains.system import paths
from toolchains.system.children import Completed
from toolchains.system.errors import CommandError, HashMismatchError, OfflineError, PinError


@pytest.fixture
def target() -> LockedTarget:
    return lock.load().targets["spirv"]


def test_name_depends_on_packages_and_left_out_files_not_on_order(target: LockedTarget, tmp_path: Path) -> None:
    name = base.identity(target)
    assert base.identity(replace(target, debs=target.debs[::-1])) == name
    assert base.identity(replace(target, wheels=())) == name
    others = [replace(target, debs=target.debs[1:]), replace(target, left_out=()), replace(target, kept=())]
    assert len({name, *map(base.identity, others)}) == 4
    with pytest.raises(OfflineError, match=re.escape(str(target.debs[0]))):
        base.ensure_base(target, Store(tmp_path))
    debs = [replace(target.debs[0], filename=f"x_1_{name}.deb") for name in ("amd64", "arm64", "all")]
    with pytest.raises(PinError, match="amd64, arm64"):
        base.architecture(debs)


@pytest.mark.parametrize("noticed_by", ["dpkg-deb", "mmdebstrap"])
def test_a_package_that_was_damaged_in_the_store_is_named_and_taken_out(
    target: LockedTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, noticed_by: str
) -> None:
    def run(argv: Sequence[str | Path], **_: Any) -> Completed:
        if argv[0] == noticed_by:
            raise CommandError(f"{noticed_by} failed", next="./foundry doctor")
        return Completed(0, "Package: x\n", "")

    monkeypatch.setattr(base, "run", run)
    monkeypatch.setattr(base, "tool", lambda name, **_: name)
    store = Store(tmp_path, offline=True)
    deb = replace(target.debs[0], size=4, sha256=hashlib.sha256(b"good").hexdigest())
    place = store._place(deb)
    place.parent.mkdir(parents=True)
    place.write_bytes(b"evil")
    # The file is damaged after the store has checked it.
    monkeypatch.setattr(Store, "path", lambda self, artifact: self._place(artifact))
    with pytest.raises(HashMismatchError, match="were damaged") as raised:
        base.make_base(replace(target, debs=(deb,)), store, tmp_path / "image", "x:y")
    assert deb.filename in raised.value.why
    assert "pin --fetch" in raised.value.next
    assert not place.exists()


@pytest.mark.network
def test_two_runs_at_two_times_give_the_same_bytes_with_nothing_of_this_host(
    target: LockedTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(paths.cache())
    store.fetch(target.debs, suite=target.suite, python=target.python)
    debs = essential(target, store)
    small = replace(target, debs=debs)
    digests = []
    # Not below tmp_path, which a subordinate user cannot enter.
    with TemporaryDirectory(dir="/var/tmp", prefix="with a space ") as folder:
        # Root needs no right to enter it. apt's own user, whom apt then becomes, has none.
        Path(folder).chmod(0o700 if os.geteuid() == 0 else 0o755)
        for run in ("one", "other"):
            monkeypatch.setenv("POISON", run)
            if run == "other":
                monkeypatch.setenv("TMPDIR", folder)
            monkeypatch.setenv("LANG", "de_DE.UTF-8" if run == "one" else "C")
            base.make_base(small, store, tmp_path / run, "foundry-test/base:x")
            with (tmp_path / run).open("rb") as file:
                digests.append(hashlib.file_digest(file, "sha256").hexdigest())
            time.sleep(1.1)
    assert digests[0] == digests[1]
    found = entries(tmp_path / "one")
    assert not {"etc/resolv.conf", "etc/hostname", "etc/apt/sources.list", "var/log/dpkg.log"} & found
    # dpkg makes the folders of documents that it leaves out.
    left_out = re.compile(r"usr/share/(doc/[^/]+/(?!copyright)|man/.).*[^/]$|var/(lib|cache)/apt|dev/.")
    assert not [name for name in found if left_out.match(name)]
    assert "usr/share/doc/bash/copyright" in found
    listed = {match[1] for name in found if (match := re.fullmatch(r"var/lib/dpkg/info/([^:]+)(?::\w+)?\.list", name))}
    assert listed == {deb.name for deb in debs}


def essential(target: LockedTarget, store: Store) -> tuple[Artifact, ...]:
    """Return the locked packages that any system has, with their dependencies. An image of these takes seconds."""
    fields, provided = dict[str, dict[str, str]](), dict[str, str]()
    for deb in target.debs:
        shown = subprocess.check_output(["dpkg-deb", "--field", store.path(deb)], text=True)
        fields[deb.name] = dict(re.findall(r"^([\w-]+): (.*)$", shown, re.MULTILINE))
        provided |= dict.fromkeys(names(fields[deb.name].get("Provides", "")), deb.name)
    found: set[str] = set()
    todo = [name for name, field in fields.items() if field.get("Essential") == "yes"]
    while todo:
        name = todo.pop()
        name = name if name in fields else provided.get(name, "")
        if name and name not in found:
            found.add(name)
            todo += names(fields[name].get("Depends", "")) + names(fields[name].get("Pre-Depends", ""))
    return tuple(deb for deb in target.debs if deb.name in found)


def names(dependencies: str) -> list[str]:
    """Return the packages of a Depends line, with all alternatives."""
    return re.findall(r"(?:^|[,|] )([a-z0-9][a-z0-9+.-]+)", dependencies)


def entries(image: Path) -> set[str]:
    """Return the names of the files in an image that are not empty, and of folders, which end with a slash."""
    with tarfile.open(image) as tar:
        manifest = tar.extractfile("manifest.json")
        assert manifest is not None
        layer = tar.extractfile(json.load(manifest)[0]["Layers"][0])
        assert layer is not None
        with tarfile.open(fileobj=io.BytesIO(layer.read())) as inner:
            return {entry.name + "/" * entry.isdir() for entry in inner if entry.size or entry.isdir()}


def test_dpkg_is_forced_to_its_own_defaults_and_not_to_wait_for_the_disk() -> None:
    shown = subprocess.run(
        ["dpkg", "--force-help"], env={"PATH": base._PATH}, capture_output=True, text=True, check=True
    )
    defaults = re.findall(r"^  \[\*\] (\S+)", shown.stdout, re.MULTILINE)
    assert {*base._FORCE.split(",")} == {*defaults, "unsafe-io"}
