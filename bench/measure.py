"""Comparable timing: the candidates take turns, so that a change of the machine's speed affects all of them."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Times:
    """Wall-clock times of one candidate, in seconds.

    Attributes:
        turns: the time of each turn, if it took turns with others.
    """

    min: float
    median: float
    runs: int
    turns: tuple[float, ...] = ()

    @staticmethod
    def of(seconds: list[float]) -> Times:
        """Return the summary of single runs."""
        return Times(min(seconds), statistics.median(seconds), len(seconds), tuple(seconds))


# A turn takes at least this many seconds, because the clock and a thread's start take some microseconds.
_TURN = 2e-3
_LEAST_ROUNDS, _MOST_ROUNDS = 7, 50


def pace(candidates: Mapping[str, Callable[[], object]], seconds: float) -> dict[str, Any]:
    """Return the arguments for `interleaved` with which all turns together take about `seconds`."""
    once = {name: times.min for name, times in interleaved(candidates, rounds=2).items()}
    batch = {name: max(1, math.ceil(_TURN / took)) for name, took in once.items()}
    # Before each timed turn there is one untimed call.
    turn = sum(took * (1 + batch[name]) for name, took in once.items())
    return {"rounds": min(_MOST_ROUNDS, max(_LEAST_ROUNDS, round(seconds / turn))), "batch": batch}


def interleaved(
    candidates: Mapping[str, Callable[[], object]], *, rounds: int, batch: int | Mapping[str, int] = 1
) -> dict[str, Times]:
    """Time every candidate `rounds` times, one after the other in each round.

    Each timed turn follows an untimed turn of the same candidate, which begins when all threads of this process rest
    (OpenBLAS's spin for some 20 ms). So nobody is slowed down by the threads of the candidate before, or by what it
    left in the caches.

    Args:
        candidates: what to time, by name; each returns when its work is done.
        rounds: how many times each is timed.
        batch: number of calls in one timing, for calls too short for the clock, also by name; times are for one call.
    """
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, candidate in candidates.items():
            calls = batch if isinstance(batch, int) else batch[name]
            _rest()
            candidate()
            start = time.perf_counter()
            for _ in range(calls):
                candidate()
            seconds[name].append((time.perf_counter() - start) / calls)
    return {name: Times.of(values) for name, values in seconds.items()}


def _rest() -> None:
    """Wait until no thread of this process works, but not for ever: one that spins always does so in each turn."""
    for _ in range(100):
        used = time.process_time()
        time.sleep(1e-3)
        if time.process_time() - used < 1e-4:
            return


def ratios(label: str, ours: list[Times], peers: list[Times]) -> dict[str, float]:
    """Return how many times faster our best candidate is than the best peer, by medians and by minima.

    The median is that of the ratios of single rounds, if both candidates took turns: other work on the machine often
    lasts longer than a round, and then slows both. If other work disturbs the machine, the minima say more about the
    code, and the medians more about the machine's load.
    """
    found = {
        f"{label}, {name}": min(getattr(times, name) for times in peers) / min(getattr(times, name) for times in ours)
        for name in ("median", "min")
    }
    our, peer = (min(times, key=lambda each: each.median).turns for times in (ours, peers))
    if our and len(our) == len(peer):
        found[f"{label}, median"] = statistics.median(y / x for x, y in zip(our, peer, strict=True))
    return found
