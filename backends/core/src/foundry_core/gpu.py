"""Triton's own GPU passes, run for a device that Triton does not know: the stage ttgir."""

from __future__ import annotations

from typing import Any

from triton._C.libtriton import ir, passes

from .compiling import _RELEASE


def make_ttgir(module: Any, metadata: dict[str, Any], *, warps: int, warp_size: int, stages: int) -> Any:
    """Distribute tiles over invocations, move conversions of layouts, and keep operands of tl.dot in workgroup memory."""
    manager = ir.pass_manager(module.context)
    manager.enable_debug()
    passes.ttir.add_convert_to_ttgpuir(manager, "vulkan:spirv", warps, warp_size, 1)
    gpu = passes.ttgpuir
    gpu.add_coalesce(manager)
    gpu.add_remove_layout_conversions(manager)
    gpu.add_optimize_thread_locality(manager)
    gpu.add_optimize_dot_operands(manager, True)
    gpu.add_remove_layout_conversions(manager)
    gpu.add_reduce_data_duplication(manager)
    gpu.add_reorder_instructions(manager)
    passes.common.add_cse(manager)
    passes.common.add_symbol_dce(manager)
    passes.common.add_canonicalizer(manager)
    manager.run(module, *(("make_ttgir",) if _RELEASE > (3, 2) else ()))
    metadata["shared"] = 0
    return module
