"""What makes a function in tasks.py a verb: an invoke task whose errors are read by people and by CI scripts."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, overload

from invoke.tasks import task
from rich.console import Console

from .errors import FoundryError


@overload
def verb(function: Callable[..., None]) -> Any: ...
@overload
def verb(*, optional: Sequence[str]) -> Callable[[Callable[..., None]], Any]: ...
def verb(function: Callable[..., None] | None = None, *, optional: Sequence[str] = ()) -> Any:
    """Make a task of a function; a FoundryError is printed without a traceback and becomes its own exit status.

    Args:
        optional: names of options that may be given with or without a value.
    """
    if function is None:
        return functools.partial(verb, optional=optional)

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> None:
        # Where a verb takes a target, invoke reads the --help of `invoke build --help` as its name.
        if {"--help", "-h"} & set(kwargs.values()):
            os.execv(sys.argv[0], [sys.argv[0], "--help", function.__name__])
        try:
            function(*args, **kwargs)
        except KeyboardInterrupt:
            sys.exit("interrupted; what was finished is kept, and the same command goes on from there")
        except FoundryError as error:
            Console(stderr=True, soft_wrap=True).print(
                f"error: {error}", style="bold red", markup=False, highlight=False
            )
            sys.exit(error.exit_code)

    return task(optional=optional)(guarded)
