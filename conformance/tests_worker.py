"""A worker that runs tests with pytest: it lists the tests, then runs each one that it is told to run.

The tests of each file are collected in a child process, because a file may end the process that imports it. A file that
cannot be imported counts as one test with the name COLLECTION, whose result has the reason.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import device_fixtures
import pytest
from _pytest.runner import runtestprotocol
from outcomes import COLLECTION, Outcome, judge, read_rules
from report import Case, Channel
from supervise import LIST

# Maximum number of characters of an error's text; its end is kept, because it has the message.
_KEPT = 8000


def serve(suite: str) -> int:
    """Answer on standard output until standard input ends, and return pytest's exit status.

    Args:
        suite: a folder with tests, or a file.
    """
    channel = Channel()
    root = suite if Path(suite).is_dir() else str(Path(suite).parent)
    options = [f"--rootdir={root}", "-o", "addopts=", "-p", "no:cacheprovider", "-p", "no:terminal", suite]
    status = pytest.main(options, plugins=[device_fixtures, Session(channel, suite)])
    # The process that owns the results judges failed tests and an empty suite.
    fine = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
    return 0 if status in fine else int(status)


class Session:
    """A pytest plugin that answers requests, where pytest would run all tests one after the other."""

    def __init__(self, channel: Channel, suite: str) -> None:
        self._channel = channel
        self._suite = Path(suite)
        self._rules = read_rules()
        self._known: dict[str, tuple[dict[str, pytest.Item], Outcome | None]] = {}
        # The last exception in a test or in importing a file, and the reason if a file was skipped.
        self._error: BaseException | None = None
        self._skipped = ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> bool:
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        def find(file: str, name: str) -> Callable[[], Mapping[str, Any]]:
            if file not in self._known:
                self._known[file] = self._collect(session, file)
            items, trouble = self._known[file]
            if name in items:
                return lambda: self._run(items[name])
            missing = trouble or Outcome("error", "it was there when the tests were listed, and is not any more")
            return lambda: _result(0.0, missing, missing.reason)

        listed = list(self._list(session)) if LIST in sys.argv[1:] else []
        self._channel.serve([Case(file, name, lambda: None) for file, name in listed], find)
        return True

    def pytest_exception_interact(self, call: pytest.CallInfo[Any]) -> None:
        assert call.excinfo is not None
        self._error = call.excinfo.value

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self._skipped = _skip_reason(report)

    def _files(self, session: pytest.Session) -> list[str]:
        """Return the names of the files with tests, relative to pytest's root."""
        patterns = session.config.getini("python_files")
        root = session.config.rootpath
        if self._suite.is_file():
            return [self._suite.relative_to(root).as_posix()]
        found = {path for pattern in patterns for path in self._suite.rglob(pattern) if path.is_file()}
        return sorted(path.relative_to(root).as_posix() for path in found)

    def _collect(self, session: pytest.Session, file: str) -> tuple[dict[str, pytest.Item], Outcome | None]:
        """Return a file's tests by name, and the error that concerns the file as a whole."""
        self._error, self._skipped = None, ""
        found = session.perform_collect([str(session.config.rootpath / file)])
        items = {item.nodeid.partition("::")[2]: item for item in found if isinstance(item, pytest.Item)}
        if self._error is not None:
            return items, judge(self._error, self._rules)
        return items, Outcome("not applicable", self._skipped) if self._skipped else None

    def _list(self, session: pytest.Session) -> Iterator[tuple[str, str]]:
        def names(file: str) -> list[str]:
            items, trouble = self._collect(session, file)
            return [*items, *([COLLECTION] if trouble else [])]

        files = self._files(session)
        # Imported here once, and not in the child of each file.
        with suppress(Exception):
            import triton  # noqa: F401

            if any(b"torch" in (session.config.rootpath / file).read_bytes() for file in files):
                import torch  # noqa: F401
        # A file whose import takes longer is reported as a time-out.
        limit = float(sys.argv[sys.argv.index(LIST) + 1]) / 2
        for file in files:
            self._channel.say_listing(file)
            for name in _in_child(partial(names, file), limit):
                yield file, name

    def _run(self, item: pytest.Item) -> dict[str, Any]:
        start = time.perf_counter()
        self._error = None
        reports = runtestprotocol(item, log=False, nextitem=None)
        seconds = time.perf_counter() - start
        bad = next((report for report in reports if report.failed), None)
        if bad is not None:
            outcome = judge(self._error, self._rules) if self._error else Outcome("error", "it failed without an error")
            text = "\n".join([bad.longreprtext, bad.capstdout, bad.capstderr]).strip()
            return _result(seconds, outcome, text, dict(item.user_properties))
        if skipped := next((report for report in reports if report.skipped), None):
            return _result(seconds, Outcome("not applicable", _skip_reason(skipped)), "", dict(item.user_properties))
        return _result(seconds, Outcome("pass"), "", dict(item.user_properties))


def _result(
    seconds: float, outcome: Outcome, text: str, properties: Mapping[str, object] | None = None
) -> dict[str, Any]:
    failed = outcome.outcome in ("wrong", "error")
    return {
        "seconds": seconds,
        "error": None,
        "modelled": None,
        "failure": (text[-_KEPT:] or outcome.reason) if failed else None,
        "outcome": outcome.outcome,
        "reason": outcome.reason,
        "why": outcome.why,
        # What the suite says of the test: conformance/language says which operation and type it is about.
        "properties": properties or {},
    }


def _skip_reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    if hasattr(report, "wasxfail"):
        return f"the test expects to fail: {report.wasxfail or 'it does not say why'}"
    why = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return f"the test skips: {why.removeprefix('Skipped: ')}"


def _in_child(work: Callable[[], list[str]], limit: float) -> list[str]:
    """Return what a function returns in a forked child; [COLLECTION] if it raises, dies or takes `limit` seconds."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            found = work()
            with os.fdopen(writer, "w") as file:
                json.dump(found, file)
        finally:
            # The parent's cleanup must not run a second time.
            os._exit(0)
    os.close(writer)
    text, end = b"", time.monotonic() + limit
    while select.select([reader], [], [], max(0.0, end - time.monotonic()))[0]:
        chunk = os.read(reader, 65536)
        if not chunk:
            break
        text += chunk
    os.close(reader)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    try:
        answer = json.loads(text)
    except ValueError:
        answer = None
    return answer if isinstance(answer, list) else [COLLECTION]
