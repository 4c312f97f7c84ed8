"""No code knows a target by its name: what differs between targets is in toolchains/targets/*.toml."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolchains.config import components
from toolchains.system import paths

CODE = [
    paths.ROOT / "tasks.py",
    *(path for path in (paths.ROOT / "toolchains").rglob("*.py") if not path.is_relative_to(paths.RECIPES)),
]
TARGETS = sorted({*components.names(), *(components.target(name).backend for name in components.names())})
# As a separate word or a part of an identifier: dpu, DPU_HOME and make_dpu, but not nr_dpus.
TARGET = re.compile(rf"(?i)(?<![a-z])({'|'.join(map(re.escape, TARGETS))})(?![a-z])")


def words(text: str) -> Iterator[tuple[int, str]]:
    """Yield the identifiers and texts in Python source, with their lines, without docstrings, which have examples."""
    tree = ast.parse(text)
    documentation = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                documentation.add(first.value)
    for node in ast.walk(tree):
        if node in documentation:
            continue
        for _, value in ast.iter_fields(node):
            # Identifiers are attributes of many kinds of nodes, all of them plain strings.
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, bytes):
                    each = each.decode(errors="replace")
                if isinstance(each, str):
                    yield getattr(node, "lineno", 0), each


def named(text: str) -> list[tuple[int, str]]:
    return [(line, word) for line, word in words(text) if TARGET.search(word)]


@pytest.mark.parametrize("path", CODE, ids=lambda path: str(path.relative_to(paths.ROOT)))
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
