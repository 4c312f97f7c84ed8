"""C = A B in float32; on torch tensors of device vsi where vpex is, else on NumPy arrays.

    python matmul.py [--size=256] [--device=vsi|numpy]

VSI_ENABLE_TC=1 sends tl.dot to the tensor core, VSI_ENABLE_MULTI_THREADS=1 spreads a program over 128 work-items.
"""

import argparse
import importlib.util
import os

import numpy as np
import triton
import triton.language as tl
import triton_vsi_backend  # noqa: F401  Triton before 3.3 knows no plugins
from foundry_core import Tensor

BLOCKS = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32}


@triton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * stride_am + inner[None, :] * stride_ak
    b_ptrs = b_ptr + inner[:, None] * stride_bk + columns[None, :] * stride_bn
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(tl.cdiv(K, BLOCK_K)):
        left = K - k * BLOCK_K
        a = tl.load(a_ptrs, mask=(rows[:, None] < M) & (inner[None, :] < left), other=0.0)
        b = tl.load(b_ptrs, mask=(inner[:, None] < left) & (columns[None, :] < N), other=0.0)
        sums = tl.dot(a, b, sums)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    c_ptrs = c_ptr + rows[:, None] * stride_cm + columns[None, :] * stride_cn
    tl.store(c_ptrs, sums, mask=(rows[:, None] < M) & (columns[None, :] < N))


def launch(a, b, c) -> None:
    """c = a b, of tensors with `shape` and `stride`."""
    (M, K), N = a.shape, b.shape[1]
    grid = (triton.cdiv(M, BLOCKS["BLOCK_M"]), triton.cdiv(N, BLOCKS["BLOCK_N"]))
    strides = [tensor.stride(axis) for tensor in (a, b, c) for axis in (0, 1)]
    matmul_kernel[grid](a, b, c, M, N, K, *strides, **BLOCKS)


def on_numpy(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    c = np.full((a.shape[0], b.shape[1]), np.nan, np.float32)
    launch(Tensor(a), Tensor(b), Tensor(c))
    return c


def on_torch(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The same by way of tensors on device vsi."""
    import torch
    import vpex  # noqa: F401  makes torch.vsi

    c = torch.full((a.shape[0], b.shape[1]), float("nan")).to("vsi")
    launch(torch.from_numpy(a).to("vsi"), torch.from_numpy(b).to("vsi"), c)
    return c.cpu().numpy()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--size", type=int, default=256)
    arguments.add_argument("--device", choices=("vsi", "numpy"))
    given = arguments.parse_args()
    device = given.device or ("vsi" if importlib.util.find_spec("vpex") else "numpy")
    a, b = np.random.default_rng(0).standard_normal((2, given.size, given.size)).astype(np.float32)
    c = (on_torch if device == "vsi" else on_numpy)(a, b)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    # A sum of K products is off by K roundings of the sum of their magnitudes, at most (Higham, 3.1).
    allowed = given.size * 2.0**-24 * (np.abs(a).astype(np.float64) @ np.abs(b))
    share = (np.abs(c - exact) / allowed).max()
    assert share <= 1, f"wrong by {share} times what rounding explains"
    switches = [name for name in os.environ if name.startswith("VSI_ENABLE_") and os.environ[name] == "1"]
    print(f"{given.size} x {given.size} on {device}, {', '.join(switches) or 'no switches'}:", end=" ")
    print(f"off by {np.abs(c - exact).max():.2g} from NumPy in float64, {share:.2g} of what rounding explains")
    print(triton.runtime.driver.active.device_report())


if __name__ == "__main__":
    main()
