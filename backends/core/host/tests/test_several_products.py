"""Several products in one loop: their values, and how often what they multiply passes through workgroup memory."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from foundry_core.front.structured import kernel
from foundry_core.ir import tt
from foundry_core.ir.parse import parse
from foundry_core.mapping.simt.lower import lower_simt
from foundry_core.mapping.simt.matrices.plan import plan_cooperative
from xdsl.dialects import scf

from ..cases import Case, check, decoded, linear
from ..counts import Loop, live_registers, loops
from ..devices import SECRET, launch_on


def written(case: Case, ttgir: str = "") -> bytes:
    """Return the module of a kernel whose values are right, where nobody knows how matrices are arranged.

    Args:
        ttgir: another text of the kernel.
    """
    made = lower_simt(ttgir or case.kernel(SECRET.warp_size).ttgir, SECRET)
    check(case, launch_on(made, SECRET, case.arguments, case.grid).arrays)
    return made.module


def loop_of(module: bytes) -> Loop:
    """Return the loop with the products; a pipelined one has the last iteration behind it."""
    (found,) = [each for each in loops(module) if each.instructions["CooperativeMatrixMulAdd"]]
    return found


def test_products_that_share_a_factor_divide_it_alike() -> None:
    module = written(linear())
    found = loop_of(module)
    # A subgroup has 16 of 64 rows of each.
    assert found.instructions["CooperativeMatrixMulAdd"] == 4 * 16
    # Q, K, V and the scores are written once: 64 x 64 elements, 8 at a time.
    assert found.instructions["Workgroup Store"] == 4 * 4


def test_products_read_factors_when_they_multiply() -> None:
    module = written(linear())
    assert loop_of(module).instructions["CooperativeMatrixLoad"] == 4 * (4 + 16)
    # Three factors of 64 x 64 elements would take 16 or 64 registers each.
    assert live_registers(module, 32) < 150


def test_tile_keeps_its_memory_until_all_products_have_read_it() -> None:
    case = linear()
    # Behind a barrier, memory that nothing has accessed since is taken first.
    text, count = re.subn(r"(?=%result\w* = ttg.local_alloc)", "gpu.barrier\n", case.kernel(SECRET.warp_size).ttgir)
    assert count == 2
    written(case, text)


@pytest.mark.parametrize("columns", [False, True])
def test_sums_are_written_to_workgroup_memory_as_matrices(columns: bool) -> None:
    case, (layout, other) = linear(), ("#shared, #smem>", "#shared1, #smem>")
    text, count = re.subn(
        rf"(local_(?:alloc|load) %result.*memdesc<64x64xf16, ){layout}",
        rf"\g<1>{other if columns else layout}",
        case.kernel(SECRET.warp_size).ttgir,
    )
    assert count == 4
    found = loop_of(written(case, text)).instructions
    # Each subgroup has four matrices of the sums, the scores and the result, of which the last two become registers.
    assert found["CooperativeMatrixStore"] == 3 * 4 and found["Workgroup Load"] == 8 + 4 + 4


# After the iteration before, after what was loaded, after the sums, and around the result. For the scores of few rows,
# for weights, and for what scales the result; after keys, and after values.
@pytest.mark.parametrize(("case", "count"), [(linear, 5), (decoded, 4)])
def test_barrier_is_written_only_between_accesses_of_the_same_memory(case: Callable[[], Case], count: int) -> None:
    assert loop_of(written(case())).barriers == count


def test_sums_are_made_where_what_is_summed_is_made() -> None:
    function = kernel(parse(decoded().kernel(SECRET.warp_size).ttgir))
    (block,) = [op.body.block for op in function.walk() if isinstance(op, scf.ForOp)]
    *_, total = [op for op in block.ops if isinstance(op, tt.ReduceOp)]
    *_, product = [op for op in block.ops if isinstance(op, tt.DotOp)]
    # Where Triton moves them.
    for op in (*(use.operation for use in total.results[0].uses), total):
        block.detach_op(op)
        block.insert_op_after(op, product)
    plan_cooperative(function, SECRET)
    assert total.is_before_in_block(product)


def test_few_rows_are_divided_by_columns() -> None:
    found = loop_of(written(decoded()))
    # Of 16 x 32 scores and as many results, a subgroup has a quarter, or as much as a matrix.
    assert found.instructions["CooperativeMatrixMulAdd"] == 2 + 2
