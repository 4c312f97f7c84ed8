"""Matrix multiplication; triton.autotune chooses the blocks by timing: `python matmul.py --size 64`.

The same on OpenCL and on Vulkan: FOUNDRY_SPIRV_API chooses. A GPU wants a large size: 4096.
"""

import argparse

import numpy as np
import triton
import triton.language as tl
from foundry_core import Tensor

BLOCKS = [(16, 32, 16, 2), (32, 32, 32, 4), (64, 64, 16, 4), (128, 64, 16, 4), (128, 128, 16, 8)]


def fitting(configs, arguments, **_):
    """Leave out blocks that are larger than the matrix: compilers take long for them, a CPU's above all."""
    return [config for config in configs if config.kwargs["BN"] <= arguments["M"] // 2] or configs[:1]


@triton.autotune(
    configs=[triton.Config({"BM": bm, "BN": bn, "BK": bk}, num_warps=warps) for bm, bn, bk, warps in BLOCKS],
    key=["M", "N", "K"],
    prune_configs_by={"early_config_prune": fitting},
)
@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        a_mask = (rows[:, None] < M) & (k + depth[None, :] < K)
        b_mask = (k + depth[:, None] < K) & (columns[None, :] < N)
        a = tl.load(a_ptr + rows[:, None] * K + k + depth[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + (k + depth[:, None]) * N + columns[None, :], mask=b_mask, other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], total, mask=mask)


def matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a @ b, in f32."""
    (m, k), n = a.shape, b.shape[1]
    c = np.full((m, n), np.nan, np.float32)
    matmul_kernel[lambda meta: (triton.cdiv(m, meta["BM"]), triton.cdiv(n, meta["BN"]))](
        Tensor(a), Tensor(b), Tensor(c), m, n, k
    )
    return c


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=64, help="rows and columns")
    size = parser.parse_args().size
    a, b = np.random.default_rng(0).standard_normal((2, size, size), np.float32)
    found, exact = matmul(a, b), a.astype(np.float64) @ b
    print(triton.runtime.driver.active.device_report())
    print("best:", matmul_kernel.best_config)
    # Each of K additions in f32 rounds by at most half a unit in the last place of the sum of magnitudes.
    allowed = size * 2.0**-24 * (np.abs(a).astype(np.float64) @ np.abs(b))
    print("largest error, as a part of what f32 allows:", (np.abs(found - exact) / allowed).max())
