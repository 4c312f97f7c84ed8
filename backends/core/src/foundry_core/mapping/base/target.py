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
