"""What the lowering has to know of a DPU."""

from __future__ import annotations

from dataclasses import dataclass

# Bytes of a DMA between MRAM and WRAM: at most 2048, a multiple of 8, between addresses that are multiples of 8 (UPMEM
# SDK).
DMA_BYTES = 2048
DMA_ALIGNMENT = 8


@dataclass(frozen=True)
class TaskletTarget:
    """A DPU whose tasklets each run one program at a time.

    Attributes:
        most_tasklets: tasklets to plan for. Fewer are used where the programs' tiles leave no room for them.
        enough_tasklets: with how many the pipeline is full: an instruction of a tasklet enters it every 11 cycles at
            most (PrIM, arXiv 2105.03814).
        wram_bytes: of a DPU, for everything.
        stack_bytes: of a tasklet; what the SDK gives by default.
        iram_instructions: room for a program's code (v1A).
        reserved_bytes: of WRAM, for the SDK's runtime, the kernel's arguments and the ids of the running programs.
    """

    most_tasklets: int = 16
    enough_tasklets: int = 11
    wram_bytes: int = 64 << 10
    iram_instructions: int = 4096
    stack_bytes: int = 1024
    reserved_bytes: int = 4 << 10

    def tasklets(self, private_bytes: int) -> int:
        """How many tasklets fit whose programs keep this much of tiles in WRAM; 0 if not even one does."""
        free = self.wram_bytes - self.reserved_bytes
        return min(self.most_tasklets, free // (private_bytes + self.stack_bytes))
