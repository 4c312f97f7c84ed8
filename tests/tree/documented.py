"""The commands in blocks of the documentation, and what runs each of them.

A comment above a block says it, for all commands of the block or for each, separated by semicolons:

    <!-- run by: host; image, status 1; nothing: needs a GPU -->

    host             test_documented.py, on this machine in a copy of the checkout, with an empty store
    image            test_documented.py, with the container engine and the user's store
    tests/PATH.py    this file of tests: the same verb, perhaps with other words
    suite            `./foundry test`, which is this command or has it as a part
    nothing: WHY     nothing

`, status N` is the exit status that the command must have. In a block of the form `$ command`, the lines below
a command are what it prints, with `...` for any text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from toolchains.system import paths

# The pages. Those in sdks/ and backends/ are parts of images or of projects that stand alone, with tests of their own.
# The examples in docs/reference.md are made of the verbs' help; test_commandline.py parses them.
PAGES = sorted(
    path for pattern in ("*.md", "docs/**/*.md") for path in paths.ROOT.glob(pattern) if path.name != "reference.md"
)
_MARK = re.compile(r"<!-- run by: (.*?) -->\n", re.DOTALL)
# A fenced block with its language, or an indented one after an empty line, a comment or a fence.
_BLOCK = re.compile(
    r"^```(?P<language>[^\n]*)\n(?P<fenced>.*?)^```$"
    r"|(?:(?<=\n\n)|(?<=-->\n))(?P<indented>(?: {4}[^\n]*\n|\n(?= {4}))+)",
    re.MULTILINE | re.DOTALL,
)
_PROGRAMS = (
    r"(?:\.|FOUNDRY)/foundry|FOUNDRY/\S+|invoke|docker|pytest|python3?|pip3?|ruff|mypy|git|cd|export|source|apt|redis-server|cat|grep|opt|cmake|cc|"
    r"clang\+\+|llvm-objcopy|dpu-[\w-]+|bin/\w+|\./\S+|\$ "
)
_COMMAND = re.compile(rf"(?:\w+=\S* )*(?:{_PROGRAMS})(?=\s|$)|\$ ")
# A word with letters, of a command or of a test.
_VERB = re.compile(r"(?:(?:\.|FOUNDRY)/foundry (?:--yes )?|python3? -m )([\w-]+)")


@dataclass(frozen=True)
class Command:
    """A command of a page.

    Attributes:
        page: the page.
        text: what a user types, without its comment.
        input: the further lines of a block that begins with a shell: what the user types in it.
        printed: the lines that the page shows below it.
        by: what runs it; "" if there is no mark.
        status: the exit status that it must have.
    """

    page: Path
    text: str
    input: str
    printed: tuple[str, ...]
    by: str
    status: int


def blocks(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the blocks of commands, each as the mark above it and its lines without the indentation."""
    for found in _BLOCK.finditer(text):
        if found["language"] in (None, "sh", "console"):
            lines = [line.removeprefix("    ") for line in (found["indented"] or found["fenced"]).splitlines()]
            mark = _MARK.search(text[: found.start()].rpartition("\n\n")[2])
            if mark or _COMMAND.match(next((line for line in lines if line and line[0] != "#"), "")):
                yield (mark[1] if mark else ""), lines


def commands(page: Path) -> Iterator[Command]:
    """Yield the commands in the blocks of a page.

    Raises:
        ValueError: a mark has neither one part nor as many as the block has commands.
    """
    for mark, lines in blocks(page.read_text(encoding="utf-8")):
        shown = [line for line in "\n".join(lines).replace("\\\n", "").splitlines() if line and line[0] != "#"]
        prompted = any(line.startswith("$ ") for line in shown)
        typed: list[tuple[str, list[str]]] = []
        for line in shown:
            in_shell = typed and typed[-1][0].startswith("./foundry shell") and not line.startswith("./foundry")
            if in_shell or (prompted and not line.startswith("$ ")):
                typed[-1][1].append(line)
            else:
                typed.append((re.sub(r"\s+# .*", "", line.removeprefix("$ ")), []))
        parts = [part.strip() for part in mark.split(";")]
        if len(parts) == 1:
            parts *= len(typed)
        if len(parts) != len(typed):
            raise ValueError(f"{page.name}: {len(parts)} marks for {len(typed)} commands: {typed[0][0]}")
        for (text, below), part in zip(typed, parts, strict=True):
            by, _, status = part.partition(", status ")
            rest = () if not prompted else tuple(below)
            yield Command(page, text, "" if prompted else "\n".join(below), rest, by, int(status or 0))


def verb(command: Command) -> str:
    """Return the verb of a command of ours, or else its module of Python or its program."""
    found = _VERB.search(command.text)
    return found[1] if found else command.text.split()[0]


def scripts(page: Path) -> dict[str, str]:
    """Return the files that a page tells its reader to save, by their names."""
    text = page.read_text(encoding="utf-8")
    saved = r"[Ss]ave this as `([\w.]+)`(?:(?!```).)*?```python\n(.*?)^```"
    return dict(re.findall(saved, text, re.DOTALL | re.MULTILINE))
