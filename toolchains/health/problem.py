"""One thing that is wrong or suspicious."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong or suspicious.

    Attributes:
        what: what is wrong.
        why: how it shows, or what follows from it.
        next: the command or the action that fixes it.
        fatal: whether something will fail; other findings are notices.
        fix: fixes it, and returns what it did; None if only the user can. Nothing that it removes is lost for good: it
            is fetched, built or compiled again.
    """

    what: str
    why: str = ""
    next: str = ""
    fatal: bool = True
    fix: Callable[[], str] | None = None
