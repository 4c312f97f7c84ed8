"""Pairwise covering: fewer cases than the cross product, and still every value with every other value."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def pairs(possible: Callable[[Mapping[str, Any]], bool] = bool, /, **axes: Sequence[Any]) -> list[dict[str, Any]]:
    """Return choices of one value per axis, such that any two values of different axes meet in at least one choice.

    Two values that are possible in no choice do not meet.

    Args:
        possible: whether values of some axes can be completed to a choice; by default, all can.

    Greedy and deterministic: each choice starts from a pair that has not met yet, then takes, axis by axis, the value
    that makes the most new pairs meet. The number of choices is close to the product of the two longest axes.
    """
    names = list(axes)
    unmet = {
        ((first, i), (second, j)): None  # a dict, because sets of mixed values have no stable order
        for first, second in itertools.combinations(names, 2)
        for i in range(len(axes[first]))
        for j in range(len(axes[second]))
        if possible({first: axes[first][i], second: axes[second][j]})
    }
    choices = []
    while unmet:
        seed = next(iter(unmet))
        chosen = dict(seed)
        for name in names:
            if name not in chosen:
                taken = {other: axes[other][index] for other, index in chosen.items()}
                chosen[name] = max(
                    (i for i in range(len(axes[name])) if possible(taken | {name: axes[name][i]})),
                    key=lambda index: sum(_pair(names, name, index, *other) in unmet for other in chosen.items()),
                )
        for first, second in itertools.combinations(names, 2):
            unmet.pop(((first, chosen[first]), (second, chosen[second])), None)
        choices.append({name: axes[name][chosen[name]] for name in names})
    return choices


def _pair(names: list[str], first: str, i: int, second: str, j: int) -> tuple[tuple[str, int], tuple[str, int]]:
    if names.index(first) < names.index(second):
        return (first, i), (second, j)
    return (second, j), (first, i)
