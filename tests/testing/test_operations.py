"""The tables of docs/operations.md: what a cell says, what is kept, and when a run contradicts the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from toolchains.testing import operations
from toolchains.testing.operations import Cell, cells, contradictions, section, write
from toolchains.testing.verdict import BAD

RELEASE, SUITE = "3.9.0", "0123456789abcdef"


def result(outcome: str, operation: str = "a + b", kind: str = "f32", ulp: float | None = None, why: str = "") -> Any:
    """Return the result of a test in test_x.py."""
    properties = {"operation": operation, "type": kind} | ({} if ulp is None else {"ulp": ulp})
    reason = "tt.scan" if outcome == "refused" else ""
    return {"suite": "test_x.py", "outcome": outcome, "reason": reason, "why": why, "properties": properties}


def cell(*results: Any) -> Cell:
    (found,) = cells(results).values()
    return found


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        (["pass"], Cell("works")),
        (["pass", "not applicable"], Cell("works")),
        (["not applicable"], Cell("n/a")),
        (["refused", "refused"], Cell("no", reasons=("tt.scan",))),
        (["pass", "refused"], Cell("in part", reasons=("tt.scan",))),
        *((["pass", "refused", bad], Cell("wrong")) for bad in set(BAD) - {"not run"}),
    ],
)
def test_one_bad_test_decides_about_a_cell_and_a_refusal_is_not_hidden(outcomes: list[str], expected: Cell) -> None:
    assert cell(*map(result, outcomes)) == expected


def test_cell_has_the_largest_bound_and_every_reason() -> None:
    assert cell(result("pass", ulp=0.5), result("pass", ulp=3.5)).text == "3.5 ulp"
    refused = cell(result("refused", why="of f64"), result("refused", why="of f64"), result("refused"))
    assert refused.reasons == ("tt.scan: of f64", "tt.scan")
    assert not cells([result("not run"), {"suite": "test_x.py", "outcome": "pass", "properties": {}}, {"suite": "y"}])


FOUND = cells(
    [
        result("pass", "a | b", "i32"),
        result("pass", "a | b", "u8"),
        result("refused", "a | b", "i64", why="reason"),
        result("pass", "tl.exp", "f32", ulp=3.5),
        result("refused", "tl.exp", "f64", why="reason"),
        result("pass", "tl.exp", "f16", ulp=0.5),
        result("refused", "tl.exp", "f16"),
        result("pass", "a loop", ""),
    ]
)


def test_a_section_is_a_table_for_each_group_and_reasons_below() -> None:
    assert section("dpu", RELEASE, SUITE, {"device": "a DPU"}, FOUND).splitlines() == [
        "## dpu",
        "",
        f"Triton {RELEASE}, suite {SUITE}; a DPU.",
        "",
        "### x: dpu",
        "",
        "| operation | f16 | f32 | f64 | i32 | i64 | u8 | any |",
        "|---|---|---|---|---|---|---|---|",
        "| `a \\| b` |  |  |  | works | no [1] | works |  |",
        "| `tl.exp` | in part [2] | 3.5 ulp | no [1] |  |  |  |  |",
        "| a loop |  |  |  |  |  |  | works |",
        "",
        "1. tt.scan: reason",
        "2. tt.scan",
    ]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "operations.md"
    for target in ("spirv", "dpu"):
        write(path, target, section(target, RELEASE, SUITE, {}, FOUND))
    return path


def test_a_target_replaces_its_own_section_only(table: Path) -> None:
    before = table.read_text()
    write(table, "dpu", section("dpu", RELEASE, SUITE, {}, FOUND))
    assert table.read_text() == before
    write(table, "dpu", section("dpu", "9.9", SUITE, {}, cells([result("pass")])))
    after = table.read_text()
    assert before.partition("## spirv")[2] == after.partition("## spirv")[2]
    assert after.startswith("# Operations\n") and after.count("## dpu\n") == 1 and "Triton 9.9" in after


def test_only_a_run_of_the_same_release_and_suite_is_compared(table: Path) -> None:
    assert contradictions(table, "dpu", RELEASE, SUITE, FOUND) == []
    found = cells([result("crash")]) | cells([result("crash", "tl.exp", "f32")])
    assert contradictions(table, "dpu", "3.6.0", SUITE, found) == []
    assert contradictions(table, "dpu", RELEASE, "f" * 16, found) == []
    assert contradictions(table, "vsi", RELEASE, SUITE, found) == []


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (result("refused", "tl.exp", "f32"), "x tl.exp f32: operations.md says 3.5 ulp, this run no"),
        (result("pass", "tl.exp", "f32", ulp=4.0), "x tl.exp f32: operations.md says 3.5 ulp, this run 4 ulp"),
        (result("pass", "tl.exp", "f64"), "x tl.exp f64: operations.md says no, this run works"),
        (result("crash", "a | b", "i32"), "x a | b i32: operations.md says works, this run wrong"),
        (result("pass", "tl.exp", "f32", ulp=2.0), None),
        (result("refused", "tl.exp", "f16"), None),
        (result("pass", "tl.tan", "f16"), None),
    ],
)
def test_a_partial_run_contradicts_what_it_cannot_be_a_part_of(table: Path, found: Any, said: str | None) -> None:
    assert contradictions(table, "dpu", RELEASE, SUITE, cells([found])) == ([said] if said else [])


def test_the_digest_of_a_suite_is_of_names_and_contents(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    one = operations.digest(tmp_path)
    (tmp_path / "a.py").write_text("2")
    two = operations.digest(tmp_path)
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    assert len({one, two, operations.digest(tmp_path)}) == 3
