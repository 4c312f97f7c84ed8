"""A run of checks: what passed is told in a line, what failed is shown, and what did not run is never counted."""

from __future__ import annotations

import functools
import os
import pty
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from toolchains.system import paths
from toolchains.system.children import run
from toolchains.system.errors import CheckError, CommandError
from toolchains.testing import parts as module
from toolchains.testing.parts import CheckPart, Line, run_parts
from toolchains.testing.record import RunInputs

JUNIT = '<testsuites><testsuite tests="{tests}" failures="{failures}" errors="0" skipped="{skipped}"/></testsuites>'


def part(file: Path, *, tests: int, failures: int = 0, skipped: int = 0) -> CheckPart:
    """Return a part that writes these results, and fails as pytest would."""

    def run(line: Line) -> None:
        file.write_text(JUNIT.format(tests=tests, failures=failures, skipped=skipped))
        if failures:
            raise CommandError("pytest failed")

    return CheckPart(file.stem, run, file)


@pytest.fixture(autouse=True)
def inputs(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return what a run takes for the state of the checkout."""
    now = {"commit": "a commit", "files": "its files", "machine": "a machine"}
    monkeypatch.setattr(RunInputs, "read", lambda options: RunInputs(options=tuple(options), **now))
    return now


def test_summary_sums_up_all_parts_and_missing_results_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lint = CheckPart("lint", lambda line: None)
    parts = [lint, part(tmp_path / "one", tests=5, skipped=1), part(tmp_path / "two", tests=3)]
    assert run_parts(parts, tmp_path) == 0
    assert " 7 passed, 1 skipped in " in capsys.readouterr().out.splitlines()[-1]
    assert run_parts([CheckPart("one", lambda line: None, tmp_path / "absent.xml")], tmp_path) == CheckError.exit_code
    assert " 1 errors in " in capsys.readouterr().out.splitlines()[-1]


def test_run_without_a_test_has_failed_though_each_part_passed(tmp_path: Path) -> None:
    assert run_parts([CheckPart("lint", lambda line: None)], tmp_path) == CheckError.exit_code


def test_failed_part_does_not_stop_the_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def lint(line: Line) -> None:
        raise CommandError("an unused import")

    parts = [CheckPart("lint", lint), part(tmp_path / "one", tests=2, failures=1), part(tmp_path / "two", tests=3)]
    assert run_parts(parts, tmp_path) == CheckError.exit_code
    output = capsys.readouterr().out
    assert f"failed: lint: an unused import, see {tmp_path}/lint.log\nfailed: one: 1 failed, 1 passed, see " in output
    assert "\n1 of 3 suites passed\n" in output
    assert " 1 failed, 4 passed, 1 errors in " in output.splitlines()[-1]


def test_part_that_ends_before_its_results_fails_in_the_last_line_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def crash(line: Line) -> None:
        (tmp_path / "one.xml").write_text(JUNIT.format(tests=3, failures=0, skipped=0))
        raise CommandError("2 of 5 tests did not end")

    assert run_parts([CheckPart("one", crash, tmp_path / "one.xml")], tmp_path) == CheckError.exit_code
    assert " 3 passed, 1 errors in " in capsys.readouterr().out.splitlines()[-1]


@pytest.mark.parametrize("skipped", [0, 3], ids=["none collected", "all skipped"])
def test_part_without_a_test_has_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str], skipped: int) -> None:
    parts = [part(tmp_path / "one", tests=skipped, skipped=skipped), part(tmp_path / "two", tests=3)]
    assert run_parts(parts, tmp_path) == CheckError.exit_code
    assert "failed: one: no test was executed" in capsys.readouterr().out


@pytest.mark.parametrize(
    "content",
    [
        "",
        "<a/>",
        "<testsuites>",
        "not XML",
        '<testsuite tests="many"/>',
        "<?xml version='1.0' encoding='nothing'?><testsuite tests='1'/>",
    ],
)
def test_part_with_damaged_results_fails(tmp_path: Path, content: str, capsys: pytest.CaptureFixture[str]) -> None:
    def run(line: Line) -> None:
        (tmp_path / "one.xml").write_text(content)

    assert run_parts([CheckPart("one", run, tmp_path / "one.xml")], tmp_path) == CheckError.exit_code
    assert "failed: one: no test was executed" in capsys.readouterr().out


def test_results_of_an_earlier_run_are_not_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "one.xml").write_text(JUNIT.format(tests=3, failures=0, skipped=0))
    assert run_parts([CheckPart("one", lambda line: None, tmp_path / "one.xml")], tmp_path) == CheckError.exit_code
    assert "failed: one: no test was executed" in capsys.readouterr().out


def test_each_part_has_a_whole_log_and_what_failed_is_shown_in_one_piece(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = threading.Barrier(2, timeout=60)

    def meet(name: str, line: Line) -> None:
        for number in range(200):
            # The part ends only if the other part reaches this point, too.
            here.wait()
            line(f"{name} {number}")
        if name == "two":
            raise CommandError("the engine is gone")

    parts = [CheckPart(name, functools.partial(meet, name), beside=True) for name in ("one", "two")]
    assert run_parts([*parts, part(tmp_path / "three", tests=1)], tmp_path, lanes=2) == CheckError.exit_code
    output = capsys.readouterr().out
    one, two = ("\n".join(f"{name} {number}" for number in range(200)) for name in ("one", "two"))
    assert (tmp_path / "one.log").read_text() == f"{one}\n"
    assert one not in output, "it passed"
    assert f"{two}\nthe engine is gone\n\nThe whole output: {tmp_path}/two.log" in output
    assert output.index("passed  three") > max(output.index("passed  one"), output.index("failed  two"))


def test_terminal_shows_what_pytest_says_of_failures_and_not_the_rest() -> None:
    dots, wrong = [f"dots {number}" for number in range(500)], [f"wrong {number}" for number in range(500)]
    shown = module._end_of("\n".join([*dots, "===== FAILURES =====", *wrong, "1 failed"])).splitlines()
    assert shown[0] == "===== FAILURES ====="
    assert shown[-1] == "1 failed"
    assert "... 442 lines are in the log ..." in shown
    assert module._end_of("\n".join(dots)).splitlines() == dots[-60:]


def test_continued_run_runs_only_what_has_not_passed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = part(tmp_path / "good.xml", tests=5), part(tmp_path / "bad.xml", tests=3, failures=1)
    assert run_parts([good, bad], tmp_path) == CheckError.exit_code
    assert "next: ./foundry test --continue" in capsys.readouterr().out
    again = CheckPart("good", lambda line: pytest.fail("it runs again"), tmp_path / "good.xml")
    mended = part(tmp_path / "bad.xml", tests=3)
    assert run_parts([again, mended], tmp_path, continued=True) == 0
    output = capsys.readouterr().out
    assert output.startswith("1 suite, ")
    assert "on the same files: good (5 passed)" in output
    assert "2 of 2 suites passed, 1 of them before\n" in output
    assert " 8 passed in " in output.splitlines()[-1]
    assert run_parts([good, mended], tmp_path) == 0, "without --continue, everything runs"
    assert "before" not in capsys.readouterr().out


@pytest.mark.parametrize("changed", ["commit", "files", "machine", "options", "damaged", "no git"])
def test_suite_that_passed_on_other_inputs_runs_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], inputs: dict[str, str], changed: str
) -> None:
    if changed == "no git":
        inputs["commit"] = ""
    assert run_parts([part(tmp_path / "one.xml", tests=5)], tmp_path) == 0
    if changed in inputs:
        inputs[changed] = "another"
    if changed == "damaged":
        (tmp_path / "record.json").write_text("{")
    options = ["--target=x"] if changed == "options" else []
    capsys.readouterr()
    assert run_parts([part(tmp_path / "one.xml", tests=4)], tmp_path, options=options, continued=True) == 0
    output = capsys.readouterr().out
    assert output.startswith("Everything runs, also what passed before. Changed since: ")
    assert " 4 passed in " in output.splitlines()[-1]


def test_part_that_passed_while_files_changed_is_run_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], inputs: dict[str, str]
) -> None:
    one = part(tmp_path / "one.xml", tests=5)

    def edit(line: Line) -> None:
        one.run(line)
        inputs["files"] = "edited"

    assert run_parts([CheckPart("one", edit, one.junit)], tmp_path) == 0
    assert (
        "--continue runs it again, because these changed meanwhile: files of this checkout" in capsys.readouterr().out
    )
    inputs["files"] = "its files"
    assert run_parts([one], tmp_path, continued=True) == 0
    assert "before" not in capsys.readouterr().out


def test_estimate_is_labelled_and_is_that_of_the_last_run_if_there_is_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = part(tmp_path / "one.xml", tests=5)
    assert run_parts([one], tmp_path) == 0
    assert "(an estimate from times on two cores, not all measured)" in capsys.readouterr().out
    assert run_parts([one], tmp_path) == 0
    assert capsys.readouterr().out.startswith("1 suite, about 0 s (an estimate from its last run here)")


def test_interrupt_ends_parallel_parts_and_keeps_what_passed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    began = [threading.Event(), threading.Event()]
    ended = []

    def sleep(number: int, line: Line) -> None:
        script = "import time; print('here', flush=True); time.sleep(600)"
        try:
            run([sys.executable, "-c", script], log=f"sleep-{number}", line=lambda text: began[number].set())
        except CommandError:
            ended.append(number)
            raise

    def stop(line: Line) -> None:
        for event in began:
            assert event.wait(60)
        raise KeyboardInterrupt

    good = part(tmp_path / "good.xml", tests=5)
    parts = [CheckPart(f"{number}", functools.partial(sleep, number), beside=True) for number in (0, 1)]
    with pytest.raises(KeyboardInterrupt):
        run_parts([good, CheckPart("stop", stop, beside=True), *parts], tmp_path, lanes=3)
    assert sorted(ended) == [0, 1]
    output = capsys.readouterr().out
    assert output.endswith("This run was ended. 1 of 4 suites passed\nnext: ./foundry test --continue\n")
    assert "failed" not in output, "what was ended has not failed"
    assert run_parts([good], tmp_path, continued=True) == 0
    assert "on the same files: good (5 passed)" in capsys.readouterr().out


SCRIPT = """
import sys
from pathlib import Path
from toolchains.system.children import run
from toolchains.testing.parts import CheckPart, run_parts
from toolchains.testing.record import RunInputs

RunInputs.read = lambda options: RunInputs("commit", "files", (), "machine")
folder = Path(sys.argv[1])
def good(line):
    (folder / "good.xml").write_text('<testsuite tests="5"/>')
def slow(line):
    run([sys.executable, "-c", "import time; time.sleep(600)"], log="sleep")
parts = [CheckPart("good", good, folder / "good.xml"), CheckPart("slow", slow, beside=True)]
try:
    run_parts(parts + [CheckPart("other", slow, beside=True)], folder, lanes=2)
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.slow
def test_key_ends_a_run_in_a_terminal_that_shows_the_time_left(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    env = {name: value for name, value in os.environ.items() if name != "CI"} | {"TERM": "xterm", "COLUMNS": "120"}
    words = ["setsid", "--ctty", "--wait", sys.executable, "-c", SCRIPT, str(tmp_path)]
    child = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, cwd=paths.ROOT, env=env)
    os.close(theirs)
    shown, sent, until = b"", False, time.monotonic() + 60
    while time.monotonic() < until:
        try:
            shown += os.read(ours, 65536)
        except OSError:
            break
        if b"running: slow, other" in shown and not sent:
            sent = bool(os.write(ours, b"\x03"))
    os.close(ours)
    assert child.wait(60) == 130
    assert b"1 of 3 suites are done, about " in shown
    assert b"left (an estimate)" in shown
    assert b"This run was ended. 1 of 3 suites passed" in shown
    assert b"begins" not in shown, "one line a suite"
    assert '"good"' in (tmp_path / "record.json").read_text()
