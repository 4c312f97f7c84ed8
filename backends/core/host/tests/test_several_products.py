"""Several products in one loop: their values, and how often what they multiply passes through workgroup memory."""

from __future__ import annotations

from foundry_core.mapping.simt.lower import lower_simt

from ..cases import Case, check, decoded, linear
from ..counts import Loop, live_registers, loops
from ..devices import H100, launch_on


def written(case: Case) -> bytes:
    """Return the module of a kernel whose values are right."""
    made = lower_simt(case.kernel(H100.warp_size).ttgir, H100)
    check(case, launch_on(made, H100, case.arguments, case.grid).arrays)
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
    # Q, K, V, the sums and the scores are written once: 64 x 64 elements, 8 at a time.
    assert found.instructions["Workgroup Store"] == 5 * 4
    assert live_registers(module, 32) < 300


def test_few_rows_are_divided_by_columns() -> None:
    found = loop_of(written(decoded()))
    # Of 16 x 32 scores and as many results, a subgroup has a quarter, or as much as a matrix.
    assert found.instructions["CooperativeMatrixMulAdd"] == 2 + 2
