"""The arithmetic of bench/: in which order candidates are measured, and in which direction a ratio is taken."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).resolve().parent.parent / "bench"


@pytest.fixture(autouse=True)
def bench(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make bench's modules importable as in its scripts."""
    monkeypatch.syspath_prepend(str(BENCH))


def test_candidates_take_turns() -> None:
    from measure import interleaved

    calls: list[str] = []
    times = interleaved({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, rounds=3, batch=2)
    # One warm-up call, then the two calls of a timing.
    assert "".join(calls) == "aaabbb" * 3
    assert times["a"].runs == 3


def test_a_ratio_above_one_says_that_ours_is_faster() -> None:
    from measure import Times, ratios

    found = ratios("x", [Times(2.0, 4.0, 5), Times(3.0, 3.0, 5)], [Times(8.0, 9.0, 5), Times(10.0, 12.0, 5)])
    assert found == {"x, median": 3.0, "x, min": 4.0}
    # The second round is slow for both, and the third for one of them.
    ours, peers = Times.of([1.0, 10.0, 1.0]), Times.of([2.0, 20.0, 30.0])
    assert ratios("x", [ours], [peers]) == {"x, median": 2.0, "x, min": 2.0}


def test_a_table_names_every_candidate_with_its_times_rate_and_aim() -> None:
    from measure import Times
    from measurement import Measurement, Row

    table = Measurement(
        title="add",
        rows=[Row("ours", Times(2e-3, 3e-3, 7), 10.0), Row("theirs", Times(5e-6, 1.5, 7))],
        unit="GB/s",
        ratios={"over theirs": 1.234},
        aim="at least 1",
    ).table()
    ours, theirs = table.splitlines()[1:3]
    assert all(text in ours for text in ("ours", "2.00 ms", "3.00 ms", "7 runs", "10.0 GB/s"))
    assert all(text in theirs for text in ("theirs", "5.00 us", "1.50 s"))
    assert "over theirs: 1.23" in table
    assert "aim: at least 1" in table


def test_seconds_beyond_a_peers_have_a_sign() -> None:
    from measurement import Measurement

    table = Measurement(title="compile", rows=[], beyond={"beyond theirs": 0.123, "beyond others": -0.5}).table()
    assert "beyond theirs: +0.12 s" in table
    assert "beyond others: -0.50 s" in table


def test_what_a_process_prints_of_its_first_launch_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import first_launch

    script = tmp_path / "child.py"
    script.write_text("import os, sys; print(1, 2.5, 0.5, len(sys.argv[1] + os.environ['WHERE']), 2)")
    monkeypatch.setattr(first_launch, "__file__", str(script))
    assert first_launch.spawn("vec_add", tmp_path, WHERE="there") == (1.0, 2.5, 0.5, 12.0, 2.0)


def test_modelled_cycles_are_called_so() -> None:
    from measurement import Measurement, Row

    table = Measurement(title="add", rows=[Row("ours", cycles=1234567, rate=1.5)], unit="M elements/s").table()
    assert "1,234,567 modelled cycles" in table
    assert "1.5 M elements/s" in table


def test_the_bounds_of_a_dpu_follow_from_published_throughputs() -> None:
    from dpu import bounds

    # 52 M elements/s at 350 MHz; 350 / 10.3 - 5 and 350 / 58.6 - 5 cycles for an int32 multiplication and an addition.
    assert bounds.addition(52_000_000) == pytest.approx(350_000_000)
    assert bounds.multiplication("i32", 1, 1, 1, 1) == pytest.approx(28.98 + 0.97, abs=0.01)
    assert bounds.multiplication("f32", 2, 3, 4, 2) == pytest.approx(12 * (179.21 + 66.43), abs=0.1)


def doubling(**candidates: Any) -> Any:
    """Return the problem of doubling 8 numbers. Each candidate gets the output; the first one is ours."""
    import numpy as np
    from problem import Problem, empty

    output, exact = empty((8,), "f32"), 2 * np.arange(8.0)
    ours, *peers = ((name, lambda write=write: write(output)) for name, write in candidates.items())
    return Problem(
        "double",
        "GB/s",
        64,
        8,
        output,
        exact,
        0.25,
        ours=dict([ours]),
        peers={name: {"once": call, "again": call} for name, call in peers},
    )


def right(output: Any) -> None:
    output[...] = range(0, 16, 2)


def all_but_the_last(output: Any) -> None:
    output[:-1] = range(0, 14, 2)


def off(output: Any) -> None:
    right(output)
    output[3] += 0.5


@pytest.mark.parametrize("wrong", [all_but_the_last, off])
def test_a_candidate_with_a_wrong_or_missing_element_is_not_timed(wrong: Any) -> None:
    from problem import measure

    for candidates in ({"ours": wrong, "peer": right}, {"ours": right, "peer": wrong}):
        # The other candidate has written all elements just before.
        with pytest.raises(AssertionError, match="1 of 8 elements are wrong"):
            measure(doubling(**candidates), 0.01)


def test_a_problem_gives_a_rate_for_each_candidate_and_a_ratio_for_each_peer() -> None:
    from problem import measure

    found = measure(doubling(ours=right, one=right, two=right), 0.01)
    assert [row.label for row in found.rows] == ["Triton", "one", "two"]
    assert found.rows[0].detail == "ours" and "fastest of 2" in found.rows[1].detail
    for row in found.rows:
        assert row.times and row.rate == pytest.approx(64e-9 / row.times.median)
    assert {label.partition(",")[0] for label in found.ratios} == {"Triton over one", "Triton over two"}
    assert (found.bytes, found.operations) == (64, 8)


def test_a_turn_is_long_enough_for_the_clock() -> None:
    from measure import pace

    paced = pace({"short": lambda: None, "long": lambda: time.sleep(0.01)}, 0.1)
    assert paced["batch"]["long"] == 1 < paced["batch"]["short"]
    assert 7 <= paced["rounds"] <= 50


def test_a_result_that_is_returned_is_checked_instead_of_the_output() -> None:
    from problem import Returning

    problem = doubling(ours=right)
    problem.check("returned", Returning(lambda: problem.exact))
    with pytest.raises(AssertionError):
        problem.check("returned", Returning(lambda: problem.exact + 1))


def test_the_comparison_of_a_tutorial_is_read_from_what_it_prints() -> None:
    from tutorials import read

    lines = (
        "exp     triton       0.250 ms, least 0.200 of 12 runs      1.234 G elements/s",
        "exp     numpy     12.000 ms, least 11.000 of 5 runs      0.1 G elements/s",
    )
    said = "\n".join(["largest error 2.1e-07", *lines, ""])
    (ours, numpy), unit = read(said)
    assert (ours.label, ours.rate, numpy.label, unit) == ("exp triton", 1.234, "exp numpy", "G elements/s")
    assert ours.times and ours.times.median == pytest.approx(0.25e-3)
    assert (ours.times.min, ours.times.runs) == (pytest.approx(0.2e-3), 12)
    for nothing in ("largest error 0.1\n", said + said):
        with pytest.raises(AssertionError, match="no comparison"):
            read(nothing)


def test_every_tutorial_prints_a_comparison_that_can_be_read() -> None:
    import tutorials

    from toolchains.cli.tutorials import sources

    for path in sources():
        # The format string of the line, with its fields filled in.
        (line,) = re.findall(r'print\((f"[^\n]*np.median[^\n]*")\)', path.read_text())
        fields = re.sub(r"\{(name|who):\d+\}", "word    ", line[2:-1]).replace("{runs}", "5")
        assert tutorials.read(re.sub(r"\{[^}]*\}", "  1.00", fields) + "\n"), path.name


def test_a_library_that_uses_more_than_the_limit_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    import processor

    monkeypatch.setattr(processor, "LIMIT", "avx2")
    monkeypatch.setattr(processor, "_openblas", lambda: "Haswell")
    found = processor.described()
    assert found["OpenBLAS"] == "Haswell" and found["limited to"] == "avx2" and int(found["threads"]) > 0
    monkeypatch.setattr(processor, "_openblas", lambda: "SkylakeX")
    with pytest.raises(RuntimeError, match="SkylakeX"):
        processor.described()


def test_a_store_beside_the_output_is_seen() -> None:
    import numpy as np

    def beyond(output: Any) -> None:
        right(output)
        np.lib.stride_tricks.as_strided(output, (9,), (4,))[8] = 0

    problem = doubling(ours=beyond)
    with pytest.raises(AssertionError, match="outside of its output"):
        problem.check("ours", problem.ours["ours"])
