"""Check compile-only mode: Triton's cache has the IR up to the named stage, and nothing was launched.

TRITON_COMPILE_ONLY=ttir python e2e/compile_only.py
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import triton
from foundry_core.tensor import Tensor
from vec_add import add_kernel

wanted = os.environ.get("TRITON_COMPILE_ONLY")
assert wanted, "set TRITON_COMPILE_ONLY to the name of the last stage, such as ttir"
x, output = np.ones(1000, np.float32), np.full(1000, np.nan, np.float32)
kernel = add_kernel[(triton.cdiv(x.size, 256),)](Tensor(x), Tensor(x), Tensor(output), x.size, BLOCK_SIZE=256)
assert np.isnan(output).all(), "the kernel was launched"
cache = Path(os.environ.get("TRITON_CACHE_DIR") or Path.home() / ".triton" / "cache")
found = sorted(cache.rglob(f"add_kernel.{wanted}"))
assert found, f"no add_kernel.{wanted} in {cache}"
assert "tt.func" in kernel.asm["ttir"]
print(f"compiled up to {wanted}, launched nothing: {found[0]}")
