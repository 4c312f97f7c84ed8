"""
Functions of libdevice
======================

Triton's language has the common functions: exp, log, sin, sqrt. The others come from `libdevice`, the name of NVIDIA's
library. Here the same names are answered by OpenCL's functions or by code of ours, in f32 and f64, with stated bounds
(docs/functions.md).

    ./foundry run spirv examples/tutorials/07_libdevice.py
    ./foundry run dpu examples/tutorials/07_libdevice.py --size 500

It runs on every target.
"""

import argparse
from collections.abc import Callable

import numpy as np
import triton
import triton.language as tl
from foundry_core import Tensor
from triton.language.extra import libdevice

# %%
# The kernel
# ----------
#
# The function is a constant of the compilation. `libdevice.asin` has overloads by type: f32 here.


@triton.jit
def apply_kernel(x_ptr, y_ptr, n, FUNCTION: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    if FUNCTION == "asin":
        y = libdevice.asin(x)
    elif FUNCTION == "expm1":
        y = libdevice.expm1(x)
    elif FUNCTION == "cbrt":
        y = libdevice.cbrt(x)
    else:
        tl.static_assert(FUNCTION == "log1p")
        y = libdevice.log1p(x)
    tl.store(y_ptr + offsets, y, mask=mask)


def apply(name: str, x: np.ndarray) -> np.ndarray:
    y = np.full_like(x, 42)
    apply_kernel[(triton.cdiv(x.size, 128),)](Tensor(x), Tensor(y), x.size, FUNCTION=name, BLOCK=128)
    return y


# %%
# Is it right?
# ------------
#
# OpenCL allows asin 4 units in the last place, expm1 3, cbrt 2 and log1p 2. Arguments of which the function is not
# defined give NaN, infinities and the sign of zero come out as IEEE 754 has them.

FUNCTIONS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], int]] = {
    "asin": (np.arcsin, 4),
    "expm1": (np.expm1, 3),
    "cbrt": (np.cbrt, 2),
    "log1p": (np.log1p, 2),
}
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 2.0, np.inf, -np.inf, np.nan], np.float32)


def check(name: str, x: np.ndarray) -> None:
    function, units = FUNCTIONS[name]
    found = apply(name, x)
    with np.errstate(all="ignore"):
        exact = function(x.astype(np.float64))
        rounded = exact.astype(np.float32)
    same = np.array_equal(np.isnan(found), np.isnan(rounded)) and np.array_equal(np.isinf(found), np.isinf(rounded))
    finite = np.isfinite(rounded)
    error = np.abs(found[finite] - exact[finite]) / np.spacing(np.abs(rounded[finite]))
    print(f"{name:8} largest error {error.max():.2f} units in the last place, allowed {units}")
    zeros = rounded == 0
    if not same or not np.all(error <= units) or np.any(np.signbit(found[zeros]) != np.signbit(rounded[zeros])):
        raise SystemExit(f"error: {name} is not as exact as stated")


def bench(x: np.ndarray) -> None:
    for name, (function, _) in FUNCTIONS.items():
        for label, call in (("triton", lambda name=name: apply(name, x)), ("numpy", lambda f=function: f(x))):
            taken = triton.testing.do_bench(call, warmup=5, rep=200, return_mode="all")
            who, rate, runs = f"{name:8}{label}", x.size * 1e-3 / np.median(taken), len(taken)
            print(f"{who:16}{np.median(taken):9.3f} ms, least {min(taken):.3f} of {runs} runs {rate:9.1f} M elements/s")


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--size", type=int)
    words.add_argument("--bench", action="store_true", help="time it, too, by default with more elements")
    options = words.parse_args()
    size = options.size or (1 << 20 if options.bench else 5000)
    x = np.random.default_rng(0).uniform(-1, 1, size).astype(np.float32)
    for name in FUNCTIONS:
        check(name, np.concatenate([x, x * np.float32(1e-30), SPECIAL]))
    if options.bench:
        bench(x)


if __name__ == "__main__":
    main()
