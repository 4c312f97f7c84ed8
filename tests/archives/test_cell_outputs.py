"""What a container says that a notebook's cells showed: what is written into the notebook, and what is refused."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from toolchains.archives import cell_outputs
from toolchains.system.errors import UnsafeArchiveError, UsageError

STALE = [{"output_type": "stream", "name": "stdout", "text": ["stale\n"]}]
DOCUMENT: dict[str, Any] = {
    "nbformat": 4,
    "nbformat_minor": 5,
    "metadata": {"kernelspec": {"name": "mine", "language": "python"}, "title": "ä"},
    "cells": [
        {"cell_type": "markdown", "metadata": {}, "source": "# hi", "id": "a"},
        {"cell_type": "code", "metadata": {"tags": ["t"]}, "source": "1", "outputs": STALE, "execution_count": 7},
        {"cell_type": "code", "metadata": {}, "source": "2", "outputs": STALE, "execution_count": 8},
    ],
}
OUTPUTS: list[dict[str, Any]] = [
    {"output_type": "stream", "name": "stderr", "text": "warned\n"},
    {"output_type": "display_data", "data": {"image/png": "aaaa", "application/json": {"a": [1]}}, "metadata": {}},
    {"output_type": "execute_result", "data": {"text/plain": ["1"]}, "metadata": {}, "execution_count": 1},
    {"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["line"]},
]
ROW = {"cell": 1, "execution_count": 1, "outputs": OUTPUTS}


def line(**changed: object) -> bytes:
    return json.dumps(ROW | changed).encode() + b"\n"


def written(folder: Path, sent: bytes) -> dict[str, Any]:
    path = folder / "x.ipynb"
    cell_outputs.write(copy.deepcopy(DOCUMENT), cell_outputs.parse_shown(sent), path)
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def test_outputs_replace_all_earlier_ones_and_nothing_else_changes(tmp_path: Path) -> None:
    expected = copy.deepcopy(DOCUMENT)
    expected["cells"][1] |= {"outputs": OUTPUTS, "execution_count": 1}
    # The cell that did not run shows nothing of an earlier run.
    expected["cells"][2] |= {"outputs": [], "execution_count": None}
    assert written(tmp_path, line()) == expected


def test_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    whole = written(tmp_path, line())
    assert written(tmp_path, line() + line(cell=2)[:-9]) == whole


@pytest.mark.parametrize(
    "sent",
    [
        line(cell=0),
        line(cell=3),
        line(cell=-1),
        line(source="import os"),
        line(outputs=[{"output_type": "script", "data": {}}]),
        line(outputs=[OUTPUTS[0] | {"source": "x"}]),
        line(outputs=[OUTPUTS[0] | {"text": 1}]),
        line(outputs=[OUTPUTS[1] | {"data": []}]),
        line(execution_count="1"),
        b"[" * 100_000 + b"\n",
        b"\xff\n",
        b"{}\n",
    ],
    ids=lambda sent: sent[:40].decode(errors="replace"),
)
def test_outputs_of_another_shape_are_refused_and_the_notebook_stays(tmp_path: Path, sent: bytes) -> None:
    before = written(tmp_path, line())
    with pytest.raises(UnsafeArchiveError):
        written(tmp_path, line() + sent)
    assert json.loads((tmp_path / "x.ipynb").read_text(encoding="utf-8")) == before


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is not a notebook"),
        ("[]", "is not a notebook"),
        ('{"nbformat": 4}', "is not a notebook"),
        (json.dumps(DOCUMENT | {"cells": [1]}), "is not a notebook"),
        (json.dumps(DOCUMENT | {"nbformat": 3}), "of format 3"),
        (json.dumps(DOCUMENT | {"metadata": {"kernelspec": {"language": "julia"}}}), "in julia"),
    ],
)
def test_file_that_cannot_be_run_as_a_notebook_is_refused(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "x.ipynb"
    path.write_text(text)
    with pytest.raises(UsageError, match=why):
        cell_outputs.read(path)


def test_notebook_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "x.ipynb"
    path.write_text(json.dumps(DOCUMENT), encoding="utf-8")
    assert cell_outputs.read(path) == DOCUMENT
