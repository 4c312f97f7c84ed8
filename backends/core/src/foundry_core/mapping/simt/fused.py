"""Finds whether a device rounds a fused multiplication and addition once, by trying: Vulkan allows twice."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .spirv.vulkan import ShaderWorkgroup
from .target import SimtTarget


class FusedProbe(NamedTuple):
    """A kernel that replaces the first of three floats, whose address is its only argument, by x y + z of them.

    Attributes:
        module: the binary; its entry point is `probe`.
        argument_bytes: the size of its arguments.
        before, after: the floats before it, and after it if the result is rounded once.
    """

    module: bytes
    argument_bytes: int
    before: bytes
    after: bytes


def fused_probe(lanes: int, width: int) -> FusedProbe:
    """Write the kernel for one subgroup, and floats of 32 or 64 bits."""
    group = ShaderWorkgroup(SimtTarget(lanes, 1))
    group.pointer()
    (base,) = group.begin()
    size = width // 8
    x, y, z = (
        group.load(group.code.binary("arith.addi", base, group.code.integer(at * size, "i64")), f"f{width}", 1, size)[0]
        for at in range(3)
    )
    group.store(base, [group.code.extended_instruction("fma", x, y, z)], size)
    # The square of 1 + e is 1 + 2e + e^2, of which a product that is rounded has no e^2.
    little = 2.0**-12 if width == 32 else 2.0**-27
    floats = np.array([1 + little, 1 + little, -(1 + 2 * little)], f"<f{size}")
    found = np.array([little**2, *floats[1:]], f"<f{size}")
    return FusedProbe(group.finish("probe"), group.argument_bytes, floats.tobytes(), found.tobytes())
