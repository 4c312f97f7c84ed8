"""A pytest plugin for `./foundry test`: which values are checked in an image, and which its target refuses.

It is copied into the container with outcomes.py, rules.toml and refused.toml. A test of a value that is refused, and
that no row of refused.toml names, fails; so does one that passes and that a row names.

Environment: FOUNDRY_VALUES is "all"; "mapping" for all but what the host checks on every mapping, the mark `values`, of
which the first case of each test runs; "some" for the first case of each test; or "few" for the first test of each
file. All cases of tests that are marked each_image run in any case. Without the variable, the plugin does nothing.
Tests of other folders that are marked `values` are chosen in the same way.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Generator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from outcomes import judge, read_rules

VARIABLE = "FOUNDRY_VALUES"
FOLDER = "language"
_ROWS = Path(__file__).with_name("refused.toml")
_EACH_IMAGE, _VALUES = "each_image", "values"


@dataclass(frozen=True)
class Refused:
    """A row of refused.toml: tests that a backend refuses. `*` in a pattern stands for any text.

    Attributes:
        backend: of the target, by Triton's name of it.
        why: the reason.
        operation, type: patterns of what the test's mark `operation` says.
        test: pattern of the file and the test, like "test_dot.py::test_batches*f64*".
    """

    backend: str
    why: str
    operation: str = "*"
    type: str = "*"
    test: str = "*"

    def names(self, backend: str, item: pytest.Item) -> bool:
        about = dict(item.user_properties)
        # fnmatch reads brackets as classes of characters.
        test = f"{item.path.name}::{item.name}".replace("[", "(").replace("]", ")")
        return (
            backend == self.backend
            and fnmatchcase(str(about.get("operation", "")), self.operation)
            and fnmatchcase(str(about.get("type", "")), self.type)
            and fnmatchcase(test, self.test.replace("[", "(").replace("]", ")"))
        )


def read_refused(path: Path = _ROWS) -> tuple[Refused, ...]:
    """Return the rows of a file.

    Raises:
        ValueError: a row names no tests.
    """
    rows = tuple(Refused(**row) for row in tomllib.loads(path.read_text())["refused"])
    for row in rows:
        if row.operation == row.type == row.test == "*":
            raise ValueError(f"{path}: this row names no tests: {row}")
    return rows


class Values:
    """Chooses the cases of an image, and compares refusals with the rows."""

    def __init__(self, which: str) -> None:
        import triton

        self._which = which
        self._backend = triton.runtime.driver.active.get_current_target().backend
        self._rows, self._rules = read_refused(), read_rules()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        seen: set[object] = set()
        left: list[pytest.Item] = []
        for item in items:
            test = item.path if self._which == "few" else (item.path, item.name.partition("[")[0])
            repeats = test in seen and item.get_closest_marker(_EACH_IMAGE) is None
            on_host = item.get_closest_marker(_VALUES) is not None
            is_chosen_by_case = on_host or (_is_of_language(item) and self._which != "mapping")
            if is_chosen_by_case and repeats and self._which != "all":
                left.append(item)
            seen.add(test)
        if left:
            config.hook.pytest_deselected(items=left)
            items[:] = [item for item in items if item not in set(left)]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[Any]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.when != "call" or not _is_of_language(item) or report.skipped:
            return report
        row = next((row for row in self._rows if row.names(self._backend, item)), None)
        if report.passed and row is not None:
            report.outcome = "failed"
            report.longrepr = f"it passes, and conformance/refused.toml says that {self._backend} refuses it: {row}"
        elif report.failed and call.excinfo is not None:
            outcome = judge(call.excinfo.value, self._rules)
            if outcome.outcome == "not applicable" or (outcome.outcome == "refused" and row is not None):
                reason = row.why if row is not None else outcome.reason
                report.outcome, report.longrepr = "skipped", (str(item.path), 0, f"{outcome.outcome}: {reason}")
            elif outcome.outcome == "refused":
                report.sections.append(("refused", "no row of conformance/refused.toml names this test"))
        return report


def _is_of_language(item: pytest.Item) -> bool:
    return item.path.parent.name == FOLDER


def pytest_configure(config: pytest.Config) -> None:
    if which := os.environ.get(VARIABLE):
        config.pluginmanager.register(Values(which))
