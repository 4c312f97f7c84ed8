"""What makes a function in tasks.py a verb: an invoke task whose errors are read by people and by CI scripts."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from invoke.tasks import task
from rich.console import Console

from .errors import FoundryError


def verb(function: Callable[..., None]) -> Any:
    """Make a task of a function; a FoundryError is printed without a traceback and becomes its own exit status."""

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> None:
        try:
            function(*args, **kwargs)
        except FoundryError as error:
            Console(stderr=True, soft_wrap=True).print(
                f"error: {error}", style="bold red", markup=False, highlight=False
            )
            sys.exit(error.exit_code)

    return task(guarded)
