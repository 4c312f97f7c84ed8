"""Kernels with host code in the forms that Triton's own tutorials have. It runs in the images with torch.

    python host_code.py            all of them; each checks its results

Nothing here is written for this project: the device is the active driver's, occupancy is computed from a GPU's numbers,
configurations are those of other GPUs, and timings and profiles are asked for as on a GPU.
"""

import sys
import warnings
from typing import Any

import tabulate
import torch
import triton
import triton.language as tl
import triton.profiler as proton

DEVICE = triton.runtime.driver.active.get_active_torch_device()
MODERN = hasattr(triton, "knobs")


def is_cuda() -> bool:
    return bool(triton.runtime.driver.active.get_current_target().backend == "cuda")


def poisoned(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.full(shape, float("nan"), device=DEVICE, dtype=dtype)


# 01: a launch by a function of the configuration, and a table of throughputs.


@triton.jit
def sum_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask), mask=mask)


def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = poisoned(*x.shape)
    assert x.device == DEVICE and y.device == DEVICE and out.device == DEVICE
    sum_kernel[lambda meta: (triton.cdiv(out.numel(), meta["BLOCK_SIZE"]),)](x, y, out, out.numel(), BLOCK_SIZE=1024)
    return out


@triton.testing.perf_report(
    triton.testing.Benchmark(
        x_names=["size"],
        x_vals=[2**i for i in range(12, 16, 1)],
        x_log=True,
        line_arg="provider",
        line_vals=["triton", "torch"],
        line_names=["Triton", "Torch"],
        styles=[("blue", "-"), ("green", "-")],
        ylabel="GB/s",
        plot_name="sums",
        args={},
    )
)
def throughput(size: int, provider: str) -> tuple[float, ...]:
    x, y = (torch.rand(size, device=DEVICE, dtype=torch.float32) for _ in range(2))
    call = {"torch": lambda: x + y, "triton": lambda: add(x, y)}[provider]
    ms, min_ms, max_ms = triton.testing.do_bench(call, quantiles=[0.5, 0.2, 0.8], warmup=1, rep=2)
    return tuple(3 * x.numel() * x.element_size() * 1e-9 / (each * 1e-3) for each in (ms, max_ms, min_ms))


def vector_add() -> None:
    x, y = (torch.rand(98432, device=DEVICE) for _ in range(2))
    assert torch.equal(add(x, y), x + y)
    throughput.run(print_data=True, show_plots=True)
    alone = triton.testing.do_bench(lambda: add(x, y), warmup=1, rep=2, quantiles=[0.5])
    graph = triton.testing.do_bench_cudagraph(lambda: add(x, y), rep=2)
    assert alone > 0 and graph > 0


# 02: as many programs as the device executes at a time, from a compiled kernel's registers and shared memory.


@triton.jit
def softmax_kernel(
    out_ptr, in_ptr, in_stride, out_stride, n_rows, n_cols, BLOCK_SIZE: tl.constexpr, num_stages: tl.constexpr
):
    for row in tl.range(tl.program_id(0), n_rows, tl.num_programs(0), num_stages=num_stages):
        offsets = tl.arange(0, BLOCK_SIZE)
        mask = offsets < n_cols
        values = tl.load(in_ptr + row * in_stride + offsets, mask=mask, other=-float("inf"))
        weights = tl.exp(values - tl.max(values, axis=0))
        tl.store(out_ptr + row * out_stride + offsets, weights / tl.sum(weights, axis=0), mask=mask)


def softmax(x: torch.Tensor) -> torch.Tensor:
    properties = triton.runtime.driver.active.utils.get_device_properties(DEVICE.index)
    n_rows, n_cols = x.shape
    num_warps, num_stages = 8, 4 if properties["max_shared_mem"] > 200000 else 2
    y = poisoned(*x.shape)
    arguments = (y, x, x.stride(0), y.stride(0), n_rows, n_cols)
    constants = {"BLOCK_SIZE": triton.next_power_of_2(n_cols), "num_stages": num_stages}
    kernel = softmax_kernel.warmup(*arguments, **constants, num_warps=num_warps, grid=(1,))
    kernel._init_handles()
    occupancy = properties["max_num_regs"] // (kernel.n_regs * properties["warpSize"] * num_warps)
    occupancy = min(occupancy, properties["max_shared_mem"] // kernel.metadata.shared)
    programs = min(properties["multiprocessor_count"] * occupancy, n_rows)
    # The compiled kernel itself; Triton 3.2 passes it no constants.
    kernel[(programs, 1, 1)](*arguments, *(constants.values() if MODERN else ()))
    return y


def fused_softmax() -> None:
    torch.manual_seed(0)
    module = getattr(torch, DEVICE.type)
    module.set_stream(module.Stream())
    x = torch.randn(123, 381, device=DEVICE)
    assert torch.allclose(softmax(x), torch.softmax(x, axis=1))


# 03: configurations for several makes of GPUs.


def configurations() -> list[triton.Config]:
    if is_cuda():
        return [triton.Config({"BLOCK_M": 32, "BLOCK_N": 32}, num_stages=3, num_warps=8)]
    block = {"BLOCK_M": 16, "BLOCK_N": 32}
    return [
        triton.Config({**block, "matrix_instr_nonkdim": 16, "waves_per_eu": 2}, num_warps=4, num_stages=2),
        triton.Config({**block, "kpack": 2, "waves_per_eu": 0}, num_warps=8, num_stages=0),
        triton.Config({**block, "grf_mode": "large"}, num_warps=0, num_ctas=0),
    ]


@triton.autotune(configs=configurations(), key=["M", "N", "K"])
@triton.jit
def product_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bk, stride_cm, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    rows = (tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    columns = (tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(tl.cdiv(K, 32)):
        at = k * 32 + tl.arange(0, 32)
        a = tl.load(a_ptr + rows[:, None] * stride_am + at[None, :], mask=at[None, :] < K, other=0.0)
        b = tl.load(b_ptr + at[:, None] * stride_bk + columns[None, :], mask=at[:, None] < K, other=0.0)
        total = tl.dot(a, b, total)
    tl.store(c_ptr + rows[:, None] * stride_cm + columns[None, :], total.to(tl.float16))


def matmul() -> None:
    a, b = torch.randn((70, 50), device=DEVICE, dtype=torch.float16), torch.randn((50, 60), device=DEVICE).half()
    c = poisoned(70, 60, dtype=torch.float16)

    def grid(meta: dict[str, int]) -> tuple[int, int]:
        return triton.cdiv(70, meta["BLOCK_M"]), triton.cdiv(60, meta["BLOCK_N"])

    product_kernel[grid](a, b, c, 70, 60, 50, a.stride(0), b.stride(0), c.stride(0))
    assert torch.allclose(c.float(), a.float() @ b.float(), atol=1e-2)


# 04: random numbers of a seed, in a table.


@triton.jit
def dropout_kernel(x_ptr, out_ptr, n, p, seed, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.where(tl.rand(seed, offsets) > p, x / (1 - p), 0.0), mask=mask)


def dropout() -> None:
    x, outs = torch.randn(size=(10,), device=DEVICE), []
    for seed in (123, 123, 512):
        outs.append(torch.full_like(x, float("nan")))
        dropout_kernel[lambda meta: (triton.cdiv(10, meta["BLOCK_SIZE"]),)](x, outs[-1], 10, 0.5, seed, BLOCK_SIZE=1024)
    print(tabulate.tabulate([["input", *x.tolist()], *([f"seed {i}", *out.tolist()] for i, out in enumerate(outs))]))
    assert torch.equal(outs[0], outs[1]) and not torch.isnan(outs[2]).any()


# 06: descriptors of the host where there are any, through a function that takes a pointer, too.


if MODERN:
    from triton.tools.tensor_descriptor import TensorDescriptor

    @triton.jit
    def descriptor_of(source, shape, strides, block_shape):
        if isinstance(source, tl.tensor_descriptor):
            return source
        else:  # noqa: RET505  as in Triton's tutorials
            return tl.make_tensor_descriptor(source, shape, strides, block_shape)

    def set_block(nargs: dict[str, Any]) -> None:
        for name in ("x_desc", "y_desc"):
            if isinstance(nargs[name], TensorDescriptor):
                nargs[name].block_shape = [nargs["BLOCK_M"], nargs["BLOCK_N"]]

    @triton.autotune(
        configs=[triton.Config({"BLOCK_M": m, "BLOCK_N": 16}, num_stages=2, pre_hook=set_block) for m in (16, 32)],
        key=["M", "N"],
    )
    @triton.jit
    def doubled_kernel(x_desc, y_desc, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
        x_desc = descriptor_of(x_desc, shape=[M, N], strides=[N, 1], block_shape=[BLOCK_M, BLOCK_N])
        y_desc = descriptor_of(y_desc, shape=[M, N], strides=[N, 1], block_shape=[BLOCK_M, BLOCK_N])
        row = tl.program_id(0) * BLOCK_M
        for column in tl.range(0, N, BLOCK_N, warp_specialize=False):
            y_desc.store([row, column], x_desc.load([row, column]) * 2)

    def descriptors() -> None:
        x = torch.randn((64, 48), device=DEVICE)
        for described in (True, False):
            y = poisoned(64, 48)
            given = [TensorDescriptor(t, t.shape, t.stride(), [1, 1]) if described else t for t in (x, y)]
            triton.set_allocator(lambda size, align, _: torch.empty(size, dtype=torch.int8, device=DEVICE))
            doubled_kernel[lambda meta: (triton.cdiv(64, meta["BLOCK_M"]),)](*given, 64, 48)
            assert torch.equal(y, 2 * x)


# 09: as many programs as multiprocessors, under a profiler.


def profile() -> None:
    try:
        torch.empty(1, device="cuda")
    except (AssertionError, RuntimeError) as error:
        assert "next: make tensors with device=triton.runtime.driver" in str(error), error
    assert torch.cuda.get_device_properties("cuda").multi_processor_count > 0 and not torch.cuda.is_available()
    proton.start("sums", hook="triton")
    proton.deactivate()
    proton.activate(0)
    x = torch.rand(2000, device=DEVICE)
    with proton.scope("add", {"bytes": 24000}):
        assert torch.equal(add(x, x), x + x)
    proton.deactivate(0)
    proton.finalize()
    import triton.profiler.viewer as proton_viewer

    proton_viewer.print_tree(*proton_viewer.parse(["time/ms"], "sums.hatchet"))


# 10: numbers of fp8 in tensors of bytes.


@triton.jit
def widened_kernel(x_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
    offsets = tl.arange(0, BLOCK_SIZE)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets).to(tl.float32))


def reinterpreted() -> None:
    x, out = torch.arange(64, dtype=torch.int8).to(DEVICE), poisoned(64)
    widened_kernel[(1,)](triton.reinterpret(x, tl.float8e5), out, BLOCK_SIZE=64)
    assert torch.equal(out, x.view(torch.float8_e5m2).float())


def main() -> None:
    warnings.simplefilter("ignore", UserWarning)
    forms = [vector_add, fused_softmax, matmul, dropout, *([descriptors] if MODERN else []), profile, reinterpreted]
    for form in forms:
        print(f"--- {form.__name__}", flush=True)
        form()
    print(f"{len(forms)} forms on {DEVICE}, {sys.argv[0]}")


if __name__ == "__main__":
    main()
