"""From pins to lock: what is resolved, kept, reported and checked. apt is real; pip, which is slow, is replaced."""

from __future__ import annotations

import io
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import msgspec
import pytest
from archive_files import DebianArchive, artifact, wheel
from repositories import Repository, mirror

from toolchains.config import components, inventory
from toolchains.config.components import (
    DebPin,
    LinkedProgram,
    Release,
    ReleasesPin,
    SdistPin,
    System,
    Target,
    Tool,
    WheelPin,
)
from toolchains.config.inventory import Named, Pinned
from toolchains.config.projects import FolderPin, GitPin, Profile, SourcePackagePin, SourcePin, Upstream
from toolchains.fetch import store
from toolchains.fetch.apt import Debs, SourcePackages
from toolchains.fetch.pip import ConflictError
from toolchains.fetch.source import Report
from toolchains.fetch.store import Store
from toolchains.lockfile import lock
from toolchains.lockfile.lock import Artifact, Linked, Lock
from toolchains.resolve import age, agreement, conan_lock, resolution
from toolchains.system import errors
from toolchains.system.console import Console
from toolchains.system.terminal import make_console
from toolchains.verbs import pin

# Each test starts apt several times.
pytestmark = pytest.mark.slow

TOOLS = DebPin("tools", ("tool",), ("/usr/share/doc/*",))
LIBRARY = WheelPin("library", {"library": "1.0"})
TRITON = ReleasesPin("triton", "triton", "2.0", {"1.0": Release("a" * 40), "2.0": Release("b" * 40)})
PEER = DebPin("peer", ("peer",))
LATER = DebPin("later", ("peer",), suite="trixie-backports")
COMPILER = DebPin("compiler", ("compiler",))
SOURCES = SdistPin("sources", {"made": "1.0"})


class Files:
    """A folder of files, which a fake pip brings. It stands in for a class of sources and for its instances."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder

    def __call__(self, python: str, platform: str = "") -> Self:
        return self

    def fetch(self, artifacts: Sequence[Artifact], into: Path, report: Report) -> None:
        for wanted in artifacts:
            shutil.copy(self.folder / wanted.filename, into)


class Index(Files):
    """Wheels, and a fake pip that takes the newest version of what a pinned wheel needs."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.wheels: dict[tuple[str, str], Artifact] = {}
        self.requires: dict[str, Sequence[str]] = {}

    def add(self, name: str, version: str, requires: Sequence[str] = ()) -> None:
        """Publish a wheel."""
        file = wheel(self.folder, name, version, requires)
        self.wheels[name, version] = artifact(file, kind="wheel", name=name, version=version)
        self.requires[name] = requires

    def resolve(
        self,
        pins: Mapping[str, str],
        *,
        dependencies: bool,
        also: Sequence[str] = (),
        keep: Mapping[str, str] | None = None,
        **_: object,
    ) -> list[Artifact]:
        needed = {*also, *(name for pinned in pins for name in self.requires[pinned])} if dependencies else set()
        newest = {name: max(version for other, version in self.wheels if other == name) for name in needed}
        newest |= {name: version for name, version in (keep or {}).items() if name in newest}
        return sorted((self.wheels[key] for key in {**newest, **pins}.items()), key=lambda wheel: wheel.name)


class SourceIndex(Files):
    """Sources, and a fake pip: they need one wheel, named dependency."""

    def resolve(self, pins: Mapping[str, str], *, into: Path) -> tuple[list[Artifact], list[str]]:
        sdists = []
        for name, version in pins.items():
            file = into / f"{name}-{version}.tar.gz"
            file.write_text(name)
            shutil.copy(file, self.folder)
            sdists.append(artifact(file, kind="sdist", name=name, version=version))
        return sdists, ["dependency"]


class World:
    """Two archives, a store that uses them, and the targets to resolve."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.index = Index(folder / "index")
        sources = SourceIndex(folder / "sources")
        for module in (resolution, store):
            monkeypatch.setattr(module, "Wheels", self.index)
            monkeypatch.setattr(module, "Sdists", sources)
        self.archive = DebianArchive(folder / "archive")
        self.store = Store(folder / "store")
        archive = self.archive.archive
        # A new Debs each time, so that it sees the archive's current contents.
        monkeypatch.setattr(
            self.store,
            "debs",
            lambda suite, extra=(), platform="": Debs(suite, folder / "apt" / suite, [archive], extra),
        )
        self.archive.add("essential", "1", Essential="yes", Priority="required")
        for name in ("tool", "peer", "compiler"):
            self.archive.add(name, "1")
        self.index.add("library", "1.0", ["dependency"])
        self.index.add("dependency", "1.0")
        for version in TRITON.llvm_hashes:
            self.index.add("triton", version)
        plain = Target("plain", "spirv", "trixie", "3.13", (TOOLS, LIBRARY, TRITON))
        self.targets = [plain, replace(plain, name="variant", pins=(*plain.pins, PEER))]
        self.builders: tuple[System, ...] = ()
        self.upstreams: tuple[Upstream, ...] = ()
        self.tools: tuple[Tool, ...] = ()
        self.console = Console(file=io.StringIO(), width=200)

    @property
    def printed(self) -> str:
        assert isinstance(self.console.file, io.StringIO)
        return self.console.file.getvalue()

    def resolve(self, old: Lock | None = None, only: Named | None = None) -> Lock:
        """Resolve everything, or the parts that contain a component. `unreachable` gets messages about repositories."""
        self.unreachable: list[str] = []
        return resolution.resolve(
            self.pinned, old, self.store, only=(only,) if only else (), unreachable=self.unreachable.append
        )

    @property
    def pinned(self) -> Pinned:
        """Return everything that is pinned."""
        return Pinned(tuple(self.targets), self.builders, self.upstreams, self.tools)


def disagreements(locked: Lock, targets: Sequence[Target]) -> list[str]:
    return list(agreement.disagreements(locked, Pinned(tuple(targets))))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


class TestAge:
    def test_check_age_lists_newer_versions_and_rejects_missed_security_updates(
        self, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        locked, archive = world.resolve(), world.archive.archive
        pockets = [archive, replace(archive, pocket="-security")]
        security = DebianArchive(world.archive.folder, "trixie-security")
        world.archive.add("peer", "2")
        debs = Debs("trixie", tmp_path / "apt" / "both", pockets)
        monkeypatch.setattr(world.store, "debs", lambda suite, extra=(), platform="": debs)
        asked: list[str] = []

        class Newest:
            def __init__(self, python: str, platform: str) -> None:
                pass

            def newest(self, names: Sequence[str]) -> dict[str, str]:
                asked.extend(names)
                return {"library": "2.0", "triton": "2.0"}

        monkeypatch.setattr(age, "Wheels", Newest)
        monkeypatch.setattr(age, "FILE", tmp_path / "age.json")
        monkeypatch.setattr(lock, "load", lambda **_: locked)
        monkeypatch.setattr(inventory, "load", lambda platform="linux/amd64": replace(world.pinned, platform=platform))
        assert age.last(locked) is None
        pin.check_age(world.store, make_console())
        assert "3 packages had newer versions, 0 had security updates" in capsys.readouterr().out
        found = age.last(locked)
        assert found is not None
        old = next(version for version in TRITON.llvm_hashes if version != "2.0")
        assert [(each.name, each.locked, each.current, each.is_security, each.systems) for each in found.newer] == [
            ("peer", "1", "2", False, ("variant",)),
            ("library", "1.0", "2.0", False, ("plain", "variant")),
            ("triton", old, "2.0", False, ("plain", "variant")),
        ]
        assert set(asked) == {"library", "triton"}, "what the pins name, and not what that depends on"
        security.add("tool", "1+deb13u1")
        monkeypatch.setattr(debs, "_updated", False)
        with pytest.raises(errors.OutdatedError, match="security updates of what is locked: tool"):
            pin.check_age(world.store, make_console())
        assert age.last(replace(locked, digest="0" * 64)) is None


class TestResolving:
    def test_every_target_gets_its_packages_wheels_and_tritons(self, world: World) -> None:
        plain, variant = (world.resolve().targets[name] for name in ("plain", "variant"))
        assert [a.name for a in plain.debs] == ["essential", "tool"]
        assert [a.name for a in variant.debs] == ["essential", "peer", "tool"]
        assert [a.name for a in plain.wheels] == ["dependency", "library"]
        assert {v: t.llvm_hash for v, t in plain.tritons.items()} == TRITON.llvm_hashes
        assert plain.default_triton == "2.0"
        assert plain.left_out == ("/usr/share/doc/*",)

    def test_linked_packages_are_locked_without_their_dependencies(self, world: World) -> None:
        archive = world.archive.add("archive", "1", Depends="compiler")
        program = DebPin("program", linked=LinkedProgram("program", ("archive",), ("/b/*",)))
        world.targets.append(replace(world.targets[0], name="linked", pins=(*world.targets[0].pins, program)))
        resolved = world.resolve().targets
        assert resolved["linked"].linked == (Linked("program", (archive,), ("/b/*",)),)
        assert resolved["linked"].debs == resolved["plain"].debs
        with pytest.raises(errors.PinError, match="cannot be resolved"):
            world.store.debs("trixie").find(["absent"])

    def test_a_new_target_is_locked_as_one_with_the_same_pins_and_the_archives_are_not_asked(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        old = world.resolve()
        # The archives have other versions now.
        world.archive.add("tool", "2")
        world.index.add("dependency", "2.0")
        new = replace(world.targets[0], name="new", backend="other")
        world.targets.append(new)
        monkeypatch.setattr(world.store, "debs", None)
        monkeypatch.setattr(resolution, "Wheels", None)
        locked = world.resolve(old, only=new)
        assert {name: locked.targets[name] for name in old.targets} == old.targets
        plain, made = (locked.targets[name] for name in ("plain", "new"))
        assert (made.name, made.backend) == ("new", "other")
        for part in ("debs", "left_out", "kept", "wheels", "sdists", "tritons", "default_triton", "pins"):
            assert getattr(made, part) == getattr(plain, part)
        assert disagreements(locked, world.targets) == []

    def test_new_target_resolves_only_packages_that_no_other_target_has(self, world: World) -> None:
        old = world.resolve()
        world.index.add("dependency", "2.0")
        new = replace(world.targets[0], name="new", pins=(*world.targets[0].pins, COMPILER))
        world.targets.append(new)
        made = world.resolve(old, only=new).targets["new"]
        assert [a.name for a in made.debs] == ["compiler", "essential", "tool"]
        assert made.wheels == old.targets["plain"].wheels

    def test_a_component_of_another_suite_is_locked_with_that_suite_in_its_target_alone(self, world: World) -> None:
        backports = DebianArchive(world.archive.folder, "trixie-backports", DebianArchive.BACKPORTS)
        backports.add("peer", "2~bpo")
        later = replace(world.targets[1], name="later", pins=(*world.targets[0].pins, LATER))
        world.targets.append(later)
        locked = world.resolve()
        found = {
            name: [(a.version, a.suite) for a in each.debs if a.name == "peer"] for name, each in locked.targets.items()
        }
        assert found == {"plain": [], "variant": [("1", "")], "later": [("2~bpo", "trixie-backports")]}
        assert disagreements(locked, world.targets) == []
        world.targets[-1] = replace(later, pins=(*world.targets[0].pins, PEER))
        assert disagreements(locked, world.targets) == ["later: the pins of its debs changed since they were resolved"]

    def test_a_target_that_is_named_is_resolved_again_with_its_builder(self, world: World) -> None:
        world.targets[0] = replace(world.targets[0], build=(COMPILER,), recipes=("part",))
        old = world.resolve()
        world.archive.add("tool", "2")
        world.archive.add("compiler", "2")
        named = world.pinned.named("plain")
        assert [each.name for each in named] == ["plain", "plain-build"]
        new = resolution.resolve(world.pinned, old, world.store, only=named)
        assert [a.version for a in new.targets["plain"].debs if a.name == "tool"] == ["2"]
        builder = new.targets["plain"].builder
        assert builder and [a.version for a in builder.debs if a.name == "compiler"] == ["2"]
        assert new.targets["variant"] == old.targets["variant"]

    def test_changes_are_listed_with_both_versions_or_hashes_and_where(self, world: World) -> None:
        old = world.resolve()
        assert world.resolve(old) == old
        world.archive.add("tool", "2", Depends="library")
        world.archive.add("library", "7")
        changes = resolution.changes(old, world.resolve(old))
        assert [(c.name, c.before, c.after, c.targets) for c in changes] == [
            ("library", "", "7", ("plain", "variant")),
            ("tool", "1", "2", ("plain", "variant")),
        ]
        old = world.resolve(old)
        rebuilt = world.archive.add("peer", "1", Section="changed")
        (change,) = resolution.changes(old, world.resolve(old))
        assert (change.name, change.after, change.targets) == ("peer", f"1 ({rebuilt.sha256[:12]})", ("variant",))

    def test_naming_a_component_leaves_other_kinds_as_they_were(self, world: World) -> None:
        old = world.resolve()
        world.archive.add("tool", "2")
        world.index.add("library", "1.1", ["dependency"])
        newer = msgspec.structs.replace(LIBRARY, packages={"library": "1.1"})
        world.targets = [
            replace(target, pins=tuple(newer if pin == LIBRARY else pin for pin in target.pins))
            for target in world.targets
        ]
        new = world.resolve(old, newer)
        assert [c.name for c in resolution.changes(old, new)] == ["library"]

    def test_other_wheels_stay_while_they_fit(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        old = world.resolve()
        world.index.add("dependency", "1.1")
        assert world.resolve(old, LIBRARY).targets == old.targets
        assert [wheel.version for wheel in world.resolve(old).targets["plain"].wheels] == ["1.1", "1.0"]
        resolve = Index.resolve

        def refuse(self: Index, *args: Any, keep: Mapping[str, str] | None = None, **more: Any) -> list[Artifact]:
            if keep:
                raise ConflictError("the locked versions do not fit", why="dependency 1.0 is gone")
            return resolve(self, *args, **more)

        monkeypatch.setattr(Index, "resolve", refuse)
        freed: list[str] = []
        new = resolution.resolve(world.pinned, old, world.store, only=(LIBRARY,), freed=freed.append)
        assert freed[0] == "plain: dependency 1.0 is gone"
        assert [wheel.version for wheel in new.targets["plain"].wheels] == ["1.1", "1.0"]

    def test_naming_a_component_leaves_other_targets_unless_the_python_changed(self, world: World) -> None:
        old = world.resolve()
        world.archive.add("tool", "2")
        new = world.resolve(old, PEER)
        assert new.targets["plain"] == old.targets["plain"]
        assert [(c.name, c.targets) for c in resolution.changes(old, new)] == [("tool", ("variant",))]
        world.targets = [replace(target, python="3.12") for target in world.targets]
        new = world.resolve(old, LIBRARY)
        assert new.targets["plain"].python == "3.12"
        assert [c.name for c in resolution.changes(old, new)] == ["tool"]


class TestNativeParts:
    """A target with recipes, and the images that they are built in."""

    @pytest.fixture(autouse=True)
    def native(self, world: World) -> None:
        plain = world.targets[0]
        world.targets.append(
            replace(plain, name="native", recipes=("part",), build=(COMPILER, LIBRARY, SOURCES), sdk="vendor")
        )

    def test_builder_of_native_parts_is_resolved_separately(self, world: World) -> None:
        target = world.resolve().targets["native"]
        assert (target.recipes, target.sdk) == (("part",), "vendor")
        assert [a.name for a in target.debs] == ["essential", "tool"]
        builder = target.builder
        assert builder is not None
        assert (builder.name, builder.suite, builder.tritons) == ("native-build", "trixie", {})
        assert [a.name for a in builder.debs] == ["compiler", "essential"]
        assert [a.name for a in builder.sdists] == ["made"]
        world.targets[-1] = replace(world.targets[-1], build=(COMPILER, SOURCES))
        builder = world.resolve().targets["native"].builder
        assert builder and [a.name for a in builder.wheels] == ["dependency"], "what the sources need for a build"

    def test_native_target_agrees_with_its_lock_until_its_pins_change(self, world: World) -> None:
        locked = world.resolve()
        assert list(disagreements(locked, world.targets)) == []
        changed = SdistPin("sources", {"made": "2.0"})
        for target, said in (
            (replace(world.targets[-1], build=(COMPILER, LIBRARY, changed)), "native-build: the pins of its wheels"),
            (replace(world.targets[-1], recipes=("other",)), "native: recipes is ('other',), locked is ('part',)"),
            (replace(world.targets[-1], recipes=(), build=(), sdk=""), "native: recipes is ()"),
        ):
            assert any(line.startswith(said) for line in disagreements(locked, [*world.targets[:-1], target]))

    def test_naming_a_component_of_it_leaves_the_rest_as_it_was(self, world: World) -> None:
        old = world.resolve()
        for name in ("compiler", "tool"):
            world.archive.add(name, "2")
        changes = resolution.changes(old, world.resolve(old, COMPILER))
        assert [(c.name, c.targets) for c in changes] == [("compiler", ("native-build",))]

    def test_its_files_are_fetched_with_the_others(self, world: World) -> None:
        target = world.resolve().targets["native"]
        world.store.fetch(target.artifacts(), suite=target.suite, python=target.python)
        assert all(world.store.has(a) for a in target.artifacts())
        assert {"compiler", "made"} <= {a.name for a in target.artifacts()}


class TestFromSource:
    """Projects, and the images that they are built in."""

    ROOM = System("build-trixie", "", "trixie", "3.13", (COMPILER, SOURCES))

    @pytest.fixture(autouse=True)
    def projects(self, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
        """Make a project with a profile of each kind. Its repository has a tag, and has moved on to another commit."""
        repository = Repository(tmp_path / "git" / "project")
        repository.commit({"file": "released"})
        repository.git("tag", "--annotate", "--message", "for a test", "v1")
        repository.commit({"file": "since"})
        mirror(repository.folder.parent, monkeypatch)
        world.archive.add_source("package", "1.0-1", {"package_1.0.orig.tar.xz": b"upstream's"})
        apt, archive = tmp_path / "apt" / "sources", world.archive.archive
        # A new one each time, so that it sees the archive's current contents.
        monkeypatch.setattr(world.store, "source_packages", lambda suite: SourcePackages(suite, apt, [archive]))
        sources: dict[str, SourcePin] = {
            "debian": SourcePackagePin("trixie", "package"),
            "commit": GitPin(("https://nowhere.invalid/project",), "a" * 40, tree="b" * 40),
            "tag": GitPin((repository.url,), ref="v1"),
            "yours": FolderPin(),
        }
        profiles = {name: Profile(name, "1.0", pin) for name, pin in sources.items()}
        world.builders = (self.ROOM,)
        world.upstreams = (Upstream("project", "debian", profiles, 1),)
        return repository

    @staticmethod
    def with_source(world: World, name: str, pin: SourcePin) -> tuple[Upstream, ...]:
        """Return the project with another source in one profile."""
        (project,) = world.upstreams
        return (replace(project, profiles={**project.profiles, name: Profile(name, "1.0", pin)}),)

    def test_each_kind_of_source_is_locked_as_what_cannot_change(self, world: World, projects: Repository) -> None:
        sources = world.resolve().sources
        assert sorted(sources) == ["project/commit", "project/debian", "project/tag"]
        debian, commit, tag = (sources[f"project/{name}"] for name in ("debian", "commit", "tag"))
        assert (debian.kind, debian.version) == ("debian", "1.0-1")
        assert {file.filename for file in debian.files} == {"package_1.0.orig.tar.xz", "package_1.0-1.dsc"}
        assert (commit.kind, commit.commit, commit.tree) == ("git", "a" * 40, "b" * 40)
        assert (tag.version, tag.commit) == ("v1", projects.git("rev-parse", "HEAD^"))
        assert world.unreachable == []

    def test_a_builder_is_resolved_like_any_system_and_belongs_to_no_target(self, world: World) -> None:
        locked = world.resolve()
        room = locked.builders["trixie"]
        assert [a.name for a in room.debs] == ["compiler", "essential"]
        assert [a.name for a in room.sdists] == ["made"]
        assert (room.tritons, room.recipes) == ({}, ())
        assert [system.name for system in locked.systems()] == ["plain", "variant", "build-trixie"]

    def test_tool_is_locked_as_wheels_that_no_target_has(self, world: World) -> None:
        world.index.add("browser", "1.0", ["dependency"])
        before = world.resolve()
        pin = WheelPin("jupyter", {"browser": "1.0"})
        world.tools = (Tool("jupyter-trixie", "", "trixie", "3.13", (pin,)),)
        assert "jupyter-trixie: not in the lock" in agreement.disagreements(before, world.pinned)
        locked = world.resolve(before, only=pin)
        tool = locked.tools["jupyter-trixie"]
        assert [artifact.name for artifact in tool.own()] == ["browser", "dependency"]
        assert [*agreement.disagreements(locked, world.pinned)] == []
        # Neither images nor their names change.
        assert locked.targets == before.targets and locked.digest != before.digest
        assert {*tool.own()} <= {*locked.artifacts()}

    def test_silent_repository_is_told_and_the_rest_is_resolved(self, world: World, projects: Repository) -> None:
        old = world.resolve()
        shutil.rmtree(projects.folder)
        assert world.resolve(old) == old
        (said,) = world.unreachable
        assert said.endswith(f"it stays at {old.sources['project/tag'].commit}")
        locked = world.resolve()
        assert sorted(locked.sources) == ["project/commit", "project/debian"]
        (said,) = world.unreachable
        assert said.startswith("project/tag, v1: ") and said.endswith("it is not locked")
        assert list(agreement.unresolved(locked, world.pinned)) == ["project/tag"]
        assert list(agreement.disagreements(locked, world.pinned)) == []

    def test_moved_tag_is_a_change_and_a_missing_one_an_error(self, world: World, projects: Repository) -> None:
        old = world.resolve()
        projects.git("tag", "--force", "v1")
        (change,) = resolution.changes(old, world.resolve(old))
        assert (change.kind, change.name, change.targets) == ("source", "project", ("tag",))
        assert change.after == projects.git("rev-parse", "HEAD")
        world.upstreams = self.with_source(world, "tag", GitPin((projects.url,), ref="v2"))
        with pytest.raises(errors.PinError, match="neither a tag nor a branch v2"):
            world.resolve()

    def test_naming_a_project_or_a_builder_resolves_it_and_nothing_else(self, world: World) -> None:
        old = world.resolve()
        world.archive.add("compiler", "2")
        world.archive.add("tool", "2")
        world.archive.add_source("package", "1.0-2", {"package_1.0.orig.tar.xz": b"upstream's"})
        (change,) = resolution.changes(old, world.resolve(old, world.upstreams[0]))
        assert (change.kind, change.before, change.after) == ("source", "1.0-1", "1.0-2")
        (change,) = resolution.changes(old, world.resolve(old, self.ROOM))
        assert (change.name, change.after, change.targets) == ("compiler", "2", ("build-trixie",))

    def test_naming_another_part_asks_no_repository(self, world: World, projects: Repository) -> None:
        old = world.resolve()
        shutil.rmtree(projects.folder)
        world.archive.add_source("package", "1.0-2", {"package_1.0.orig.tar.xz": b"upstream's"})
        assert world.resolve(old, LIBRARY).sources == old.sources
        without = lock.seal(old.targets, {}, old.builders)
        assert sorted(world.resolve(without, LIBRARY).sources) == ["project/commit", "project/debian"]
        assert world.unreachable == []

    def test_targets_are_the_same_whatever_is_built_from_source(self, world: World) -> None:
        locked = world.resolve()
        world.builders, world.upstreams = (), ()
        without = world.resolve()
        assert locked.targets == without.targets
        assert locked.digest != without.digest

    def test_a_changed_source_or_builder_is_told_and_another_mirror_is_not(self, world: World) -> None:
        locked = world.resolve()
        assert list(agreement.disagreements(locked, world.pinned)) == []
        builder = replace(self.ROOM, pins=(COMPILER,))
        commit = GitPin(("https://nowhere.invalid/project",), "c" * 40)
        other, newer = replace(self.ROOM, name="b", suite="b"), replace(self.ROOM, python="3.12")
        folder = self.with_source(world, "tag", FolderPin())
        for changed, said in (
            (replace(world.pinned, builders=(builder,)), "build-trixie: the pins of its wheels changed"),
            (replace(world.pinned, builders=()), "build-trixie: in the lock, and there is no such builder or tool"),
            (replace(world.pinned, builders=(self.ROOM, other)), "b: not in the lock"),
            (replace(world.pinned, builders=(newer,)), "build-trixie: python is 3.12"),
            (replace(world.pinned, upstreams=()), "project/commit: in the lock, and there is no such source"),
            (replace(world.pinned, upstreams=self.with_source(world, "commit", commit)), "project/commit: the pin of"),
            (replace(world.pinned, upstreams=self.with_source(world, "new", commit)), "project/new: not in the lock"),
            (replace(world.pinned, upstreams=folder), "project/tag: in the lock, and"),
        ):
            assert any(told.startswith(said) for told in agreement.disagreements(locked, changed)), said
        mirror = GitPin(("https://elsewhere.invalid/project",), "a" * 40, tree="b" * 40)
        same = replace(world.pinned, upstreams=self.with_source(world, "commit", mirror))
        assert list(agreement.disagreements(locked, same)) == []


@pytest.mark.parametrize(
    ("llvm_hash", "commits", "said"),
    [
        ("b", "ab", ""),
        (
            "a",
            "ab",
            f"has LLVM {'a' * 40} in toolchains/upstreams/triton.toml|{'b' * 40} in toolchains/pins",
        ),
        ("b", "a", f"triton/two goes with LLVM {'b' * 40}, which no profile"),
    ],
)
def test_llvm_must_be_that_of_the_wheel_and_of_a_profile(world: World, llvm_hash: str, commits: str, said: str) -> None:
    triton = Profile("two", "2.0", GitPin(("https://a.invalid/b",), "d" * 40), llvm_hash=llvm_hash * 40)
    llvm = {each: Profile(each, "1", GitPin(("https://a.invalid/c",), each * 40)) for each in commits}
    projects = (Upstream("triton", "two", {"two": triton}, 1), Upstream("llvm", commits[0], llvm, 1))
    told = list(agreement.contradictions(replace(world.pinned, upstreams=projects)))
    assert len(told) == bool(said) and all(text in " ".join(told) for text in said.split("|"))


def test_our_lock_agrees_with_our_pins_which_have_no_contradictions() -> None:
    assert list(agreement.disagreements(lock.load(), inventory.load())) == []
    assert list(agreement.contradictions(inventory.load())) == []


class TestDisagreements:
    @pytest.mark.parametrize(
        ("pin", "said"),
        [
            (msgspec.structs.replace(TOOLS, packages=("tool", "peer")), "its debs changed"),
            (msgspec.structs.replace(TOOLS, left_out=()), "its debs changed"),
            (WheelPin("library", {"library": "1.1"}), "its wheels changed"),
            (msgspec.structs.replace(TRITON, default="1.0"), "its tritons changed"),
            (
                msgspec.structs.replace(TRITON, release={**TRITON.release, "1.0": Release("c" * 40)}),
                "its tritons changed",
            ),
        ],
    )
    def test_a_changed_pin_is_told(self, world: World, pin: components.Pin, said: str) -> None:
        locked = world.resolve()
        changed = tuple(pin if pin.name == old.name else old for old in world.targets[0].pins)
        told = list(disagreements(locked, [replace(world.targets[0], pins=changed), world.targets[1]]))
        assert len(told) == 1
        assert told[0].startswith("plain:") and said.replace("its ", "of its ") in told[0]

    def test_targets_of_one_side_or_with_another_python_are_told(self, world: World) -> None:
        locked = world.resolve()
        renamed = [world.targets[0], replace(world.targets[1], name="other")]
        told = disagreements(locked, renamed)
        assert told == ["variant: in the lock, and there is no such target", "other: not in the lock"]
        python = DebPin("python", ("python3",))
        world.archive.add("python3", "3.13.5-1")
        world.targets = [replace(target, pins=(*target.pins, python)) for target in world.targets]
        assert list(disagreements(world.resolve(), world.targets)) == []
        world.targets[0] = replace(world.targets[0], python="3.1")
        told = disagreements(world.resolve(), world.targets)
        assert len(told) == 1 and "plain: python is 3.1, the python3 of trixie is 3.13.5-1" in told[0]


class TestVerb:
    @pytest.fixture(autouse=True)
    def here(self, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let the verb work on the world's targets and on a separate lock."""
        file = tmp_path / "lock.json"
        load, save = lock.load, lock.save
        monkeypatch.setattr(lock, "load", lambda **platform: load(file, **platform))
        monkeypatch.setattr(lock, "save", lambda new: save(new, file))
        monkeypatch.setattr(inventory, "load", lambda platform="linux/amd64": replace(world.pinned, platform=platform))
        monkeypatch.setattr(conan_lock, "disagreements", lambda locked: iter(()))
        # The made-up Tritons have no library. The test that looks for the commit in it says otherwise.
        monkeypatch.setattr(pin, "check_llvm_hash", lambda locked, file: None)

    def test_update_writes_the_lock_and_shows_what_changed(self, world: World) -> None:
        pin.resolve(world.store, world.console)
        world.archive.add("tool", "2")
        pin.resolve(world.store, world.console)
        assert {a.version for a in lock.load().targets["plain"].debs if a.name == "tool"} == {"2"}
        assert "1 changed" in world.printed
        pin.resolve(world.store, world.console, "tools")
        assert world.printed.rstrip().endswith("unchanged")

    def test_update_that_fails_leaves_the_lock_and_unknown_names_are_refused(self, world: World) -> None:
        with pytest.raises(errors.UsageError, match=r"(?s)nowhere.*library, peer, plain, tools, triton, variant"):
            pin.resolve(world.store, world.console, "nowhere")
        pin.resolve(world.store, world.console)
        before = lock.load()
        world.archive.add("tool", "2", Depends="nowhere")
        with pytest.raises(errors.PinError, match="nowhere"):
            pin.resolve(world.store, world.console)
        assert lock.load() == before

    def test_check_refuses_pins_that_changed_since(self, world: World) -> None:
        pin.resolve(world.store, world.console)
        world.targets[0] = replace(world.targets[0], suite="bookworm")
        with pytest.raises(
            errors.PinError, match=r"(?s)plain: suite is bookworm, locked is trixie.*./foundry pin --update"
        ):
            pin.verify(world.store, world.console)

    def test_check_notices_files_that_changed_in_the_store_and_fetch_brings_them_again(self, world: World) -> None:
        pin.resolve(world.store, world.console)
        pin.fetch_all(world.store, world.console)
        file, other = (world.store.path(found) for found in lock.load().targets["plain"].wheels)
        for damaged in (file, other):
            damaged.chmod(0o644)
            damaged.write_bytes(bytes(damaged.stat().st_size))
        with pytest.raises(
            errors.HashMismatchError, match=rf"(?s){file.name}.*{other.name}.*next: ./foundry pin --fetch"
        ):
            pin.verify(world.store, world.console)
        file.write_bytes(b"")
        with pytest.raises(errors.TruncatedError, match=file.name):
            pin.verify(world.store, world.console)
        pin.fetch_all(world.store, world.console)
        pin.verify(world.store, world.console)

    def test_check_notices_a_part_that_changed_in_the_store(self, world: World) -> None:
        pin.resolve(world.store, world.console)
        part = world.store.part("native", "0" * 64, lambda folder: (folder / "x.tar").write_text("made"))
        pin.verify(world.store, world.console)
        (part / "x.tar").write_text("else")
        with pytest.raises(errors.PartError, match=r"(?s)native/000.*x\.tar has other content"):
            pin.verify(world.store, world.console)
        pin.verify(world.store, world.console)

    def test_offline_check_names_what_it_did_not_check(
        self, world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        looked: list[str] = []
        monkeypatch.setattr(pin, "check_llvm_hash", lambda locked, file: looked.append(locked.version))
        pin.resolve(world.store, world.console)
        there = lock.load().targets["plain"].tritons["2.0"].wheel
        world.store.fetch([there], suite="trixie", python="3.13")
        offline = Store(world.store.root, offline=True)
        pin.verify(offline, make_console())
        said = capsys.readouterr().out
        assert looked == ["2.0"]
        assert "not checked: triton-1.0" in said and "not checked: triton-2.0" not in said
        file = world.store.path(there)
        file.chmod(0o644)
        file.write_bytes(b"")
        with pytest.raises(errors.TruncatedError):
            pin.verify(offline, world.console)

    def test_check_looks_into_each_triton(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        looked: list[str] = []

        def look(locked: lock.LockedTriton, file: Path) -> None:
            looked.append(locked.version)
            if locked.version == "2.0":
                raise errors.LlvmHashError(file.name)

        monkeypatch.setattr(pin, "check_llvm_hash", look)
        pin.resolve(world.store, world.console)
        with pytest.raises(errors.LlvmHashError, match=r"triton-2\.0"):
            pin.verify(world.store, world.console)
        assert looked == ["1.0", "2.0"]

    def test_check_refuses_contradicting_pins_and_conan_lock(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pin.resolve(world.store, world.console)
        monkeypatch.setattr(conan_lock, "disagreements", lambda locked: iter(["it has made/2"]))
        with pytest.raises(errors.PinError, match=r"(?s)conan\.lock does not agree.*it has made/2"):
            pin.verify(world.store, world.console)
        monkeypatch.setattr(agreement, "contradictions", lambda pinned: iter(["one and the other"]))
        with pytest.raises(errors.PinError, match=r"(?s)contradict each other.*one and the other"):
            pin.verify(world.store, world.console)

    def test_a_repository_that_does_not_answer_is_told_by_update_and_check(self, world: World) -> None:
        tag = Profile("tag", "1.0", GitPin(("https://nowhere.invalid/project",), ref="v1"))
        world.upstreams = (Upstream("project", "tag", {"tag": tag}, 1),)
        pin.resolve(world.store, world.console)
        assert "not reached: project/tag, v1: " in world.printed
        pin.fetch_all(world.store, world.console)
        pin.verify(world.store, world.console)
        assert "project/tag: its repository was never reached" in world.printed
        pin.describe().render(world.console)
        assert "not resolved: ./foundry pin --update" in world.printed

    def test_fetch_brings_builders_and_the_sources_of_default_profiles_and_says_how_much(
        self, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("package", "other"):
            world.archive.add_source(name, "1.0-1", {f"{name}_1.0.orig.tar.xz": bytes(200_000)})
        source = SourcePackages("trixie", tmp_path / "apt" / "sources", [world.archive.archive])
        monkeypatch.setattr(world.store, "source_packages", lambda suite: source)
        profiles = {name: Profile(name, "1.0", SourcePackagePin("trixie", name)) for name in ("package", "other")}
        world.builders = (TestFromSource.ROOM,)
        world.upstreams = (Upstream("project", "package", profiles, 1),)
        pin.resolve(world.store, world.console)
        pin.fetch_all(world.store, world.console)
        locked = lock.load()
        assert all(world.store.has(a) for a in locked.builders["trixie"].own())
        assert all(world.store.has(a) for a in locked.sources["project/package"].files)
        assert not any(world.store.has(a) for a in locked.sources["project/other"].files)
        assert "0.2 MB for the sources of project/package" in world.printed
        assert "MB for build-trixie" in world.printed

    def test_sources_and_builders_are_shown(self, world: World) -> None:
        commit = Profile("old", "1.0", GitPin(("https://a.invalid/b",), "a" * 40), "project/1.0", llvm_hash="b" * 40)
        yours = Profile("yours", "2.0", FolderPin())
        world.builders = (TestFromSource.ROOM,)
        world.upstreams = (Upstream("project", "old", {"old": commit, "yours": yours}, 1),)
        pin.resolve(world.store, world.console)
        pin.describe().render(world.console)
        lines = world.printed.splitlines()
        (old,) = (line for line in lines if "old (default)" in line)
        assert old.count("a" * 12) == 2 and "b" * 12 in old and "project/1.0" in old
        assert any("--source project=PATH" in line for line in lines)
        assert any(line.startswith("│ build-trixie") for line in lines)
        assert any(line.startswith("│ compiler") and "build-trixie" in line for line in lines)

    def test_show_has_each_pin_beside_what_it_resolved_to_and_fetch_brings_everything(self, world: World) -> None:
        pin.resolve(world.store, world.console)
        pin.describe().render(world.console)
        rows = [line.split() for line in world.printed.splitlines()]
        assert ["│", "tools", "│", "tool", "│", "1", "│", "plain,", "variant", "│"] in rows
        assert ["│", "library", "│", "library", "1.0", "│", "1.0", "│", "plain,", "variant", "│"] in rows
        assert not all(world.store.has(a) for a in lock.load().targets["variant"].artifacts())
        pin.fetch_all(world.store, world.console)
        assert all(world.store.has(a) for a in lock.load().targets["variant"].artifacts())
