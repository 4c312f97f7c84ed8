"""Every command in a block of the documentation is run by a test, or its page says why not; see documented.py."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import documented
import pytest
from documented import Command

from toolchains.system import paths

COMMANDS = {page: list(documented.commands(page)) for page in documented.PAGES}
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "build", ".*_cache", "__pycache__")


def pages(by: str) -> list[Path]:
    return [page for page, found in COMMANDS.items() if any(each.by == by for each in found)]


def named(page: Path) -> str:
    return str(page.relative_to(paths.ROOT))


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a copy of the checkout with the scripts that the pages name; its .venv is that of the checkout."""
    root = tmp_path / "checkout"
    shutil.copytree(paths.ROOT, root, symlinks=True, ignore=LEFT_OUT)
    (root / ".venv").symlink_to(paths.ROOT / ".venv")
    (first,) = documented.scripts(paths.ROOT / "README.md").values()
    # For pages that say `script.py` and mean the reader's own.
    for name in ("script.py", "my_script.py"):
        (root / name).write_text(first)
    for page in documented.PAGES:
        for name, text in documented.scripts(page).items():
            (root / name).write_text(text)
    return root


def run(command: Command, root: Path, **variables: str) -> None:
    """Run a command in a copy of the checkout, and compare its status and what it prints with the page."""
    kept = {name: value for name, value in os.environ.items() if name not in ("CI", "FOUNDRY_YES")}
    environment = {**kept, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", **variables}
    done = subprocess.run(
        ["bash", "-c", command.text],
        cwd=root,
        env=environment,
        input=command.input,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == command.status, f"{command.text}\n{done.stdout}"
    for line in command.printed:
        pattern = ".*".join(re.escape(part) for part in line.split("..."))
        assert re.search(f"^{pattern}$", done.stdout, re.MULTILINE), f"{command.text}: no {line!r} in\n{done.stdout}"


@pytest.mark.parametrize("page", COMMANDS, ids=named)
def test_every_command_of_a_page_is_run_or_says_why_not(page: Path) -> None:
    wrong = []
    for command in COMMANDS[page]:
        if command.by.startswith("tests/"):
            file = paths.ROOT / command.by
            text = file.read_text() if file.is_file() else ""
            found = bool(re.search(rf"\b{re.escape(documented.verb(command))}\b", text))
        else:
            found = command.by in ("host", "image", "suite") or command.by.startswith("nothing: ")
        if not found:
            wrong.append(f"{command.text}: {command.by or 'no mark'}")
    assert wrong == [], "write <!-- run by: ... --> above the block; tests/tree/documented.py says what"


def test_a_run_of_everything_has_what_is_marked_as_its_part() -> None:
    parts = re.compile(r"(\./foundry (--yes )?(e2e|test)|pytest|ruff|python -m (pytest|toolchains\.testing\.\w+))\b")
    marked = [command.text for found in COMMANDS.values() for command in found if command.by == "suite"]
    assert marked and [text for text in marked if not parts.match(text) or "--only" in text or "--gpus" in text] == []


@pytest.mark.slow
@pytest.mark.parametrize("page", pages("host"), ids=named)
def test_commands_that_need_nothing_run_in_a_copy(page: Path, copy: Path, tmp_path: Path) -> None:
    for command in COMMANDS[page]:
        if command.by == "host":
            run(command, copy, HOME=str(tmp_path), FOUNDRY_CACHE=str(tmp_path / "cache"))


@pytest.mark.docker
@pytest.mark.parametrize("page", pages("image"), ids=named)
def test_commands_that_need_an_image_run(page: Path, copy: Path) -> None:
    for command in COMMANDS[page]:
        if command.by == "image":
            run(command, copy)


def test_a_wrong_status_or_another_text_fails(tmp_path: Path) -> None:
    command = Command(tmp_path, "echo the 1st; exit 3", "", ("the ...",), "host", 3)
    run(command, tmp_path)
    for status, printed in ((0, "the ..."), (3, "another ...")):
        with pytest.raises(AssertionError):
            run(Command(tmp_path, command.text, "", (printed,), "host", status), tmp_path)


def test_a_block_without_a_mark_and_one_with_too_few_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Type:\n\n    ./foundry doctor  # why\n    ./foundry prune\n")
    assert [(each.text, each.by) for each in documented.commands(page)] == [
        ("./foundry doctor", ""),
        ("./foundry prune", ""),
    ]
    page.write_text("<!-- run by: host; image; image -->\n    ./foundry doctor\n    ./foundry prune\n")
    with pytest.raises(ValueError, match="3 marks for 2 commands"):
        list(documented.commands(page))
