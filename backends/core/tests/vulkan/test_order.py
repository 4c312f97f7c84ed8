"""The invocations of a program keep the order of its lines, however many subgroups it has."""

from __future__ import annotations

import numpy as np
import pytest
from foundry_core.tensor import Tensor
from ordered import CASES


@pytest.mark.parametrize("warps", [1, 4, 8])
@pytest.mark.parametrize("name", CASES)
def test_accesses_through_other_offsets_keep_the_order_of_the_lines(name: str, warps: int) -> None:
    x, out, x_expected, out_expected = CASES[name].arrays(3, 512)
    CASES[name].kernel[(3,)](Tensor(x), Tensor(out), BLOCK=512, num_warps=warps)
    np.testing.assert_array_equal(x, x_expected)
    np.testing.assert_array_equal(out, out_expected)
