"""An error as the project's users read it: what failed, why, and the next thing to do."""

from __future__ import annotations


class Failure(Exception):
    """What failed, why, and the next thing to do.

    Args:
        what: failed, in one line.
        why: as far as it is known; may have several lines.
        next: a command to type or a thing to change, if there is one.
    """

    def __init__(self, what: str, *, why: str, next: str = "") -> None:
        lines = [what, f"  why:  {why}".replace("\n", "\n        ")]
        if next:
            lines.append(f"  next: {next}")
        super().__init__("\n".join(lines))
