"""Modelled cycles of Triton's launches, and rows that show them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from measurement import Row
from triton_dpu_backend.launches import LaunchCost, profile

MEGA = 1e6


@dataclass(frozen=True)
class Timed:
    """One way to do the work, its modelled cycles, and the launch if it is Triton's."""

    label: str
    cycles: int
    launch: LaunchCost | None = None


def launched(label: str, call: Callable[[], object]) -> Timed:
    """What one launch costs; `call` makes exactly one and checks its result.

    Raises:
        RuntimeError: the DPUs do not say what a launch cost, as with the vendor's SDK.
    """
    with profile() as launches:
        call()
    (launch,) = launches
    if launch.cycles is None:
        raise RuntimeError("these DPUs have no model that says what a launch costs: bench dpu needs the emulator")
    return Timed(label, launch.cycles, launch)


def row(timed: Timed, *, work: float = 0.0, frequency: float = 350e6) -> Row:
    """A row of the table; the rate is `work` a modelled second."""
    return Row(timed.label, cycles=timed.cycles, rate=work * frequency / timed.cycles if work else None)


def best(candidates: Iterable[Timed]) -> Timed:
    """The one with the fewest cycles."""
    return min(candidates, key=lambda timed: timed.cycles)
