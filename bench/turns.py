"""Comparable timing: the candidates take turns, so that a change of the machine's speed affects all of them."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

# The most calls of a turn.
_MOST_CALLS = 2000


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


@dataclass(frozen=True)
class Plan:
    """How long to measure.

    Attributes:
        turn: seconds of a turn at least, because clocks and a thread's start take some microseconds.
        seconds: that all turns together take, about.
        least, most: rounds.
        warm: seconds of turns that do not count, after which a GPU has raised its clocks.
    """

    turn: float = 2e-3
    seconds: float = 1.0
    least: int = 7
    most: int = 50
    warm: float = 0.0


class Device:
    """Where candidates run, with its clock and its arrays. This one is the host with NumPy's arrays.

    Attributes:
        refuses: whether the device may refuse a launch option, so that another candidate of the group is chosen.
    """

    refuses = False

    def use(self) -> None:
        """Prepare for calls on this device, where several take turns."""

    def seconds(self, call: Callable[[], Any], calls: int) -> float:
        """Return the mean seconds of one of `calls` calls, which follow an untimed one."""
        _rest()
        call()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        return (time.perf_counter() - start) / calls

    def poison(self, array: Any) -> None:
        """Fill an array with NaN, or with a pattern if its type has none."""
        array.fill(0x55 if array.dtype.kind in "iu" else math.nan)

    def numpy(self, array: Any) -> Any:
        """Return an array's values for NumPy, after all launches."""
        return array

    def compiled(self, returned: Any) -> str:
        """Return what the device's compiler says of a kernel that a call returned."""
        return ""

    def kernels(self, call: Callable[[], Any], seconds: float) -> list[dict[str, Any]]:
        """Return what bounds each kernel that a call launches, as the profile's figures; nothing if it is not known.

        Args:
            seconds: that a call takes.
        """
        return []


HOST = Device()


@dataclass(frozen=True)
class Candidate:
    """A way to do the work of a problem.

    Attributes:
        call: does the work once, and returns when it is done or the device has it.
        device: where.
        output: where the result is written, if that is not the problem's output.
        returns: whether the result is what `call` returns.
    """

    call: Callable[[], Any]
    device: Device = HOST
    output: Any = None
    returns: bool = False


Candidates = Mapping[str, Candidate]


def take_turns(candidates: Candidates, plan: Plan) -> dict[str, Times]:
    """Time candidates in turns, as a plan says."""
    if not candidates:
        return {}
    paced = pace(candidates, plan)
    start = time.perf_counter()
    while time.perf_counter() - start < plan.warm:
        interleaved(candidates, rounds=1, batch=paced["batch"])
    return interleaved(candidates, **paced)


def pace(candidates: Candidates, plan: Plan) -> dict[str, Any]:
    """Return the arguments for `interleaved` with which turns are as long as planned."""
    once = {name: times.min for name, times in interleaved(candidates, rounds=2).items()}
    batch = {name: min(_MOST_CALLS, max(1, math.ceil(plan.turn / took))) for name, took in once.items()}
    # Before each timed turn there is one untimed call.
    turn = sum(took * (1 + batch[name]) for name, took in once.items())
    return {"rounds": min(plan.most, max(plan.least, round(plan.seconds / turn))), "batch": batch}


def interleaved(candidates: Candidates, *, rounds: int, batch: int | Mapping[str, int] = 1) -> dict[str, Times]:
    """Time every candidate `rounds` times, one after the other in each round.

    Each timed turn follows an untimed call of the same candidate, which begins when all threads of this process rest
    (OpenBLAS's spin for some 20 ms). So no candidate is slowed down by the threads of the one before, or by what it
    left in the caches.

    Args:
        candidates: what to time, by name.
        rounds: how many times each is timed.
        batch: number of calls in one timing, for calls too short for the clock, also by name; times are for one call.
    """
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, candidate in candidates.items():
            candidate.device.use()
            calls = batch if isinstance(batch, int) else batch[name]
            seconds[name].append(candidate.device.seconds(candidate.call, calls))
    return {name: Times.of(values) for name, values in seconds.items()}


def _rest() -> None:
    """Wait until no thread of this process works, but not for ever: one that spins always does so in each turn."""
    for _ in range(100):
        used = time.process_time()
        time.sleep(1e-3)
        if time.process_time() - used < 1e-4:
            return


def ratios(label: str, ours: Times, peer: Times) -> dict[str, float]:
    """Return how many times faster ours is than the peer, by the median and by the minimum.

    The median is that of the ratios of single rounds, because both took turns: other work on the machine often lasts
    longer than a round, and then slows both. If other work disturbs the machine, the minima say more about the code,
    and the medians more about the machine's load.
    """
    median = statistics.median(theirs / mine for mine, theirs in zip(ours.turns, peer.turns, strict=True))
    return {f"{label}, median": median, f"{label}, min": peer.min / ours.min}
