"""The generated documents are current, and every key, variable and link in them exists."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from invoke.collection import Collection

import tasks
from toolchains.cli import reference
from toolchains.system import paths
from toolchains.system.errors import FoundryError

DOCUMENTS = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "backends/**/*.md", "sdks/**/*.md", "toolchains/**/*.md")
    for path in paths.ROOT.glob(pattern)
)
# The first parts of our variables' names.
OURS = re.compile(r"(FOUNDRY|TRITON_DPU|UPMEM|DPU_EMULATOR|VSI)_[A-Z_]*[A-Z]")
# Names that are not environment variables, or that one of our processes sets for another one.
NOT_FOR_USERS = {
    "FOUNDRY_PLANNED",  # verbs/test.py sets it for pytest in an image
    "FOUNDRY_VALUES",  # and for conformance/listed.py there
    "FOUNDRY_SUITE",  # verbs/conformance.py sets it for conformance/ in an image
    "VSI_SDK_INCLUDE_DIR",  # the vendor's placeholders in a command line
    "VSI_SDK_LIB_DIR",
}


@functools.cache
def strings(path: Path) -> list[str]:
    """Return all strings in a Python file, with a zero for each value that is inserted."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            found.append("".join(str(each.value) if isinstance(each, ast.Constant) else "\0" for each in node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(node.value)
    return found


@pytest.mark.parametrize("path", reference.files(), ids=lambda path: path.stem)
def test_generated_document_is_current(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == reference.files()[path], "python -m toolchains.cli.reference"


def test_the_maps_have_all_packages() -> None:
    for container, lowest in (("toolchains", "system"), ("foundry_core", "strings")):
        rows = reference.packages(container).splitlines()
        assert any(row.startswith(f"| 1 | `{lowest}` |") for row in rows) and len(rows) > 20
        assert reference.packages(container) in reference.DESIGN.read_text(encoding="utf-8")


def test_every_verb_and_every_status_is_in_the_reference() -> None:
    text = reference.reference(Collection.from_module(tasks))
    assert all(f"\n### {name}\n" in text for name in Collection.from_module(tasks).tasks)
    classes = [each for each in FoundryError.__subclasses__() if each.__module__ == FoundryError.__module__]
    assert all(f"| {each.exit_code} | `{each.__name__}` |" in text for each in classes)


def test_every_variable_that_the_code_reads_is_documented() -> None:
    found: dict[str, Path] = {}
    sources = [
        path for pattern in ("toolchains/**/*.py", "backends/*/src/**/*.py") for path in paths.ROOT.glob(pattern)
    ]
    for path in sources:
        if not {"tests", "conformance"}.intersection(path.relative_to(paths.ROOT).parts):
            found |= {text: path for text in strings(path) if OURS.fullmatch(text)}
    assert len(found) > 20
    text = reference.CONFIGURATION.read_text(encoding="utf-8")
    missing = {name: path for name, path in found.items() if name not in NOT_FOR_USERS and f"`{name}" not in text}
    assert missing == {}


def anchors(text: str) -> set[str]:
    """Return the anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(paths.ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    wrong = []
    text = re.sub(r"```.*?```|^ {4}[^\n]*$", "", document.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        name, _, anchor = link.partition("#")
        if "://" in link:
            continue
        target = (document.parent / name).resolve() if name else document
        if not target.exists() or (anchor and anchor not in anchors(target.read_text(encoding="utf-8"))):
            wrong.append(link)
    assert wrong == []


@pytest.mark.parametrize("picture", sorted(paths.ROOT.glob("docs/**/*.svg")), ids=lambda path: path.stem)
def test_pictures_have_colours_for_dark_screens_and_load_nothing(picture: Path) -> None:
    text = picture.read_text(encoding="utf-8")
    assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
    assert "@media (prefers-color-scheme: dark)" in text
    assert set(re.findall(r"(\S+?)=?[\"']?https?://", text)) == {"xmlns"}
    assert re.findall(r"url\((?!#)|@import|<script|href", text) == []


def test_the_first_page_is_one_page() -> None:
    assert len((paths.ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


def texts() -> str:
    """Return all texts in the code that may be part of a message, without the values that are inserted."""
    files = [paths.ROOT / "foundry", *paths.RECIPES.rglob("*.py"), *(paths.ROOT / "sdks").rglob("*.py")]
    sources = [
        *(path for path in (paths.ROOT / "toolchains").rglob("*.py")),
        *(paths.ROOT / "backends").glob("*/src/**/*.py"),
    ]
    found = [path.read_text(encoding="utf-8") for path in [*files, *paths.PATCHES.rglob("*.patch")]]
    found += [text for path in sources for text in strings(path)]
    return "\1".join(re.sub(r"\[/?\w*\]", "", each) for each in found)


def test_messages_that_the_documents_quote_exist() -> None:
    """Messages of the operating system are not checked."""
    names = ("troubleshooting.md", "first-mistakes.md")
    document = "".join((paths.ROOT / "docs" / name).read_text(encoding="utf-8") for name in names)
    everything = texts()
    quoted = [
        quote
        for row in re.findall(r"^\| (.*?) \| ", document, re.MULTILINE)
        for quote in re.findall(r"`([^`]+)`", row)
        if quote != "Temporary failure in name resolution"
    ]
    assert len(quoted) > 150
    pieces = {piece.strip(): quote for quote in quoted for piece in quote.split("...") if piece.strip()}
    assert {quote for piece, quote in pieces.items() if piece not in everything} == set()
