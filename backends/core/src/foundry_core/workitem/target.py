"""What the lowering has to know of a device."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class WorkItemTarget:
    """A device that runs one program a work-item.

    Attributes:
        vector_bytes: width of a vector register.
        llvm_intrinsics: the device's own compiler is LLVM and takes an imported function named like one of LLVM's
            intrinsics for that intrinsic (PoCL does). Its OpenCL `fma` is a call that is never inlined, and a multiply
            and an add are not contracted; the intrinsic is one instruction.
    """

    vector_bytes: int = 64
    llvm_intrinsics: bool = False
