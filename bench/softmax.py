"""The kernel of Triton's second tutorial, for one row a program."""

import triton
import triton.language as tl


@triton.jit
def softmax_kernel(output_ptr, input_ptr, stride, n_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n_columns
    values = tl.load(input_ptr + row * stride + columns, mask=mask, other=-float("inf")).to(tl.float32)
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(output_ptr + row * stride + columns, powers / tl.sum(powers, axis=0), mask=mask)
