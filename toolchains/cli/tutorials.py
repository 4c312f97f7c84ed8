"""Write docs/tutorials from the tutorials' own files: `python -m toolchains.cli.tutorials`.

A tutorial is a Python file whose comments tell what its code does, in the form of sphinx-gallery: the docstring begins
with a title that is underlined with "=", and a line "# %%" begins a block of comments, whose first line may be a title
that is underlined with "-". A page has the same text, with the code between. tests/verbs/test_tutorials.py compares
them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import Path

from toolchains.system import durable, paths

PAGES = paths.ROOT / "docs" / "tutorials"
_SOURCES = paths.ROOT / "examples" / "tutorials"
_CELL = re.compile(r"^# %%\n((?:#.*\n)*)", re.MULTILINE)
_UNDERLINED = re.compile(r"^(\S.*)\n(=+|-+)$", re.MULTILINE)
_NOTE = "<!-- Written by `python -m toolchains.cli.tutorials` from {path}. Edit that instead. -->\n\n"
# What tests/tree/documented.py reads.
_RUN = "\n\n<!-- run by: tests/verbs/test_tutorials.py -->\n    ./foundry"
_INDEX = """# Tutorials

Each is one file that reads from top to bottom: kernels, their launches, how far their results may be from the exact
ones, and a comparison in time. Each ends with an error if a result is wrong. `--bench` times it, too, and
`./foundry bench TARGET --only=tutorials` times all of them, for `./foundry report`, where the target's measurements
include them. The first one, vector addition with a table and a plot, is in [Run scripts](../running.md).

"""


def sources() -> list[Path]:
    """Return the tutorials in order."""
    return sorted(_SOURCES.glob("*.py"))


def pages() -> Mapping[Path, str]:
    """Return the text of each page, and of the index."""
    rendered = {PAGES / f"{path.stem}.md": page(path) for path in sources()}
    lines = [f"1. [{title(path)}]({path.stem}.md)\n" for path in sources()]
    return {PAGES / "README.md": _INDEX + "".join(lines)} | rendered


def title(path: Path) -> str:
    """Return the first line of a tutorial's docstring."""
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0]


def page(path: Path) -> str:
    """Return a tutorial as Markdown."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    code = "".join(text.splitlines(keepends=True)[tree.body[0].end_lineno :])
    blocks = [_marked(ast.get_docstring(tree) or "").replace("\n\n    ./foundry", _RUN, 1)]
    # The parts between the matches are code; each match is the text before the next one.
    for index, part in enumerate(_CELL.split(code)):
        if index % 2:
            blocks.append(_marked(re.sub(r"^# ?", "", part, flags=re.MULTILINE).strip()))
        elif part.strip():
            blocks.append(f"```python\n{part.strip()}\n```")
    return _NOTE.format(path=path.relative_to(paths.ROOT)) + "\n\n".join(blocks) + "\n"


def _marked(text: str) -> str:
    """Write underlined titles as Markdown does."""
    return _UNDERLINED.sub(lambda match: ("# " if match[2][0] == "=" else "## ") + match[1], text)


if __name__ == "__main__":
    for place, content in pages().items():
        durable.write(place, content)
