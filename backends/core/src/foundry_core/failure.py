"""The base of error messages for the project's users: what failed, why, and the next thing to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class Failure(Exception):
    """An error message with what failed, why, and the next thing to do.

    Args:
        what: what failed, in one line.
        why: the reason, as far as known; may have several lines.
        next: a command to type or a thing to change, if there is one.
    """

    def __init__(self, what: str, *, why: str, next: str = "") -> None:
        lines = [what, f"  why:  {why}".replace("\n", "\n        ")]
        if next:
            lines.append(f"  next: {next}")
        super().__init__("\n".join(lines))


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the known name that is nearest to a mistyped one, in whatever case; "" if none is near."""
    lower = {name.lower(): name for name in known}
    return next((lower[found] for found in difflib.get_close_matches(word.lower(), lower, 1)), "")
