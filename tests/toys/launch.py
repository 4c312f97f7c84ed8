"""Launches one kernel on whichever backend Triton chooses, and says as JSON what became of it."""

import json
import os
from pathlib import Path

import numpy as np
import triton
import triton.language as tl
from foundry_core.tensor import Tensor


@triton.jit
def double(source, result, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(result + offsets, tl.load(source + offsets, mask=offsets < n) * 2, mask=offsets < n)


source, result = np.ones(10, np.float32), np.full(10, -1, np.float32)
kernel = double[(1,)](Tensor(source), Tensor(result), 10, BLOCK=16)
kernel[(1, 1, 1)](Tensor(source), Tensor(result), 10)
print(
    json.dumps(
        {
            "backend": triton.runtime.driver.active.get_current_target().backend,
            "version": triton.__version__,
            "result": sorted(set(result.tolist())),
            "cached": sorted(path.suffix for path in Path(os.environ["TRITON_CACHE_DIR"]).rglob("double.*")),
        }
    )
)
