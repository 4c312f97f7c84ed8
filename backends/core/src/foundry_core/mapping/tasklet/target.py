"""The properties of a DPU that the lowering uses."""

from __future__ import annotations

from dataclasses import dataclass

# Size of a DMA between MRAM and WRAM: at most 2048 bytes and a multiple of 8; both addresses are multiples of 8 (UPMEM
# SDK).
DMA_BYTES = 2048
DMA_ALIGNMENT = 8
# So many tasklets fill a DPU's pipeline: a tasklet issues at most one instruction every 11 cycles (UPMEM SDK; PrIM,
# arXiv 2105.03814).
FULL_PIPELINE = 11


@dataclass(frozen=True)
class TaskletTarget:
    """A DPU whose tasklets each run one program at a time.

    Attributes:
        most_tasklets: tasklets to plan for. A kernel uses fewer if the programs' tiles leave no room for them.
        enough_tasklets: tasklets that fill the pipeline.
        wram_bytes: WRAM of a DPU, in total.
        stack_bytes: the smallest stack of a tasklet; the SDK's default.
        most_stack_bytes: the largest, if the tiles leave room. Indices of many dimensions need more than the default.
        iram_instructions: instructions that a program may have (v1A).
        reserved_bytes: WRAM for the SDK's runtime, the kernel's arguments and the ids of the running programs.
        parts: slices of each program (split.py), a power of 2; None: as many as fill the pipeline.
        shape: the first of the lowering's shapes that is tried (program.py); each makes shorter programs than the one
            before.
    """

    most_tasklets: int = 16
    enough_tasklets: int = FULL_PIPELINE
    wram_bytes: int = 64 << 10
    iram_instructions: int = 4096
    stack_bytes: int = 1024
    most_stack_bytes: int = 2048
    reserved_bytes: int = 4 << 10
    parts: int | None = None
    shape: int = 0

    @property
    def spare_stack_bytes(self) -> int:
        """The smallest stack where a program is split, or where more tasklets than fill the pipeline run.

        On the emulator, whose frames are those of another processor, the kernels of our benchmarks use up to 984 bytes.
        """
        return self.stack_bytes + 64

    def tasklets(self, private_bytes: int, stack_bytes: int) -> int:
        """Return how many tasklets fit with this many bytes of tiles and of stack for each; 0 if none fits."""
        free = self.wram_bytes - self.reserved_bytes
        return min(self.most_tasklets, free // (private_bytes + stack_bytes))

    def stack(self, private_bytes: int, tasklets: int) -> int:
        """Return the size of each tasklet's stack in bytes, a multiple of 8: what the tiles leave, up to a limit."""
        each = (self.wram_bytes - self.reserved_bytes) // tasklets - private_bytes
        return min(self.most_stack_bytes, each) // 8 * 8
