"""What launches cost: modelled cycles and bytes of each, for whoever asks with `profile`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel on DPUs.

    Attributes:
        kernel: its name.
        programs: in the grid.
        dpus: on how many it ran.
        tasklets: on each of them.
        rounds: how often the DPUs were started.
        sent_bytes, received_bytes: between the host and all DPUs' MRAM.
        seconds: wall time of the launch, transfers included, on this machine.
        cycles: of the slowest DPU, summed over rounds. This and what follows is modelled, never measured; all of it is
            None where the DPUs have no model to ask, as with the vendor's SDK.
        instructions: of all DPUs.
        dma_read_bytes, dma_write_bytes: between MRAM and WRAM, of all DPUs.
        dma_transfers: how many, of all DPUs.
        dma_cycles: in which the DMA engine was busy, of the DPU where it was most, summed over rounds.
    """

    kernel: str
    programs: int
    dpus: int
    tasklets: int
    rounds: int
    sent_bytes: int
    received_bytes: int
    seconds: float
    cycles: int | None
    instructions: int | None
    dma_read_bytes: int | None
    dma_write_bytes: int | None
    dma_transfers: int | None
    dma_cycles: int | None

    def __str__(self) -> str:
        place = f"{self.kernel}: {self.programs} programs on {self.dpus} DPUs x {self.tasklets} tasklets"
        moved = f"{self.sent_bytes} bytes sent, {self.received_bytes} received"
        if self.cycles is None:
            return f"{place}, {self.rounds} rounds, {moved}"
        return (
            f"{place}, {self.rounds} rounds, {moved}; modelled: {self.cycles} cycles, "
            f"{self.dma_read_bytes} bytes read and {self.dma_write_bytes} written by DMA"
        )


_listeners: list[list[Launch]] = []
_last: Launch | None = None


def last() -> Launch | None:
    """The launch that finished last; None before the first."""
    return _last


def note(launch: Launch) -> None:
    """Tell everyone who profiles."""
    global _last
    _last = launch
    for listener in _listeners:
        listener.append(launch)


@contextmanager
def profile() -> Iterator[list[Launch]]:
    """The launches made inside the `with`, in their order, from any thread.

    with triton_dpu_backend.profile() as launches:
        kernel[grid](...)
    launches[0].cycles
    """
    launches: list[Launch] = []
    _listeners.append(launches)
    try:
        yield launches
    finally:
        # By identity: two that have seen the same launches are equal.
        _listeners[:] = [listener for listener in _listeners if listener is not launches]
