"""A kernel that ends when its flag is set."""

import triton
import triton.language as tl


@triton.jit
def wait_kernel(flag_ptr, seen_ptr):
    while tl.atomic_add(flag_ptr, 0) == 0:
        pass
    tl.store(seen_ptr, 1)
