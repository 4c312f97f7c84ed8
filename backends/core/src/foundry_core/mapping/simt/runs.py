"""Which registers one access reads or writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...emit.mlir import Reg
from .code import Code


def runs(code: Code, addresses: Sequence[Reg], others: Sequence[object], size: int, widest: int) -> Iterator[list[int]]:
    """Divide registers into accesses: registers of neighbouring elements, as many as their alignment allows.

    Args:
        addresses: an address, or an index, for each register.
        others: what the registers of one access must have in common.
        size: the distance of neighbours.
        widest: the most registers of one access.
    """
    parts = []
    for place in addresses:
        known = code.value(place)
        parts.append(code.parts(place) if known is None else (code.integer(0, place.elem), known))
    order = sorted(range(len(addresses)), key=lambda k: (parts[k][0].name, parts[k][1]))
    at = 0
    while at < len(order):
        base, step = parts[order[at]]
        run = 1
        while run < widest:
            more = order[at + run : at + 2 * run]
            fits = len(more) == run and code.multiple(addresses[order[at]]) % (2 * run * size) == 0
            expected = [(base, step + (run + k) * size) for k in range(run)]
            if not fits or [parts[k] for k in more] != expected or any(others[k] != others[order[at]] for k in more):
                break
            run *= 2
        yield order[at : at + run]
        at += run
