"""Settings of Sphinx for `./foundry docs`: which pages the site has, and their order.

docs/README.md is its first page. The navigation is made of that page's links: a link in the list of a section is an
entry below the section's title, and a link in the list of docs/tutorials/README.md is one below that page.
A page that no list names is an error.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

from sphinx.application import Sphinx

project = "Triton Foundry"
version = release = (Path(__file__).parents[2] / "VERSION").read_text(encoding="utf-8").strip()
html_title = f"{project} {version}"

extensions = ["myst_parser"]
include_patterns = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/**", "sdks/*/README.md"]
include_patterns += ["backends/dpu/tritonpim/README.md"]
root_doc = "docs/README"
source_suffix = {".md": "markdown"}
# Links name headings as forges do.
myst_heading_anchors = 6
# Blocks without a language are commands.
highlight_language = "sh"

html_theme = "furo"
html_extra_path = ["index.html"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False


def _navigation(page: PurePosixPath, text: str) -> str:
    """Return the lists of a page's entries as toctrees, which MyST reads at the page's end."""
    trees = []
    for section in re.split(r"^#+ ", text, flags=re.MULTILINE):
        title, _, body = section.partition("\n")
        links = re.findall(r"^(?:[-*]|1\.) \[[^]]*\]\(([^)#:]+)\.md\)", body, re.MULTILINE)
        if links:
            trees.append("\n".join(["", "```{toctree}", ":hidden:", f":caption: {title}", "", *links, "```", ""]))
    return "".join(trees)


def _add_navigation(app: Sphinx, page: str, source: list[str]) -> None:
    if page.endswith("/README"):
        source[0] += _navigation(PurePosixPath(page), source[0])


def setup(app: Sphinx) -> None:
    """Let Sphinx call what makes the navigation."""
    app.connect("source-read", _add_navigation)
