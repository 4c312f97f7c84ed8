"""The projects in sdks/ stand alone: each has what a project has, and names nothing of the tree around it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from toolchains.archives import folders
from toolchains.artifacts import native
from toolchains.engine import host
from toolchains.fetch.store import Store
from toolchains.lockfile import lock
from toolchains.system import paths

PROJECTS = sorted(path for path in (paths.ROOT / "sdks").iterdir() if path.is_dir())
# What recipes package, each with the builder of the first target that has it: variants have images of their own.
PACKAGED = {
    native.source_folder(name): target.builder
    for target in [*lock.load().targets.values()][::-1]
    for name in target.recipes
}
# The one package of this repository that is a dependency: zen-compiler's README says so.
INSTALLED = {"verisilicon": {"foundry_core"}}
OURS = {path.stem for path in paths.ROOT.iterdir()} | {
    path.name for path in paths.BACKENDS.glob("*/src/*") if path.is_dir()
}


def files(project: Path) -> list[Path]:
    return [path for name, path in folders.files(project).items() if not name.startswith("build/")]


@pytest.mark.parametrize("project", PROJECTS, ids=lambda path: path.name)
def test_each_project_has_its_readme_licence_version_and_presets_and_a_recipe(project: Path) -> None:
    assert {"README.md", "CMakeLists.txt", "CMakePresets.json"} <= {path.name for path in project.iterdir()}
    assert (project / "LICENSE").read_text() == (paths.ROOT / "LICENSE").read_text()
    assert re.fullmatch(r"\d+(\.\d+)+\n", (project / "VERSION").read_text())
    assert project in PACKAGED


@pytest.mark.parametrize("project", PROJECTS, ids=lambda path: path.name)
def test_no_project_names_a_place_outside(project: Path) -> None:
    top = {path.name for path in paths.ROOT.iterdir() if path.is_dir() and path.name[0] != "."}
    outside = "|".join(sorted(top - {"build"} - {path.name for path in project.rglob("*")}))
    named = re.compile(rf"(?<![\w./-])(?:{outside})/\w")
    # In a document, in an #include, and in a file of CMake.
    upwards = re.compile(r'(?:\]\(|"|CMAKE_CURRENT_SOURCE_DIR}/)((?:\.\./)+[\w./-]*)')
    found = []
    for path in files(project):
        text = path.read_text(encoding="utf-8")
        found += [f"{path.name}: {each}" for each in named.findall(text)]
        links = (path.parent / link for link in upwards.findall(text))
        found += [f"{path.name}: {link}" for link in links if not link.resolve().is_relative_to(project)]
    assert found == []


@pytest.mark.parametrize("project", PROJECTS, ids=lambda path: path.name)
def test_no_project_imports_what_it_does_not_have(project: Path) -> None:
    own = {path.stem for path in files(project)} | {path.parent.name for path in files(project)}
    imported = set()
    for path in files(project):
        for node in ast.walk(ast.parse(path.read_text())) if path.suffix == ".py" else ():
            if isinstance(node, ast.Import):
                imported |= {each.name.partition(".")[0] for each in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                imported.add(node.module.partition(".")[0])
    assert (imported - own) & OURS == INSTALLED.get(project.name, set())


@pytest.mark.docker
@pytest.mark.parametrize("project", PROJECTS, ids=lambda path: path.name)
def test_project_alone_is_configured_by_its_preset(request: pytest.FixtureRequest, project: Path) -> None:
    engine = host.ensure_engine()
    store = Store(paths.cache(), allow_drift=request.config.getoption("--allow-drift"))
    builder = PACKAGED[project]
    assert builder
    with engine.container(native.builder_image(builder, store=store, engine=engine)) as container:
        container.copy_into(project, "/alone")
        container.call(["cmake", "--preset", "default"], cwd="/alone")
        said = container.call(["ctest", "--preset", "default", "--show-only"], cwd="/alone")
    assert re.search(r"^Total Tests: [1-9]", said, re.MULTILINE)
