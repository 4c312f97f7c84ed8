"""Which of a launch's arguments a compiled kernel takes, and of what types: read off Triton's source object."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any


class Parameters:
    """What is passed to a kernel: everything but constants, tuples taken apart.

    Args:
        source: Triton's source object; its signature names the type of every parameter, `constexpr` for those that are
            compiled in. Tuples are signatures of their own. 3.2 leaves those out that are declared tl.constexpr, and
            names the type of arguments that it compiles in because they are 1 or None: only its constants, by name,
            tell these (later releases have their constants by position).
        kernel: the kernel's name, for messages.

    Attributes:
        types: Triton's names of the types, in the order in which the kernel takes them.
        names: the Python function's parameters that they belong to.

    Raises:
        NotImplementedError: a tensor descriptor is to be passed.
    """

    def __init__(self, source: Any, kernel: str) -> None:
        named = [(name, leaf) for name, type in source.signature.items() for leaf in _leaves((type,))]
        self._nested = any(isinstance(type, tuple) for type in source.signature.values())
        constants = getattr(source, "constants", {})
        passed = [
            (position, name, type)
            for position, (name, type) in enumerate(named)
            if type != "constexpr" and name not in constants
        ]
        for _, _, type in passed:
            if type.startswith("tensordesc"):
                raise NotImplementedError(
                    f"kernel {kernel} takes a tensor descriptor from the host; pass a pointer, shape and strides, or "
                    "make the descriptor in the kernel with tl.make_tensor_descriptor"
                )
        self._positions = [position for position, _, _ in passed]
        self.names = [str(name) for _, name, _ in passed]
        self.types: list[str] = [type for _, _, type in passed]

    def pick(self, arguments: Sequence[Any]) -> list[Any]:
        """Those arguments of a launch that are passed."""
        values = list(_leaves(arguments)) if self._nested else arguments
        return [values[position] for position in self._positions]


def _leaves(values: Sequence[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, tuple):
            yield from _leaves(value)
        else:
            yield value
