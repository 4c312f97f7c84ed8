"""Names in code: a class or module of toolchains/ has one of its own, and no code knows a target by its name."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from toolchains.config import components, scaffold
from toolchains.system import paths

MODULES = [
    path
    for path in (paths.ROOT / "toolchains").rglob("*.py")
    if path.name != "__init__.py" and not path.is_relative_to(paths.RECIPES)
]
# A module in verbs/ has the name of its verb: `build`, beside the module that builds an upstream project, and
# `expected`, beside the module of the published IDs that it prints.
SHARED = {"build", "expected"}
TARGETS = sorted({*components.names(), *(components.target(name).backend for name in components.names())})
TARGET = scaffold.word(*TARGETS)


def repeated(names: list[str]) -> set[str]:
    return {name for name, count in Counter(names).items() if count > 1}


def test_no_two_public_classes_or_modules_have_one_name() -> None:
    bodies = (ast.parse(path.read_text()).body for path in MODULES)
    classes = [node.name for body in bodies for node in body if isinstance(node, ast.ClassDef)]
    assert len(classes) > 50
    assert repeated([name for name in classes if not name.startswith("_")]) == set()
    assert repeated([path.stem for path in MODULES]) == SHARED


def named(text: str) -> list[tuple[int, str]]:
    return [(line, word) for line, word in scaffold.words(text) if TARGET.search(word)]


@pytest.mark.parametrize("path", scaffold.code(), ids=lambda path: str(path.relative_to(paths.ROOT)))
def test_code_names_no_target(path: Path) -> None:
    assert named(path.read_text()) == [], "move what differs between targets to toolchains/targets/*.toml"


@pytest.mark.parametrize(
    "text",
    [
        'NAME = "dpu"',
        'NAME = f"{x}/spirv-bench"',
        "NAME = b'--target=vsi'",
        "dpu = 1",
        "import dpu.x",
        "from a import make_vsi",
        "class Dpu: pass",
        "def f(*, vsi): pass",
        "f(spirv=1)",
        "x.dpu = 1",
        'match x:\n    case {"a": "dpu", **vsi}: pass',
    ],
)
def test_a_name_in_code_is_found(text: str) -> None:
    assert named(text)


def test_examples_in_docstrings_and_other_words_are_none() -> None:
    assert not named(
        '"""./foundry e2e spirv"""\n# dpu\ndef f(nr_dpus):\n    """./foundry build dpu"""\n    return "spirvs"\n'
    )


@pytest.mark.parametrize("name", components.names())
def test_the_files_that_a_target_names_are_there(name: str) -> None:
    target = components.target(name)
    for plugin in (*target.plugins, *target.peers):
        assert (paths.BACKENDS / plugin / "pyproject.toml").is_file(), plugin
    for folder in target.user_folders:
        assert (paths.BACKENDS / folder).is_dir(), folder
    if target.packing:
        assert (paths.BACKENDS / target.packing.example).is_file()
        assert (paths.BACKENDS / target.packing.scripts / target.packing.runner).is_file()
