"""What a program does to its memory is what its lines say, one after the other."""

from __future__ import annotations

import numpy as np
import pytest
from foundry_core.tensor import Tensor
from ordered import CASES


@pytest.mark.parametrize("name", CASES)
def test_accesses_through_other_offsets_keep_the_order_of_the_lines(name: str) -> None:
    x, out, x_expected, out_expected = CASES[name].arrays(3, 512)
    CASES[name].kernel[(3,)](Tensor(x), Tensor(out), BLOCK=512)
    np.testing.assert_array_equal(x, x_expected)
    np.testing.assert_array_equal(out, out_expected)
