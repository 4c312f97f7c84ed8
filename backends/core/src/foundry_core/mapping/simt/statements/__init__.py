"""How operations are written that reach memory, or elements of other invocations."""

from . import atomics, memory, moves, products, records, reductions, scaled  # noqa: F401  they register it
