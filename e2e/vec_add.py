"""Vector addition as in Triton's first tutorial, for every element type, many lengths and block sizes.

The result must be exact: bit for bit equal to the sum computed in float64 (integers: modulo 2^bits) and rounded once;
only the payload of a NaN may differ. For f16, bf16 and f32, the float64 sum rounded to the type is the correctly
rounded sum, because float64 has more than twice their precision plus two bits. For f64 it is NumPy's own addition,
which IEEE 754 defines.
    python e2e/vec_add.py [--only TEXT]
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import triton
import triton.language as tl
from covering import pairs
from foundry_core.failure import Failure
from foundry_core.tensor import Tensor
from guarded import Guarded
from report import Case, run_script
from settings import check_refusal

LENGTHS = (1, 7, 1000, 98432, 2**20, 2**24)
# Its cases run with every release of Triton, which only writes the IR: they have each type, block size and alignment.
EACH_RELEASE = 98432
BLOCKS = (64, 128, 256, 512, 1024, 2048, 4096)
DTYPES: dict[str, Any] = {
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f64": np.float64,
    "i8": np.int8,
    "i32": np.int32,
    "i64": np.int64,
}
# Triton specialises a kernel by whether its pointers are multiples of 16 bytes.
OFFSETS = (0, 1)


@triton.jit
def add_kernel(x_ptr, y_ptr, output_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    block_start = pid * BLOCK_SIZE
    offsets = block_start + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    output = x + y
    tl.store(output_ptr + offsets, output, mask=mask)


def operands(n: int, dtype: npt.DTypeLike) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return two vectors of random numbers, with pairs whose sum is special if the vectors are long enough."""
    random = np.random.default_rng(n)
    kind = np.dtype(dtype)
    if kind.kind == "i":
        limits = np.iinfo(kind)
        x, y = (random.integers(limits.min, limits.max, n, kind, endpoint=True) for _ in range(2))
        specials: list[tuple[float, float]] = [(limits.max, 1), (limits.min, -1), (limits.min, limits.min)]
    else:
        x, y = (random.standard_normal(n, np.float32).astype(kind) for _ in range(2))
        largest = float(ml_dtypes.finfo(kind).max)
        specials = [
            (np.inf, 1.0),
            (np.inf, -np.inf),
            (np.nan, 1.0),
            (-0.0, -0.0),
            (-0.0, 0.0),
            (largest, largest),
            (1.0, -1.0),
        ]
    for index, (first, second) in enumerate(specials[: n // 2]):
        x[-1 - index], y[-1 - index] = first, second
    return x, y


def expected_sum(x: npt.NDArray[Any], y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the one correct result; see the module's docstring."""
    with np.errstate(over="ignore", invalid="ignore"):
        if x.dtype.kind == "i":
            return x + y
        return (x.astype(np.float64) + y.astype(np.float64)).astype(x.dtype)


def check(n: int, block: int, dtype: str, offset: int) -> float | str:
    """Add two vectors of `n` elements on the device and compare; return the error, which is 0, or the refusal."""
    inputs = [Guarded((n,), DTYPES[dtype], fence=block, offset=offset) for _ in range(2)]
    output = Guarded((n,), DTYPES[dtype], fence=block, offset=offset)
    for guarded, values in zip(inputs, operands(n, DTYPES[dtype]), strict=True):
        guarded.fill(values)
    x, y = (guarded.array for guarded in inputs)
    try:
        add_kernel[(triton.cdiv(n, block),)](Tensor(x), Tensor(y), Tensor(output.array), n, BLOCK_SIZE=block)
    except Failure as refused:
        return check_refusal(refused, dtype)
    output.check_fences("output")
    expected = expected_sum(x, y)
    bits = np.dtype(f"u{expected.itemsize}")
    wrong = output.array.view(bits) != expected.view(bits)
    if expected.dtype.kind != "i":
        wrong &= ~(np.isnan(output.array) & np.isnan(expected))
    if wrong.any():
        first = int(np.argmax(wrong))
        raise AssertionError(
            f"{np.count_nonzero(wrong)} of {n} elements are wrong; the first is [{first}]: "
            f"{x[first]} + {y[first]} gave {output.array[first]}, not {expected[first]}"
        )
    return 0.0


def cases() -> Iterator[Case]:
    """Yield cases that cover every pair of a length, a block size, an element type and an alignment."""
    for choice in pairs(n=LENGTHS, block=BLOCKS, dtype=tuple(DTYPES), offset=OFFSETS):
        yield Case(
            "vec_add",
            f"n={choice['n']} block={choice['block']} {choice['dtype']}{' unaligned' if choice['offset'] else ''}",
            lambda choice=choice: check(**choice),  # type: ignore[misc]
            anywhere=choice["n"] != EACH_RELEASE,
        )


if __name__ == "__main__":
    run_script("vec_add", cases)
