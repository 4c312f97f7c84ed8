"""Steps of a build: what is printed of them, and how they run at the same time."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from rich.console import Console

from toolchains.system import children, steps
from toolchains.system.errors import CommandError, PinError
from toolchains.system.steps import side_by_side, step


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    shown = io.StringIO()
    monkeypatch.setattr(steps, "console", Console(file=shown))
    # A step of a busy machine may take a tenth of a second.
    monkeypatch.setattr(steps, "time", SimpleNamespace(monotonic=lambda: 0.0))
    yield shown


def test_seconds_have_the_name_only_if_another_step_began_since(printed: io.StringIO) -> None:
    with step("first"):
        pass
    with step("outer"), step("inner"):
        pass
    lines = [line.rstrip() for line in printed.getvalue().splitlines()]
    assert lines == ["- first", "  0.0 s", "- outer", "- inner", "  0.0 s", "  0.0 s: outer"]


def test_functions_run_at_the_same_time_and_one_where_it_was_called() -> None:
    both = threading.Barrier(2, timeout=60)
    assert side_by_side(lambda: ("first", both.wait())[0], lambda: ("second", both.wait())[0]) == ("first", "second")
    assert side_by_side(threading.current_thread) == (threading.current_thread(),)


def test_a_failure_ends_what_the_others_wait_for_and_is_the_one_that_is_raised() -> None:
    ended: list[CommandError] = []
    started = threading.Event()

    def wait() -> None:
        try:
            children.run(["sh", "-c", "echo started; sleep 600"], log="test-steps", line=lambda _: started.set())
        except CommandError as error:
            ended.append(error)
            raise

    def fail() -> None:
        assert started.wait(60)
        raise PinError("the first failure")

    with pytest.raises(PinError, match="the first failure"):
        side_by_side(wait, fail)
    assert len(ended) == 1


def test_a_failure_ends_what_is_no_child_too() -> None:
    started, ended = threading.Event(), threading.Event()

    def wait() -> None:
        with children.ended_by(ended.set):
            started.set()
            assert ended.wait(60)

    def fail() -> None:
        assert started.wait(60)
        raise PinError("the first failure")

    with pytest.raises(PinError, match="the first failure"):
        side_by_side(wait, fail)
    assert ended.is_set()


def test_a_name_of_a_step_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    with step("[red]x[/] [/] :bug:"):
        pass
    assert "- [red]x[/] [/] :bug:" in capsys.readouterr().err


def test_the_first_error_is_raised_and_not_that_of_what_it_ended() -> None:
    started, gone = threading.Barrier(3), threading.Event()

    def fail() -> None:
        started.wait()
        raise ZeroDivisionError

    def outlive() -> None:
        started.wait()
        assert gone.wait(60)

    def ended() -> None:
        started.wait()
        try:
            children.run(["sleep", "1000"], log="ended")
        finally:
            gone.set()

    with pytest.raises(ZeroDivisionError):
        side_by_side(lambda: side_by_side(fail, outlive), ended)
    with pytest.raises(IndexError):
        side_by_side([].pop, lambda: None)
