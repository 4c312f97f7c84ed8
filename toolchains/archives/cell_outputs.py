"""Read a user's notebook, and write into it what its cells showed in a container. Nothing from there is believed.

The container sends outputs only: the notebook's cells and metadata stay as they are on this machine. An output has one
of nbformat's four shapes, or nothing is written. Jupyter does not trust such a notebook: it runs no scripts in outputs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from toolchains.system import durable, foreign, json_text
from toolchains.system.errors import UnsafeArchiveError, UsageError

SUFFIX = ".ipynb"
_FORMAT, _PYTHON = 4, "python"
_Text = str | list[str]


class _Output(msgspec.Struct, tag_field="output_type", forbid_unknown_fields=True):
    pass


class _Stream(_Output, tag="stream"):
    name: Literal["stdout", "stderr"]
    text: _Text


class _Display(_Output, tag="display_data"):
    data: dict[str, Any]
    metadata: dict[str, Any]


class _Result(_Output, tag="execute_result"):
    data: dict[str, Any]
    metadata: dict[str, Any]
    execution_count: int | None


class _Error(_Output, tag="error"):
    ename: str
    evalue: str
    traceback: list[str]


class Shown(msgspec.Struct, forbid_unknown_fields=True):
    """What a cell showed; `cell` is its number in the notebook, from 0."""

    cell: int
    execution_count: int | None
    outputs: list[_Stream | _Display | _Result | _Error]


class _Cell(msgspec.Struct):
    cell_type: str


class _Kernel(msgspec.Struct, frozen=True):
    language: str = _PYTHON


class _Metadata(msgspec.Struct, frozen=True):
    kernelspec: _Kernel = _Kernel()


class _Notebook(msgspec.Struct):
    nbformat: int
    cells: list[_Cell]
    metadata: _Metadata = _Metadata()


def read(path: Path) -> dict[str, Any]:
    """Return a notebook as it is in its file.

    Raises:
        UsageError: it is no notebook of Python in nbformat 4.
        FileError: it is too large, or no plain file.
    """
    try:
        document = json_text.parse(foreign.read_file(path), dict[str, Any])
        notebook = msgspec.convert(document, _Notebook)
    except ValueError as error:
        raise UsageError(f"{path} is not a notebook", why=str(error), next="./foundry help run") from error
    if notebook.nbformat != _FORMAT:
        raise UsageError(
            f"{path} is a notebook of format {notebook.nbformat}",
            why=f"only format {_FORMAT} is read",
            next=f"open and save it in Jupyter, or: jupyter nbconvert --to notebook --inplace {path.name}",
        )
    if (language := notebook.metadata.kernelspec.language) != _PYTHON:
        raise UsageError(f"{path} is a notebook in {language}", why="images have Python", next="./foundry help run")
    return document


def parse_shown(text: bytes) -> list[Shown]:
    """Return what cells showed: a line of JSON each. A last line that was cut off is left out.

    Raises:
        UnsafeArchiveError: a line has another shape.
    """
    *lines, _ = text.split(b"\n")
    try:
        return [json_text.parse(line, Shown) for line in lines]
    except ValueError as error:
        raise UnsafeArchiveError("what the container sent is no output of a notebook", why=str(error)) from error


def write(document: dict[str, Any], shown: Sequence[Shown], path: Path) -> None:
    """Write a notebook with these outputs, in place of all that its code cells had.

    Raises:
        UnsafeArchiveError: there are outputs of a cell that the notebook does not have, or that has no code.
    """
    cells = document["cells"]
    rows = {row.cell: row for row in shown}
    code = {number for number, cell in enumerate(cells) if cell["cell_type"] == "code"}
    if unknown := rows.keys() - code:
        raise UnsafeArchiveError(f"the container sent outputs of cell {min(unknown) + 1}, which has no code")
    for number in code:
        row = rows.get(number)
        # A cell that did not run shows nothing: what an earlier run showed is no result of this one.
        cells[number]["outputs"] = msgspec.to_builtins(row.outputs) if row else []
        cells[number]["execution_count"] = row.execution_count if row else None
    durable.write(path, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
