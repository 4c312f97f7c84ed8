"""Say what each target's kernels are drawn from, and how a target may refuse one."""

from __future__ import annotations

from .drawing import Limits

LIMITS = {
    "spirv": Limits(),
    # The function of a scan must be associative.
    "spirv-vulkan": Limits(without=frozenset({"scan"})),
    "vsi": Limits(
        # tl.dot takes blocks of at least 16 x 16 x 8.
        without=frozenset({"f64", "atomic64", "dot"}),
        options=({"num_warps": 1}, {"num_warps": 1, "enable_multi_threads": True}),
    ),
    # A program has at most 4096 instructions, and an operation on floats calls a software function.
    "dpu": Limits(sections=2, steps=8),
}
# Limits of each target: the messages are in docs/troubleshooting.md, the limits in docs/limits.md.
REFUSALS: dict[str, tuple[str, ...]] = {
    "dpu": (
        r"keeps \d+ bytes of tiles in WRAM",
        "the program does not fit into IRAM",
    ),
}
