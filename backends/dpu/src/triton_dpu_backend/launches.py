"""Record what launches on DPUs cost: modelled cycles and bytes of each launch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from foundry_core.runtime.launches import LaunchLog


class LineCost(NamedTuple):
    """What a source line cost in a launch in the emulator's model: instructions issued, and cycles of DMA."""

    instructions: int
    dma_cycles: int

    def add(self, other: LineCost) -> LineCost:
        return LineCost(self.instructions + other.instructions, self.dma_cycles + other.dma_cycles)


@dataclass(frozen=True)
class LaunchCost:
    """What one launch of a kernel on DPUs did and cost.

    Attributes:
        kernel: its name.
        programs: number of programs in the grid.
        dpus: number of DPUs that it ran on.
        tasklets: number of tasklets that ran programs, on the DPU with the most.
        parts: slices of a program, each of which one tasklet ran at a time.
        rounds: how many times the DPUs were started.
        sent_bytes, received_bytes: copied between the host and the MRAM of all DPUs.
        seconds: wall time of the launch, transfers included, on this machine.
        cycles: of the slowest DPU, summed over rounds. This field and those below are modelled, never measured. All of
            them are None if the DPUs have no cost model, as with the vendor's SDK.
        instructions: of all DPUs.
        dma_read_bytes, dma_write_bytes: between MRAM and WRAM, of all DPUs.
        dma_transfers: number of transfers of all DPUs.
        dma_cycles: cycles in which the DMA engine was busy, of the DPU with the most, summed over rounds.
        lines: what each source line cost, of all DPUs and rounds; only under foundry_core.profile, on the emulator.
    """

    kernel: str
    programs: int
    dpus: int
    tasklets: int
    parts: int
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
    lines: Mapping[str, LineCost] = field(default_factory=dict)

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
