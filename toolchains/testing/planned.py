"""A pytest plugin that records which tests were collected and which have ended, each as soon as it is known.

It is copied into the container of the tests, and imports nothing from this project. With pytest-xdist it runs in the
process that runs no tests itself, so that a test that ends its process does not end the record.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# The variable with the path of the file to write.
VARIABLE = "FOUNDRY_PLANNED"


class Planned:
    """Appends a line of JSON with the collected tests, and one line for each test that has ended."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a")
        self._planned = False

    def _write(self, **event: object) -> None:
        print(json.dumps(event), file=self._file, flush=True)
        os.fsync(self._file.fileno())

    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        if not self._planned:
            self._planned = True
            self._write(plan=list(ids))

    def pytest_runtest_logreport(self, report: Any) -> None:
        # A test whose process died has only one report.
        if report.when not in ("setup", "call"):
            self._write(ended=report.nodeid)


def pytest_configure(config: Any) -> None:
    if VARIABLE in os.environ and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Planned(Path(os.environ[VARIABLE])))
