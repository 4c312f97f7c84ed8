"""Check who imports whom, by the contracts in pyproject.toml: packages by import-linter, folders of scripts here.

python -m toolchains.testing.import_layers
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from importlinter.cli import lint_imports

from toolchains.system import paths


def wrong_imports(root: Path, scripts: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield imports of folders of scripts that the contracts do not allow, and their circles.

    Args:
        root: of the tree.
        scripts: for each folder in it, the packages and folders of this tree that its modules may import.
    """
    of_tree = (*root.glob("*.py"), *root.glob("*/__init__.py"), *root.glob("backends/*/src/*/__init__.py"))
    named = {name: name for name in map(_name, of_tree)}
    named |= {path.stem: folder for folder in scripts for path in (root / folder).glob("*.py")}
    for folder, allowed in scripts.items():
        own = sorted((root / folder).rglob("*.py"))
        graph: dict[Path, set[Path]] = {}
        for path in own:
            # Two folders in this one may have modules of one name: the nearer one is meant.
            known = {_name(module): module for module in (*own, *path.parent.glob("*.py"))}
            imported = _imported(path)
            graph[path] = {known[name] for name in imported & known.keys()}
            for name in sorted(imported & named.keys() - known.keys()):
                if named[name] not in (folder, *allowed):
                    yield f"{path.relative_to(root)} is not allowed to import {name}"
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            yield f"a circle: {' -> '.join(str(path.relative_to(root)) for path in error.args[1])}"


def _name(path: Path) -> str:
    """Return the name by which a module, or the package that begins with it, is imported."""
    return path.parent.name if path.stem == "__init__" else path.stem


def _imported(path: Path) -> set[str]:
    """Return the first parts of the names that a module imports, also for types and in functions."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


if __name__ == "__main__":
    sys.path[:0] = [*map(str, sorted(paths.BACKENDS.glob("*/src"))), str(paths.ROOT / "sdks/verisilicon/compiler")]
    settings = tomllib.loads((paths.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wrong = list(wrong_imports(paths.ROOT, settings["tool"]["foundry"]["scripts"]))
    print(*wrong, sep="\n", end="\n" * bool(wrong))
    sys.exit(lint_imports() or bool(wrong))
