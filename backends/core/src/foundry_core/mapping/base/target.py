"""The properties of a device that the mappings to work-items, work-groups and tasklets use."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """The properties that all mappings use. The default is a device with vectors of at most 16 bytes.

    Attributes:
        vector_bytes: width of a vector register. A wrong value costs time and changes no result.
        llvm_intrinsics: true if the device's own compiler is LLVM and treats an imported function with the name of an
            LLVM intrinsic as that intrinsic (PoCL does). PoCL's OpenCL `fma` is a call that is never inlined, and it
            does not contract a multiply and an add; the intrinsic is one instruction.
        call_bytes: the widest vectors that the device's library functions are called with. The default is what any
            x86-64 processor passes in registers. PoCL 6 compiles its library as C, and a function that receives a
            vector in memory (64 bytes without AVX-512, 32 without AVX) reads memory that nobody wrote.
            opencl.OpenCLDevice knows the limit of a device, and refuses a kernel with wider calls.
        private_bytes: private memory that an invocation may use. PoCL keeps it on the stacks of its threads, which have
            8 MiB by Linux's default; a quarter is left for everything else.
        streaming_bytes: width of the accesses of a loop that mainly moves data. vec_add f32, n = 2^25, PoCL 6 on a Zen
            4, in one run: 10.3, 10.5 and 10.6 ms with loops of 16, 32 and 64 bytes, 10.4 for OpenCL C.
        converts_f16: true if the device has x86's F16C, and llvm_intrinsics. A conversion is then one instruction
            instead of a dozen.
        vector_registers: their number, for tl.dot. A wrong value costs time and changes no result.
    """

    vector_bytes: int = 16
    llvm_intrinsics: bool = False
    call_bytes: int = 16
    private_bytes: int = 6 << 20
    streaming_bytes: int = 16
    vector_registers: int = 16
    converts_f16: bool = False


@dataclass(frozen=True)
class WorkItemTarget(Target):
    """A device on which one work-item executes each program."""


@dataclass(frozen=True)
class WorkGroupTarget(WorkItemTarget):
    """A device on which a work-group executes each program.

    Attributes:
        work_items: work-items per program.
        local_bytes: memory that they may share (CL_DEVICE_LOCAL_MEM_SIZE; 1 MiB on PoCL 6 here).
    """

    work_items: int = 128
    local_bytes: int = 1 << 20


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
        parts: slices of each program (tasklet/split.py), a power of 2; None: as many as fill the pipeline.
        shape: the first of the lowering's shapes that is tried (tasklet/program.py); each makes shorter programs than
            the one before.
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
