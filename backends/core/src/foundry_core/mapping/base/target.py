"""What every mapping has to know of a device's registers and library."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """A device as far as all mappings ask; the default is one without vectors wider than 16 bytes.

    Attributes:
        vector_bytes: width of a vector register. A wrong one costs time and changes no result.
        llvm_intrinsics: the device's own compiler is LLVM and takes an imported function named like one of LLVM's
            intrinsics for that intrinsic (PoCL does). Its OpenCL `fma` is a call that is never inlined, and a multiply
            and an add are not contracted; the intrinsic is one instruction.
        call_bytes: the widest vectors that the device's library functions are called with. By default those that any
            x86-64 processor passes in registers: PoCL 6 compiles its library as C, and a function that gets a vector
            in memory, as one of 64 bytes without AVX-512 or of 32 without AVX, reads what nobody wrote. opencl.Device
            knows what a device takes, and refuses a kernel with wider calls.
        private_bytes: how much private memory an invocation may have. PoCL keeps it on the stacks of its threads, which
            are 8 MiB by Linux's default; a quarter is left to everything else.
        streaming_bytes: width of the accesses of a loop that does little but move data. vec_add f32, n = 2^25, PoCL 6
            on a Zen 4, in one run: 10.3, 10.5 and 10.6 ms with loops of 16, 32 and 64 bytes, 10.4 for OpenCL C.
    """

    vector_bytes: int = 16
    llvm_intrinsics: bool = False
    call_bytes: int = 16
    private_bytes: int = 6 << 20
    streaming_bytes: int = 16
