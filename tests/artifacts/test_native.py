"""Native parts: named by their inputs, built once without a network, and with the same bytes each time."""

from __future__ import annotations

import shutil
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from fakes import NO_ENGINE
from tiny import empty_store

from toolchains.artifacts import native
from toolchains.engine.client import Engine
from toolchains.fetch.store import Store
from toolchains.lockfile import lock
from toolchains.lockfile.lock import LockedTarget
from toolchains.system import paths
from toolchains.system.errors import CommandError, UsageError

TOY = Path(__file__).parents[1] / "toys" / "recipe"


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a separate folder of recipes with the toy recipe and its base, and a copy of cmake/, to be edited."""
    shutil.copytree(TOY, tmp_path / "recipes" / "toy")
    shutil.copytree(paths.RECIPES / "native", tmp_path / "recipes" / "native")
    shutil.copytree(paths.CMAKE, tmp_path / "cmake")
    monkeypatch.setattr(paths, "RECIPES", tmp_path / "recipes")
    monkeypatch.setattr(paths, "CMAKE", tmp_path / "cmake")
    return tmp_path / "recipes" / "toy"


@pytest.fixture
def locked() -> LockedTarget:
    builder = lock.load().targets["dpu"].builder
    assert builder is not None
    return builder


def append(path: Path) -> None:
    path.write_text(path.read_text() + "\n")


@pytest.mark.parametrize(
    "file",
    [
        "told.c",
        "CMakeLists.txt",
        "conanfile.py",
        "../native/conanfile.py",
        "../../cmake/foundry.cmake",
        "../../cmake/reproducible.cmake",
    ],
)
def test_an_edit_in_what_is_built_changes_the_name(toy: Path, locked: LockedTarget, file: str) -> None:
    before = native.identity("toy", locked)
    append(toy / file)
    assert native.identity("toy", locked) != before


def test_builder_packages_change_the_name_of_a_native_part(toy: Path, locked: LockedTarget, tmp_path: Path) -> None:
    others = [replace(locked, debs=locked.debs[1:]), replace(locked, wheels=()), replace(locked, sdists=())]
    assert len({native.identity("toy", builder) for builder in (locked, *others)}) == 4
    with pytest.raises(UsageError, match="toolchains/recipes/nothing"):
        native.identity("nothing", locked)
    # With the part in the store, nothing is fetched.
    store = Store(tmp_path / "store", offline=True)
    store.part("native", native.identity("toy", locked), lambda folder: None)
    assert native.fetch_if_needed(["toy"], locked, store) == locked


@pytest.fixture
def apart(toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder that has the toy's sources after its recipe was left alone and names it."""
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    apart = tmp_path / "sdks" / "toy"
    shutil.copytree(toy, apart)
    recipe = (apart / "conanfile.py").read_text().replace("    name =", '    sources = "sdks/toy"\n    name =')
    (apart / "conanfile.py").unlink()
    shutil.rmtree(toy)
    toy.mkdir()
    (toy / "conanfile.py").write_text(recipe)
    return apart


def test_edit_in_the_folder_that_a_recipe_names_changes_the_name(apart: Path, toy: Path, locked: LockedTarget) -> None:
    found = {native.identity("toy", locked)}
    for path in (apart / "told.c", apart / "CMakeLists.txt", toy / "conanfile.py"):
        append(path)
        found.add(native.identity("toy", locked))
    assert len(found) == 4
    for name in ("README.md", "LICENSE", "CMakePresets.json", "tests/test_toy.py", "build/prefix/bin/tell"):
        (apart / name).parent.mkdir(parents=True, exist_ok=True)
        (apart / name).write_text("\n")
    assert native.identity("toy", locked) in found


def test_a_folder_with_a_version_gives_it_to_the_package(apart: Path, locked: LockedTarget) -> None:
    assert native.component("toy", locked).version == "1.0"
    (apart / "VERSION").write_text("2.3.1\n")
    assert native.component("toy", locked).version == "2.3.1"


@pytest.mark.parametrize("folder", ["tests", "conformance", "calibration", "compiler/tests"])
def test_an_edit_in_a_recipes_tests_or_readme_builds_nothing(toy: Path, locked: LockedTarget, folder: str) -> None:
    before = native.identity("toy", locked)
    (toy / folder).mkdir(parents=True)
    (toy / folder / "test_toy.py").write_text("def test(): pass\n")
    (toy / "README.md").write_text("# Toy\n")
    assert native.identity("toy", locked) == before
    (toy / "tests.c").write_text("")
    assert native.identity("toy", locked) != before


def members(part: native.NativePart) -> dict[str, bytes]:
    with tarfile.open(part.path) as tar:
        return {info.name: file.read() for info in tar if (file := tar.extractfile(info))}


@pytest.mark.docker
@pytest.mark.usefixtures("toy")
def test_a_recipe_becomes_a_tar_of_what_it_installs_with_the_same_bytes_without_a_path_of_the_build(
    builder: tuple[Engine, LockedTarget], tmp_path: Path
) -> None:
    engine, locked = builder
    store = empty_store(tmp_path / "store")
    part = native.part("toy", locked, store=store, engine=engine)
    files = members(part)
    assert set(files) == {"bin/say", "bin/tell", "lib/libtold.a"}
    assert files["bin/say"] == files["bin/tell"]
    assert files["bin/tell"].startswith(b"\x7fELF")
    for content in files.values():
        assert b"./told.c" in content
        assert b"/foundry" not in content
    # A second run builds nothing; a second build from nothing gives the same.
    assert native.part("toy", locked, store=store, engine=NO_ENGINE) == part
    other = native.part("toy", locked, store=empty_store(tmp_path / "other"), engine=engine)
    assert other.path != part.path
    assert other.path.read_bytes() == part.path.read_bytes()


@pytest.mark.docker
def test_compiler_error_leaves_no_part(toy: Path, builder: tuple[Engine, LockedTarget], tmp_path: Path) -> None:
    (toy / "told.c").write_text("int told = nothing;\n")
    store = empty_store(tmp_path / "store")
    with pytest.raises(CommandError, match=r"the native part toy could not be built") as caught:
        native.part("toy", builder[1], store=store, engine=builder[0])
    assert "told.c:1:12: error: " in caught.value.why
    assert "native-toy.log" in caught.value.why
    assert not store.has_part("native", native.identity("toy", builder[1]))


@pytest.mark.docker
def test_a_recipe_cannot_reach_a_network(toy: Path, builder: tuple[Engine, LockedTarget], tmp_path: Path) -> None:
    asked = 'file(DOWNLOAD http://192.0.2.1/x x STATUS status TIMEOUT 20)\nmessage(FATAL_ERROR "${status}")\n'
    (toy / "CMakeLists.txt").write_text((toy / "CMakeLists.txt").read_text() + asked)
    with pytest.raises(CommandError) as caught:
        native.part("toy", builder[1], store=empty_store(tmp_path / "store"), engine=builder[0])
    # curl's error 7: the connection fails at once and not by a timeout, because there is no route.
    assert '7;"Could' in caught.value.why
