#!/usr/bin/env python3
"""C = A + B in Triton, for DPUs.

python dpu_min_test.py --out add.ll    write the kernel's LLVM IR; needs neither DPUs nor the UPMEM SDK
python dpu_min_test.py [N]             run it on DPUs over N elements, and check it
"""

import argparse
import sys
from pathlib import Path

import triton
import triton.language as tl

# DPUs that the kernel runs on unless a launch, or a run of the packed kernel, says otherwise.
TRITON_DPU_NUM_DPUS = 4

# Few, so that a hundred elements are enough for four DPUs: a program runs on one. For many elements, 1024 are faster.
BLOCK = 32


@triton.jit
def add_kernel(a, b, c, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(c + i, tl.load(a + i, mask=inside) + tl.load(b + i, mask=inside), mask=inside)


def llvm_ir():
    """The kernel for arrays of floats that start at multiples of 16 bytes."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    triton.knobs.compilation.compile_only = "llir"  # no program is built
    source = ASTSource(
        fn=add_kernel,
        signature={"a": "*fp32", "b": "*fp32", "c": "*fp32", "n": "i32", "BLOCK": "constexpr"},
        constexprs={"BLOCK": BLOCK},
        attrs={(parameter,): [["tt.divisibility", 16]] for parameter in range(3)},
    )
    return triton.compile(source, target=GPUTarget("dpu", "v1A", 1)).asm["llir"]


def run(n):
    """Add two arrays on DPUs; returns whether the sum is right."""
    import numpy as np
    from foundry_core.tensor import Tensor

    random = np.random.default_rng(0)
    a, b = random.random(n, np.float32), random.random(n, np.float32)
    c = np.full(n, np.nan, np.float32)
    add_kernel[(triton.cdiv(n, BLOCK),)](Tensor(a), Tensor(b), Tensor(c), n, BLOCK=BLOCK)
    return np.array_equal(c, a + b)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, metavar="PATH", help="write LLVM IR there and run nothing")
    parser.add_argument("n", type=int, nargs="?", default=100_003, help="elements; default %(default)s")
    given = parser.parse_args()
    if given.n < 0:
        parser.error(f"{given.n} is not a number of elements")
    if given.out:
        from foundry_core.errors import LoweringError

        try:
            ir = llvm_ir()
            given.out.parent.mkdir(parents=True, exist_ok=True)
            given.out.write_text(ir)
        except (LoweringError, OSError) as error:
            # What was wrong is in the message: a kernel that cannot be lowered, an opt that cannot be used, or a folder
            # that cannot be written to.
            sys.exit(f"error: {error}")
        print(f"wrote {given.out}")
        return 0
    right = run(given.n)
    print(f"C = A + B: {given.n} elements, {'all right' if right else 'WRONG'}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
