"""Vector addition: how far it is from the reference, and its memory throughput over sizes as a table and a plot.

    ./foundry run spirv --results=out examples/get_started.py          NumPy arrays
    ./foundry run spirv-torch --results=out examples/get_started.py    torch's CPU tensors, with torch as a provider
    ./foundry run dpu --results=out examples/get_started.py --sizes 4096 65536    sizes of your choice, in elements

It writes vector-add-performance.png and .csv into the current folder; `./foundry run` copies them out, without
--results to this folder. On the emulator of DPUs the time is that of the emulation; `./foundry bench dpu` has modelled
times.
"""

import argparse
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import triton
import triton.language as tl
from foundry_core.tensor import Tensor

BLOCK_SIZE = 1024
# An addition reads two f32 elements and writes one.
BYTES_PER_ELEMENT = 3 * 4


@triton.jit
def add_kernel(x_ptr, y_ptr, output_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(output_ptr + offsets, x + y, mask=mask)


def launch(x: Any, y: Any, output: Any, n_elements: int) -> None:
    """Compute output = x + y."""
    add_kernel[(triton.cdiv(n_elements, BLOCK_SIZE),)](x, y, output, n_elements, BLOCK_SIZE=BLOCK_SIZE)


def arrays(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return two arrays of random numbers, and one for the result, filled with NaN that a kernel must overwrite."""
    x, y = np.random.default_rng(0).random((2, size), np.float32)
    return x, y, np.full(size, np.nan, np.float32)


def additions(size: int) -> dict[str, tuple[np.ndarray, Callable[[], object]]]:
    """Return each provider's result array and its addition."""
    x, y, output = arrays(size)
    by_numpy = np.full_like(output, np.nan)
    found = {"numpy": (by_numpy, lambda: np.add(x, y, out=by_numpy))}
    if importlib.util.find_spec("torch"):
        import torch

        # These tensors are views of the arrays.
        a, b, c = map(torch.from_numpy, (x, y, output))
        by_torch = np.full_like(output, np.nan)
        d = torch.from_numpy(by_torch)
        found["torch"] = (by_torch, lambda: torch.add(a, b, out=d))
        return {"triton": (output, lambda: launch(a, b, c, size)), **found}
    return {"triton": (output, lambda: launch(Tensor(x), Tensor(y), Tensor(output), size)), **found}


def largest_difference(size: int) -> tuple[str, float]:
    """Return the provider that Triton is compared with (torch if installed), and the largest difference from it."""
    found = additions(size)
    for _, add in found.values():
        add()
    reference = "torch" if "torch" in found else "numpy"
    # An element that was never written is NaN, which is larger than every difference.
    return reference, float(np.max(np.abs(found["triton"][0] - found[reference][0])))


# How many additions were timed, for each number in the table.
runs: list[int] = []


def gigabytes_per_second(size: int, provider: str) -> tuple[float, float, float]:
    """Return the median, lowest and highest throughput of one addition."""
    _, add = additions(size)[provider]
    taken = triton.testing.do_bench(add, return_mode="all", warmup=5, rep=100)
    runs.append(len(taken))
    median, low, high = np.quantile(taken, [0.5, 0.2, 0.8])

    def throughput(milliseconds: float) -> float:
        return size * BYTES_PER_ELEMENT * 1e-9 / (milliseconds * 1e-3)

    return throughput(median), throughput(high), throughput(low)


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    # Of smaller arrays, most of the time is that of a launch.
    words.add_argument("--sizes", type=int, nargs="+", default=[2**power for power in range(16, 23)])
    sizes = words.parse_args().sizes
    providers = list(additions(1))
    # One element more than a multiple of the block, so that the last program needs a mask.
    reference, difference = largest_difference(96 * BLOCK_SIZE + 1)
    print(triton.runtime.driver.active.device_report())
    print(f"The maximum difference between {reference} and triton is {difference}")
    if not difference == 0:
        raise SystemExit("error: triton and the reference must agree in every bit: there is one rounding in a sum")
    report = triton.testing.perf_report(
        triton.testing.Benchmark(
            x_names=["size"],
            x_vals=sizes,
            x_log=True,
            line_arg="provider",
            line_vals=providers,
            line_names=[name.capitalize() for name in providers],
            ylabel="GB/s",
            plot_name="vector-add-performance",
            args={},
        )
    )(gigabytes_per_second)
    report.run(print_data=True, save_path=".")
    print(f"Each is the median of {min(runs)} to {max(runs)} additions.")


if __name__ == "__main__":
    main()
