"""The job for a worker, and its result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# Elements before and after each array that no kernel may access: more than a missing mask would overrun.
FENCE = 512
POISON = 0xA5


@dataclass(frozen=True)
class Job:
    """A kernel, and the arguments of its launch.

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
    """The bytes of each output with its fences, or the exception.

    Attributes:
        error: names of the exception's type and its bases, up to BaseException.
        message: the exception's message, causes included.
    """

    outputs: list[Any]
    error: tuple[str, ...] = ()
    message: str = ""
