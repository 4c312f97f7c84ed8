"""Loops get fewer stages than a kernel asks for, and products parts, where workgroup memory is too small."""

from __future__ import annotations

from typing import Any

import pytest
import text_kernels
import triton
from foundry_core.mapping.simt.target import SimtTarget
from triton.compiler.compiler import ASTSource
from triton.runtime.errors import OutOfResources
from triton_spirv_backend.compiler import target

pytestmark = pytest.mark.any_release


def compiled(kib: int, stages: int) -> Any:
    """Compile the product of blocks of 64 x 32 and 32 x 32, which take 13 KiB, for so much workgroup memory."""
    kernel, types, constants, _ = text_kernels.TEXTS["matmul"]
    signature = {each: types.get(each, "constexpr") for each in kernel.arg_names}
    source = ASTSource(kernel, signature, {**constants, "BM": 64, "BN": 32, "BK": 32}, {})
    device = target(SimtTarget(workgroup_bytes=kib << 10))
    return triton.compile(source, target=device, options={"num_warps": 4, "num_stages": stages})


# One tile is in workgroup memory: the next ones are in registers.
@pytest.mark.parametrize(("kib", "asked", "taken"), [(48, 4, 3), (48, 3, 3), (16, 2, 2), (16, 1, 1)])
def test_loop_has_as_many_stages_as_fit(kib: int, asked: int, taken: int) -> None:
    made = compiled(kib, asked)
    assert made.metadata.num_stages == taken
    assert made.metadata.fitted == (f"num_stages={taken} instead of {asked}" if taken < asked else "")
    assert made.metadata.shared <= kib << 10
    # One stage needs no place for it before its loop.
    assert f"memdesc<{'1x' * (taken > 1)}64x32xf32" in made.asm["ttgir"]


def test_product_is_divided_along_k_where_one_stage_does_not_fit() -> None:
    made = compiled(8, 3)
    assert made.metadata.fitted == "num_stages=1 instead of 3, products in 2 parts along K"
    assert made.metadata.shared <= 8 << 10


@pytest.mark.parametrize("stages", [1, 3])
def test_kernel_that_does_not_fit_with_one_stage_in_parts_is_refused(stages: int) -> None:
    with pytest.raises(OutOfResources, match=r"workgroup memory.*text_kernels.py:\d+.*of which the device has 4096"):
        compiled(4, stages)
