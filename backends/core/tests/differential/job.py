"""What goes to a worker, and what comes back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# Elements before and after each array that belong to nobody: more than what a missing mask overruns.
FENCE = 512
POISON = 0xA5


@dataclass(frozen=True)
class Job:
    """A kernel, and what it is launched on.

    Attributes:
        path: the module; the kernel in it is `kernel`.
        grid: programs along each dimension.
        inputs: arrays to read.
        outputs: dtype and number of elements of each array to write.
        scalars: the arguments after the arrays.
        options: of the launch.
    """

    path: str
    grid: tuple[int, ...]
    inputs: list[Any]
    outputs: list[tuple[Any, int]]
    scalars: list[Any]
    options: dict[str, Any]


@dataclass(frozen=True)
class Done:
    """The bytes of each output with its fences, or what was raised.

    Attributes:
        error: the types' names, from the exception's own to BaseException.
        message: what it says, causes included.
    """

    outputs: list[Any]
    error: tuple[str, ...] = ()
    message: str = ""
