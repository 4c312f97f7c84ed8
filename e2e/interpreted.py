"""Check that Triton's interpreter runs kernels here: vec_add and matmul as they are, and a sum and a maximum of rows.

TRITON_INTERPRET=1 python e2e/interpreted.py
"""

from __future__ import annotations

import matmul
import numpy as np
import triton
import triton.language as tl
import vec_add
from foundry_core.tensor import Tensor

# Global arrays: Triton looks at every global of a kernel's module.
ROWS = np.random.default_rng(0).standard_normal((5, 13), np.float32)
SUMS, LARGEST = (np.full(5, np.nan, np.float32) for _ in range(2))


@triton.jit
def reduce_rows(rows, sums, largest, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(rows + row * n + i, mask=i < n, other=float("-inf"))
    tl.store(largest + row, tl.max(x, 0))
    tl.store(sums + row, tl.sum(tl.where(i < n, x, 0.0), 0))


kind = type(reduce_rows).__name__
assert kind == "InterpretedFunction", f"a kernel is a {kind}: set TRITON_INTERPRET=1"
for dtype in ("f32", "f16", "i64"):
    assert vec_add.check(1000, 256, dtype, 1) == 0
assert isinstance(matmul.check((33, 65, 17), "f16->f32", "row", "column", "row", 5, 16, 32, 16, 3), float)
reduce_rows[(5,)](Tensor(ROWS), Tensor(SUMS), Tensor(LARGEST), 13, BLOCK=16)
assert (ROWS.max(1) == LARGEST).all(), LARGEST
exact = ROWS.sum(1, dtype=np.float64)
# 12 additions and the result, each within half a unit in the last place of what is summed.
assert (np.abs(SUMS - exact) <= 13 * 2.0**-24 * np.abs(ROWS).sum(1)).all(), SUMS
print("interpreted: vec_add, matmul, reduce_rows")
