"""Vector addition with NumPy arrays: the least that a program needs. The same on OpenCL and on Vulkan."""

import numpy as np
import triton
import triton.language as tl
from foundry_core import Tensor


@triton.jit
def add_kernel(x_ptr, y_ptr, output_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(output_ptr + offsets, x + y, mask=mask)


def add(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x + y, one program for each 1024 elements."""
    output = np.empty_like(x)
    grid = (triton.cdiv(x.size, 1024),)
    add_kernel[grid](Tensor(x), Tensor(y), Tensor(output), x.size, BLOCK_SIZE=1024)
    return output


if __name__ == "__main__":
    x, y = np.random.default_rng(0).random((2, 98432), np.float32)
    print(triton.runtime.driver.active.device_report())
    print("largest difference to NumPy:", np.abs(add(x, y) - (x + y)).max())
