"""What a program does to its memory is what its lines say, one after the other."""

from __future__ import annotations

import numpy as np
import pytest
import triton
from foundry_core.checked.findings import CheckError
from foundry_core.tensor import Tensor
from ordered import CASES

BACKEND = triton.runtime.driver.active.get_current_target().backend


@pytest.mark.parametrize("name", CASES)
def test_accesses_through_other_offsets_keep_the_order_of_the_lines(name: str) -> None:
    x, out, x_expected, out_expected = CASES[name].arrays(3, 512)
    CASES[name].kernel[(3,)](Tensor(x), Tensor(out), BLOCK=512)
    np.testing.assert_array_equal(x, x_expected)
    np.testing.assert_array_equal(out, out_expected)


@pytest.mark.skipif(BACKEND == "dpu", reason="a DPU has no room to compare the order of accesses")
@pytest.mark.parametrize("name", ["one_hot", "stored_then_added", "rows_turned_in_place", "prefix_in_branches"])
def test_checked_mode_reports_accesses_that_cuda_does_not_order(name: str) -> None:
    x, out, x_expected, out_expected = CASES[name].arrays(2, 128)
    with pytest.raises(CheckError) as raised:
        CASES[name].kernel[(2,)](Tensor(x), Tensor(out), BLOCK=128, check=True)
    assert {finding.kind for finding in raised.value.findings} == {"unordered"}
    np.testing.assert_array_equal(x, x_expected)
    np.testing.assert_array_equal(out, out_expected)
