"""What the mapping must know of a device."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SimtTarget:
    """A device whose workgroups consist of subgroups of invocations.

    Attributes:
        warp_size: the number of invocations in a subgroup: 32 on NVIDIA's GPUs, 8 on lavapipe.
        warps: the number of subgroups that execute one program.
        workgroup_bytes: the workgroup memory that a program may use.
        argument_bytes: how many bytes of arguments a launch can pass.
    """

    warp_size: int = 32
    warps: int = 4
    workgroup_bytes: int = 48 << 10
    argument_bytes: int = 128
