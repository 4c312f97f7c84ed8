"""What contributors' tools read: hooks for pre-commit, settings of editors, templates of issues and changes."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from configparser import ConfigParser
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from toolchains.archives import folders
from toolchains.system import paths
from toolchains.verbs import test

# What is at the top of a checkout and is not the repository's.
OTHERS = {".git", ".venv", "build", ".import_linter_cache", *folders.LITTER}


def hooks() -> list[dict[str, Any]]:
    read = YAML(typ="safe").load((paths.ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    (local,) = read["repos"]
    assert local.pop("repo") == "local", "nothing is fetched"
    return list(local["hooks"])


def test_pre_commit_checks_what_the_whole_run_checks_before_its_tests() -> None:
    *parts, tests = test._here(Path("junit.xml"), [])
    assert tests.junit
    assert [hook["name"] for hook in hooks() if hook["name"] != "message"] == [part.title for part in parts]


def test_a_hook_refuses_what_is_wrong_with_the_tools_of_the_environment_of_foundry(tmp_path: Path) -> None:
    (tmp_path / ".venv").symlink_to(sys.prefix)
    (tmp_path / "toolchains").mkdir()
    for name, text in (("__init__.py", ""), ("system.py", "from toolchains import cli"), ("cli.py", "")):
        (tmp_path / "toolchains" / name).write_text(text)
    (tmp_path / "pyproject.toml").write_text(
        (paths.ROOT / "pyproject.toml").read_text().replace("exhaustive = true", "")
    )
    # No message of a commit either: it has no body.
    (tmp_path / "tasks.py").write_text("import os\nnumber : str = 1\n")

    def refused(hook: Mapping[str, Any]) -> bool:
        words = [*hook["entry"].split(), *(["tasks.py"] * hook.get("pass_filenames", True))]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
        # pre-commit refuses a commit, too, if a hook changes a file.
        return done.returncode == 1 or (tmp_path / "tasks.py").read_text().startswith("import os\n\n")

    assert [hook["name"] for hook in hooks() if not refused(hook)] == []


def settings(name: str) -> dict[str, str]:
    """Return what .editorconfig says of a file, as editors read it."""
    parser = ConfigParser()
    parser.read_string("[root]\n" + (paths.ROOT / ".editorconfig").read_text(encoding="utf-8"))
    found: dict[str, str] = {}
    for section in parser.sections():
        before, _, rest = section.partition("{")
        choices, _, after = rest.partition("}")
        if any(fnmatch(name, f"{before}{choice}{after}") for choice in choices.split(",")):
            found |= parser[section]
    return found


def test_every_file_is_as_editors_are_told_to_write_it() -> None:
    wrong = []
    top = [path for path in paths.ROOT.iterdir() if path.name not in OTHERS]
    files = {name: path for each in top for name, path in folders.entries_below(each, each.name).items()}
    assert len(files) > 1000
    for name, path in files.items():
        data = path.read_bytes()
        if b"\0" in data:
            continue
        said, text = settings(path.name), data.decode("utf-8")
        faults = {
            "end_of_line": "\r" in text,
            "insert_final_newline": bool(text) and not text.endswith("\n"),
            "trim_trailing_whitespace": re.search(r"[ \t]$", text, re.MULTILINE),
            "indent_style": re.search(r"^ *\t", text, re.MULTILINE),
        }
        wrong += [f"{name}: {fault}" for fault, found in faults.items() if found and said[fault] != "false"]
    assert wrong == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a.py", ("4", "120", "true")), ("a.yml.in", ("2", "120", "true")), ("a.patch", ("4", "120", "false"))],
)
def test_settings_are_read_by_the_files_name(name: str, expected: tuple[str, ...]) -> None:
    keys = ("indent_size", "max_line_length", "trim_trailing_whitespace")
    assert tuple(settings(name)[key] for key in keys) == expected


def test_both_systems_ask_the_same_of_an_issue_and_of_a_change() -> None:
    github, gitlab = paths.ROOT / ".github", paths.ROOT / ".gitlab"
    issues = {path.name: path.read_text() for path in (github / "ISSUE_TEMPLATE").glob("*.md")}
    assert all(re.match(r"---\nname: .+\nabout: .+\n---\n\n", text) for text in issues.values())
    bodies = {name: text.partition("---\n\n")[2] for name, text in issues.items()}
    assert {path.name: path.read_text() for path in (gitlab / "issue_templates").iterdir()} == bodies
    change = (github / "pull_request_template.md").read_text()
    assert (gitlab / "merge_request_templates/Default.md").read_text() == change
