"""Count the tests in JUnit files."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import msgspec

from toolchains.system import foreign
from toolchains.system.errors import FileError

# What reading a JUnit file raises if the file is damaged; any test may have written to it.
DAMAGED = (ElementTree.ParseError, LookupError, ValueError)


class Count(msgspec.Struct):
    """Numbers of tests by outcome."""

    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0

    def add(self, junit: Path) -> int:
        """Add the results of a JUnit file; return how many tests were executed, 0 if the file is missing or damaged."""
        try:
            with foreign.open_file(junit, foreign.TEXT) as text:
                suites = list(ElementTree.parse(text).getroot().iter("testsuite"))
            counts = [
                [int(suite.get(name, "0")) for name in ("tests", "failures", "errors", "skipped")] for suite in suites
            ]
        except (OSError, FileError, *DAMAGED):
            # A run that was interrupted has no tests that can be counted.
            return 0
        for tests, failed, errors, skipped in counts:
            self.merge(Count(tests - failed - errors - skipped, failed, errors, skipped))
        return sum(tests - skipped for tests, _, _, skipped in counts)

    def merge(self, other: Count) -> None:
        """Add the numbers of another count."""
        self.passed += other.passed
        self.failed += other.failed
        self.errors += other.errors
        self.skipped += other.skipped

    @property
    def has_failures(self) -> bool:
        return bool(self.failed or self.errors)

    def __str__(self) -> str:
        """Return the numbers as pytest writes them, such as "1 failed, 5 passed"."""
        words = {"failed": self.failed, "passed": self.passed, "skipped": self.skipped, "errors": self.errors}
        return ", ".join(f"{count} {word}" for word, count in words.items() if count)

    def summary(self, seconds: float) -> str:
        """Return a summary line in pytest's format."""
        return f" {str(self) or 'no tests ran'} in {seconds:.2f}s ".center(100, "=")
