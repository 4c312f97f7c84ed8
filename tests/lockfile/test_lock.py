"""The lock file: it reads back as written, notices edits, and does not say where bytes come from."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from toolchains.lockfile import lock
from toolchains.lockfile.lock import Artifact, Linked, Lock, LockedSource, LockedTarget, LockedTriton, Patched
from toolchains.system import paths
from toolchains.system.errors import PinError

DEB = Artifact("deb", "tool", "1:2.0-1", "tool_2.0-1_amd64.deb", 10, "a" * 64)
WHEEL = Artifact("wheel", "top", "1.0", "top-1.0-py3-none-any.whl", 20, "b" * 64)
TRITON = Artifact("wheel", "triton", "3.9.0", "triton-3.9.0-cp312-abi3-any.whl", 30, "c" * 64)


LINKED = Linked("program", (Artifact("deb", "archive", "1", "archive_1_amd64.deb", 50, "8" * 64),), ("/b/*",))
SDIST = Artifact("sdist", "made", "1.0", "made-1.0.tar.gz", 40, "9" * 64)


def target(name: str = "one") -> LockedTarget:
    return LockedTarget(
        name=name,
        backend="spirv",
        suite="trixie",
        python="3.13",
        debs=(DEB,),
        wheels=(WHEEL,),
        tritons={"3.9.0": LockedTriton("3.9.0", "d" * 40, TRITON)},
        default_triton="3.9.0",
        left_out=("/usr/share/doc/*",),
        kept=("/usr/share/doc/*/copyright",),
        pins={"debs": "e" * 64},
    )


def build_system(name: str, **more: Any) -> LockedTarget:
    """Return what parts or projects are built in."""
    plain = replace(target(name), tritons={}, default_triton="", left_out=(), kept=(), pins={"debs": "f" * 64})
    return replace(plain, sdists=(SDIST,), **more)


def with_parts(name: str = "one") -> LockedTarget:
    """Return a target with native parts."""
    return replace(
        target(name),
        recipes=("part", "other"),
        builder=build_system(f"{name}-build", wheels=()),
        sdk="vendor",
        patched=(Patched("edited", "tool", "tool/2.0", "/usr/lib"),),
        linked=(LINKED,),
    )


ORIG = Artifact("source", "tool", "1:2.0-1", "tool_2.0.orig.tar.xz", 50, "7" * 64)
SOURCES = {
    "tool/debian": LockedSource("debian", "1:2.0-1", files=(ORIG,), pin="5" * 64),
    "tool/git": LockedSource("git", "v2", "6" * 40, "4" * 40, pin="3" * 64),
    "tool/bare": LockedSource("git", commit="6" * 40, pin="2" * 64),
}


def with_sources() -> Lock:
    """Return a lock with sources, and with the images that they are built in."""
    builder = build_system("build-trixie", backend="")
    return lock.seal({"one": target("one")}, SOURCES, {"trixie": builder})


def sealed(*targets: LockedTarget) -> Lock:
    return lock.seal({target.name: target for target in targets})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "lock.json"
    lock.save(sealed(target("one"), target("two")), path)
    return path


def test_a_lock_reads_back_as_it_was_written_with_a_line_for_each_artifact(file: Path) -> None:
    assert lock.load(file) == sealed(target("one"), target("two"))
    # Writing what was read changes nothing.
    before = file.read_text()
    lock.save(lock.load(file), file)
    assert file.read_text() == before
    # A target without native parts says nothing of them.
    rare = {"builder", "recipes", "sdists", "sdk", "patched", "linked", "llvm_version"}
    assert '"suite": "trixie"' in file.read_text() and file.read_text().count('"suite"') == 2
    assert not rare & set(re.findall(r'"(\w+)":', file.read_text()))
    lines = [line for line in file.read_text().splitlines() if '"sha256"' in line]
    assert len(lines) == 6
    assert all(line.count('"sha256"') == 1 and '"filename"' in line for line in lines)


def test_the_suite_of_a_package_from_another_one_is_read_back_and_in_the_digest(tmp_path: Path) -> None:
    path = tmp_path / "lock.json"
    later = replace(target("one"), debs=(DEB, replace(DEB, name="later", suite="trixie-backports")))
    lock.save(sealed(later), path)
    assert lock.load(path) == sealed(later)
    plain = replace(later, debs=(DEB, replace(DEB, name="later")))
    assert sealed(plain).targets["one"].digest != sealed(later).targets["one"].digest
    path.write_text(path.read_text().replace("trixie-backports", "trixie backports"))
    with pytest.raises(PinError, match="trixie backports"):
        lock.load(path)


def test_native_parts_and_what_they_are_built_in_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "lock.json"
    lock.save(sealed(with_parts("one"), target("two")), path)
    assert lock.load(path) == sealed(with_parts("one"), target("two"))
    assert [system.name for system in lock.load(path).systems()] == ["one", "one-build", "two"]
    assert {SDIST, *LINKED.debs} <= {*lock.load(path).targets["one"].artifacts()}
    silent = LockedTriton("3.2.0", "d" * 40, replace(TRITON, version="3.2.0"), "20.0.0git")
    path = tmp_path / "lock.json"
    lock.save(sealed(replace(target(), tritons={"3.2.0": silent})), path)
    assert lock.load(path).targets["one"].tritons["3.2.0"] == silent


def test_sources_and_what_they_are_built_in_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "lock.json"
    lock.save(with_sources(), path)
    read = lock.load(path)
    assert read == with_sources()
    assert read.sources == SOURCES
    assert [system.name for system in read.systems()] == ["one", "build-trixie"]
    assert set(read.artifacts()) == {DEB, WHEEL, TRITON, SDIST, ORIG}
    lock.save(read, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == path.read_text()
    # A source of git takes one line, and says nothing that it has not.
    (line,) = (line for line in path.read_text().splitlines() if '"tool/bare"' in line)
    assert line.strip().rstrip(",") == f'"tool/bare": {{"commit": "{"6" * 40}", "kind": "git", "pin": "{"2" * 64}"}}'


def test_sources_and_builders_are_in_the_locks_digest_and_in_no_targets() -> None:
    whole = with_sources()
    assert whole.targets == sealed(target("one")).targets
    builder = whole.builders["trixie"]
    for other in (
        lock.seal(whole.targets, {}, whole.builders),
        lock.seal(whole.targets, whole.sources, {}),
        lock.seal(whole.targets, SOURCES | {"tool/git": replace(SOURCES["tool/git"], commit="0" * 40)}, whole.builders),
        lock.seal(whole.targets, SOURCES | {"tool/git": replace(SOURCES["tool/git"], pin="")}, whole.builders),
        lock.seal(whole.targets, SOURCES, {"trixie": replace(builder, debs=())}),
        lock.seal(whole.targets, SOURCES, {"trixie": replace(builder, pins={})}),
    ):
        assert other.digest != whole.digest


@pytest.mark.parametrize(
    ("change", "proven"),
    [
        ({"debs": ()}, False),
        ({"recipes": ("own",)}, True),
        ({"patched": (Patched("edited", "tool", "tool/2.0", "/usr/lib"),)}, True),
        ({"tritons": {"3.2.0": LockedTriton("3.2.0", "d" * 40, TRITON)}}, True),
    ],
)
def test_a_variant_is_proven_if_it_has_parts_of_its_own(change: dict[str, Any], proven: bool) -> None:
    variant = replace(target("variant"), backend="one", **change)
    locked = sealed(replace(target("one"), backend="one"), variant)
    assert [found.name for found in locked.proven()] == ["one", "variant"] if proven else ["one"]


def test_order_of_targets_and_pins_are_in_no_targets_digest() -> None:
    assert sealed(target("one"), target("two")) == sealed(target("two"), target("one"))
    before, after = sealed(target()), sealed(replace(target(), pins={"debs": "0" * 64}))
    assert after.targets["one"].digest == before.targets["one"].digest
    assert after.digest != before.digest


@pytest.mark.parametrize(
    "change",
    [
        {"debs": (replace(DEB, sha256="0" * 64),)},
        {"wheels": (replace(WHEEL, version="1.1"),)},
        {"wheels": ()},
        {"tritons": {"3.9.0": LockedTriton("3.9.0", "0" * 40, TRITON)}},
        {"suite": "bookworm"},
        {"python": "3.11"},
        {"left_out": ()},
        {"recipes": ("part",)},
        {"sdk": ""},
        {"patched": (Patched("edited", "tool", "tool/2.0", "/usr/share"),)},
        {"linked": (replace(LINKED, left_out=()),)},
        {"linked": (replace(LINKED, debs=()),)},
        {"builder": None},
        {"builder": replace(build_system("one-build", wheels=()), sdists=(replace(SDIST, version="2.0"),))},
    ],
)
def test_inputs_of_a_target_are_in_its_digest_and_the_locks_alone(change: dict[str, Any]) -> None:
    before = sealed(with_parts(), target("two"))
    after = sealed(replace(with_parts(), **change), target("two"))
    assert after.targets["one"].digest != before.targets["one"].digest
    assert after.targets["two"].digest == before.targets["two"].digest
    assert after.digest != before.digest


# What is edited: a package, a Triton, pins, a suite, two sources and a builder.
@pytest.mark.parametrize("old", ["a" * 64, "d" * 40, "e" * 64, "trixie", "6" * 40, "7" * 64, "f" * 64])
def test_an_edited_lock_is_refused(tmp_path: Path, old: str) -> None:
    path = tmp_path / "lock.json"
    lock.save(with_sources(), path)
    path.write_text(path.read_text().replace(old, "bookworm" if old == "trixie" else "0" * len(old), 1))
    with pytest.raises(PinError, match=r"(?s)digests.*./foundry pin --update"):
        lock.load(path)


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", '{"digest": "", "targets": {"one": {}}}', '{"targets": 1}', "[" * 10**5, '{"targets": ' * 10**5],
    ids=lambda text: text[:20],
)
def test_a_malformed_lock_is_refused(file: Path, text: str) -> None:
    file.write_text(text)
    with pytest.raises(PinError, match="the lock is malformed"):
        lock.load(file)


def test_a_lock_that_is_not_there_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(PinError, match=r"(?s)no lock.*./foundry pin --update"):
        lock.load(tmp_path / "lock.json")


class TestOurs:
    """The lock of this repository."""

    def test_our_lock_is_as_saving_writes_it_and_names_each_artifact_by_its_sha256(self, tmp_path: Path) -> None:
        for locked in lock.load_all().values():
            lock.save(locked, tmp_path / "lock.json")
        assert (tmp_path / "lock.json").read_text() == paths.LOCK.read_text()
        assert not re.search(r"://|www\.|\.org|\.com", paths.LOCK.read_text())
        spirv = lock.load().targets["spirv"]
        assert sorted(spirv.tritons) == ["3.6.0", "3.9.0"]
        assert spirv.default_triton == "3.9.0"
        assert all(a.size > 0 and re.fullmatch("[0-9a-f]{64}", a.sha256) for a in lock.load().artifacts())
        for source in lock.load().sources.values():
            files = [file.filename for file in source.files]
            if source.kind == "git":
                assert re.fullmatch("[0-9a-f]{40}", source.commit) and not files
            else:
                assert any(".orig.tar." in file for file in files) and any(file.endswith(".dsc") for file in files)
