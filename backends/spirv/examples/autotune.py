"""Let triton.autotune choose a block size by timing; TRITON_PRINT_AUTOTUNING=1 shows what it found."""

import numpy as np
import triton
import triton.language as tl
from foundry_core import Tensor


@triton.autotune(configs=[triton.Config({"BLOCK_SIZE": 2**power}) for power in (8, 10, 12, 14)], key=["n_elements"])
@triton.jit
def gelu_kernel(x_ptr, output_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(output_ptr + offsets, 0.5 * x * (1 + tl.erf(x * 0.7071067811865476)), mask=mask)


if __name__ == "__main__":
    x = np.linspace(-5, 5, 2**20, dtype=np.float32)
    output = np.empty_like(x)
    gelu_kernel[lambda meta: (triton.cdiv(x.size, meta["BLOCK_SIZE"]),)](Tensor(x), Tensor(output), x.size)
    print(triton.runtime.driver.active.device_report())
    print("best:", gelu_kernel.best_config)
