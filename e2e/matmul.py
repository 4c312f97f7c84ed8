"""Matrix multiplication as in Triton's third tutorial: grouped ordering, masked edges, any strides.

Products are summed in f32. A sum of K products in any order and with or without fused multiply-add differs from the
exact one by at most gamma(K) * (|A| |B|), where gamma(K) = K u / (1 - K u) and u = 2^-24 (Higham, Accuracy and
Stability of Numerical Algorithms, 2nd edition, section 3.1). Products of two f16 values are exact in f32, so they keep
this bound. The result is then rounded to C's type, by at most half a unit in the last place. NumPy computes the exact
product in float64; its error, 2^-29 of the allowed one, is neglected. Each element must stay within its own bound.

    python e2e/matmul.py [--only TEXT]
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import triton
import triton.language as tl
from covering import pairs
from foundry_core.tensor import Tensor
from guarded import Guarded
from report import Case, run_script

SHAPES = ((128, 128, 128), (512, 512, 512), (1, 1, 1), (33, 65, 17), (200, 300, 100))
# Its cases run with every release of Triton: they have each value of each other axis that fits.
EACH_RELEASE = (200, 300, 100)
# Types of A and B, and of C.
DTYPES: dict[str, tuple[Any, Any]] = {
    "f32->f32": (np.float32, np.float32),
    "f16->f32": (np.float16, np.float32),
    "f16->f16": (np.float16, np.float16),
}
LAYOUTS = ("row", "column")
BLOCKS = (16, 32, 64, 128)
GROUPS = (1, 3, 8)
# Padding between the rows in elements; 0 makes a matrix contiguous.
PADDINGS = (0, 5)


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
    BLOCK_SIZE_M: tl.constexpr,
    BLOCK_SIZE_N: tl.constexpr,
    BLOCK_SIZE_K: tl.constexpr,
    GROUP_SIZE_M: tl.constexpr,
):
    # Programs are numbered so that a group of GROUP_SIZE_M rows of blocks uses the same columns of B.
    pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BLOCK_SIZE_M)
    num_pid_n = tl.cdiv(N, BLOCK_SIZE_N)
    num_pid_in_group = GROUP_SIZE_M * num_pid_n
    group_id = pid // num_pid_in_group
    first_pid_m = group_id * GROUP_SIZE_M
    group_size_m = min(num_pid_m - first_pid_m, GROUP_SIZE_M)
    pid_m = first_pid_m + ((pid % num_pid_in_group) % group_size_m)
    pid_n = (pid % num_pid_in_group) // group_size_m

    offs_am = (pid_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)) % M
    offs_bn = (pid_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)) % N
    offs_k = tl.arange(0, BLOCK_SIZE_K)
    a_ptrs = a_ptr + (offs_am[:, None] * stride_am + offs_k[None, :] * stride_ak)
    b_ptrs = b_ptr + (offs_k[:, None] * stride_bk + offs_bn[None, :] * stride_bn)

    accumulator = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
    for k in range(tl.cdiv(K, BLOCK_SIZE_K)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BLOCK_SIZE_K, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BLOCK_SIZE_K, other=0.0)
        accumulator = tl.dot(a, b, accumulator)
        a_ptrs += BLOCK_SIZE_K * stride_ak
        b_ptrs += BLOCK_SIZE_K * stride_bk
    c = accumulator.to(c_ptr.dtype.element_ty)

    offs_cm = pid_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    offs_cn = pid_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    c_ptrs = c_ptr + stride_cm * offs_cm[:, None] + stride_cn * offs_cn[None, :]
    c_mask = (offs_cm[:, None] < M) & (offs_cn[None, :] < N)
    tl.store(c_ptrs, c, mask=c_mask)


def launch(
    a: npt.NDArray[Any],
    b: npt.NDArray[Any],
    c: npt.NDArray[Any],
    block: tuple[int, int, int],
    group: int,
    kernel: Any = matmul_kernel,
    **options: Any,
) -> None:
    """Compute C = A B on the device; `block` has the rows and columns of a program, and the depth of a step."""
    (m, k), (_, n) = a.shape, b.shape
    tensors = Tensor(a), Tensor(b), Tensor(c)
    strides = [stride for tensor in tensors for stride in tensor.stride()]
    grid = (triton.cdiv(m, block[0]) * triton.cdiv(n, block[1]),)
    kernel[grid](
        *tensors,
        m,
        n,
        k,
        *strides,
        BLOCK_SIZE_M=block[0],
        BLOCK_SIZE_N=block[1],
        BLOCK_SIZE_K=block[2],
        GROUP_SIZE_M=group,
        **options,
    )


def allowed_error(a: npt.NDArray[Any], b: npt.NDArray[Any], exact: npt.NDArray[Any], dtype: Any) -> npt.NDArray[Any]:
    """Return the bound of the module's docstring for each element of C."""
    unit = 2.0**-24
    depth = a.shape[1]
    bound = depth * unit / (1 - depth * unit) * (np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64))
    if np.dtype(dtype) == np.float32:  # the sum is in f32 already
        return bound
    info = np.finfo(dtype)
    return bound + np.maximum((np.abs(exact) + bound) * info.eps / 2, info.smallest_subnormal / 2)


@functools.cache
def _memory() -> tuple[str, int]:
    driver = triton.runtime.driver.active
    memory = driver.utils.get_device_properties(driver.get_current_device())["max_shared_mem"]
    return driver.get_current_target().backend, memory


def fits(choice: Mapping[str, Any]) -> bool:
    """Return whether the device has memory for a product's tiles, if all axes that are not chosen yet are small.

    A DPU has 64 KiB of WRAM for everything, of which the tiles of A, B and C in f32 may take seven eighths. A GPU keeps
    C in registers, and the tiles of A and B, in their own type, in workgroup memory.
    """
    backend, memory = _memory()
    m, n, k = (choice.get(f"block_{axis}", min(BLOCKS)) for axis in "mnk")
    if backend == "dpu":
        return bool(4 * (m * k + k * n + m * n) <= memory * 7 / 8)
    types = [DTYPES[choice["dtype"]]] if "dtype" in choice else DTYPES.values()
    return bool(min(np.dtype(of).itemsize for of, _ in types) * (m * k + k * n) < memory)


def check(
    shape: tuple[int, int, int],
    dtype: str,
    a_layout: str,
    b_layout: str,
    c_layout: str,
    padding: int,
    block_m: int,
    block_n: int,
    block_k: int,
    group: int,
) -> float:
    """Multiply on the device and compare; return the largest error as a share of its bound."""
    m, n, k = shape
    dtype_in, dtype_out = DTYPES[dtype]
    fence = 128 * (max(shape) + padding)
    a = Guarded((m, k), dtype_in, fence=fence, layout=a_layout, padding=padding)
    b = Guarded((k, n), dtype_in, fence=fence, layout=b_layout, padding=padding)
    c = Guarded((m, n), dtype_out, fence=fence, layout=c_layout, padding=padding)
    random = np.random.default_rng(m * n * k)
    for matrix in (a, b):
        matrix.fill(random.uniform(-1, 1, matrix.array.shape))
    launch(a.array, b.array, c.array, (block_m, block_n, block_k), group)
    c.check_fences("C")
    return check_product(a.array, b.array, c.array)


def check_product(a: npt.NDArray[Any], b: npt.NDArray[Any], c: npt.NDArray[Any]) -> float:
    """Compare C with A B in float64; return the largest error as a share of its bound."""
    exact = a.astype(np.float64) @ b.astype(np.float64)
    allowed = allowed_error(a, b, exact, c.dtype)
    error = np.abs(c.astype(np.float64) - exact)
    right = error <= allowed  # false for NaN, the value of an element that was never stored
    if not right.all():
        row, column = np.argwhere(~right)[0]
        raise AssertionError(
            f"{np.count_nonzero(~right)} of {right.size} elements are wrong; the first is [{row}, {column}]: "
            f"{c[row, column]}, not {exact[row, column]} +- {allowed[row, column]:.3g}"
        )
    return float((error / allowed).max())


def cases() -> Iterator[Case]:
    """Yield cases that cover every pair of a shape, types, layouts, block sizes that fit, and a group size.

    A name like `rcr+` means: A by rows, B by columns, C by rows, padded.
    """
    for choice in pairs(
        fits,
        shape=SHAPES,
        dtype=tuple(DTYPES),
        a_layout=LAYOUTS,
        b_layout=LAYOUTS,
        c_layout=LAYOUTS,
        padding=PADDINGS,
        block_m=BLOCKS,
        block_n=BLOCKS,
        block_k=BLOCKS,
        group=GROUPS,
    ):
        shape = "x".join(map(str, choice["shape"]))
        layouts = "".join(choice[f"{matrix}_layout"][0] for matrix in "abc") + "+" * bool(choice["padding"])
        block = "x".join(str(choice[f"block_{axis}"]) for axis in "mnk")
        yield Case(
            "matmul",
            f"{shape} {choice['dtype']} {layouts} block={block} group={choice['group']}",
            lambda choice=choice: check(**choice),  # type: ignore[misc]
            anywhere=choice["shape"] != EACH_RELEASE,
        )


if __name__ == "__main__":
    run_script("matmul", cases)
