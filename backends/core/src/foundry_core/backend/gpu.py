"""Triton's own GPU passes, run for a device that Triton does not know: the stage ttgir."""

from __future__ import annotations

from typing import Any

from triton._C.libtriton import amd, ir, passes

from .compiler import run_passes


def make_ttgir(module: Any, metadata: dict[str, Any], *, warps: int, warp_size: int, stages: int) -> Any:
    """Distribute tiles over invocations, move conversions of layouts, and keep operands of tl.dot in workgroup
    memory."""
    names: set[str] = set()
    module.walk(lambda op: names.add(op.get_name()))
    manager = ir.pass_manager(module.context)
    manager.enable_debug()
    # AMD's passes take only AMD's targets. They ask for nothing of it here; NVIDIA's would copy asynchronously.
    passes.ttir.add_convert_to_ttgpuir(manager, "hip:gfx942", warps, warp_size, 1)
    gpu = passes.ttgpuir
    gpu.add_coalesce(manager)
    gpu.add_remove_layout_conversions(manager)
    # Without add_optimize_thread_locality: it takes any update by a reduction in a loop, such as `m = max(m, sum(x))`,
    # for the reduction's own (Triton 3.6 and 3.9).
    gpu.add_optimize_dot_operands(manager, True)
    # The pipeliner of Triton 3.6 fails on an assertion in a loop, and none moves what is printed.
    if stages > 1 and not names & {"tt.assert", "tt.print"}:
        # Loads the next operands into registers while the product of these is computed.
        amd.passes.ttgpuir.add_schedule_loops(manager, stages)
        amd.passes.ttgpuir.add_pipeline(manager, False, False)
        passes.common.add_canonicalizer(manager)
    gpu.add_remove_layout_conversions(manager)
    amd.passes.ttgpuir.add_optimize_epilogue(manager)
    gpu.add_reduce_data_duplication(manager)
    gpu.add_reorder_instructions(manager)
    passes.common.add_cse(manager)
    passes.common.add_symbol_dce(manager)
    passes.common.add_canonicalizer(manager)
    run_passes(manager, module, metadata, "make_ttgir")
    return module
