"""Names in toolchains/ have one meaning: a class name is used once, and so is the name of a module."""

from __future__ import annotations

import ast
from collections import Counter

from toolchains.system import paths

MODULES = [
    path
    for path in (paths.ROOT / "toolchains").rglob("*.py")
    if path.name != "__init__.py" and not path.is_relative_to(paths.RECIPES)
]
# A module in verbs/ has the name of its verb: `build`, beside the module that builds an upstream project, and
# `expected`, beside the module of the published IDs that it prints.
SHARED = {"build", "expected"}


def repeated(names: list[str]) -> set[str]:
    return {name for name, count in Counter(names).items() if count > 1}


def test_no_two_public_classes_or_modules_have_one_name() -> None:
    bodies = (ast.parse(path.read_text()).body for path in MODULES)
    classes = [node.name for body in bodies for node in body if isinstance(node, ast.ClassDef)]
    assert len(classes) > 50
    assert repeated([name for name in classes if not name.startswith("_")]) == set()
    assert repeated([path.stem for path in MODULES]) == SHARED
