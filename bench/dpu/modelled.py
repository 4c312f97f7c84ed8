"""Modelled cycles of Triton's launches, and the table rows that show them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from measurement import Row
from triton_dpu_backend.launches import LaunchCost, profile

MEGA = 1e6


@dataclass(frozen=True)
class Timed:
    """One way to do the work, its modelled cycles, and the launch if Triton launched it."""

    label: str
    cycles: int
    launch: LaunchCost | None = None


def launched(label: str, call: Callable[[], object]) -> Timed:
    """Return the cost of one launch; `call` must make exactly one launch and check its result.

    Raises:
        RuntimeError: the DPUs do not report the cost of a launch, as with the vendor's SDK.
    """
    with profile() as launches:
        call()
    (launch,) = launches
    if launch.cycles is None:
        raise RuntimeError("these DPUs have no model that says what a launch costs: bench dpu needs the emulator")
    return Timed(label, launch.cycles, launch)


def row(timed: Timed, *, work: float = 0.0, frequency: float = 350e6) -> Row:
    """Return a row of the table; the rate is `work` per modelled second."""
    return Row(timed.label, cycles=timed.cycles, rate=work * frequency / timed.cycles if work else None)


def best(candidates: Iterable[Timed]) -> Timed:
    """Return the candidate with the fewest cycles."""
    return min(candidates, key=lambda timed: timed.cycles)
