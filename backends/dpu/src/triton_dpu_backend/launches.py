"""What launches on DPUs cost: modelled cycles and bytes of each."""

from __future__ import annotations

from dataclasses import dataclass

from foundry_core.launches import LaunchLog


@dataclass(frozen=True)
class LaunchCost:
    """What one launch of a kernel on DPUs did and cost.

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


_log: LaunchLog[LaunchCost] = LaunchLog()
last, note, profile = _log.last, _log.note, _log.profile
