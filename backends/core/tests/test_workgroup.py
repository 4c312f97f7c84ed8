"""Programs on work-groups: the results do not depend on the order of work-items between two barriers.

PoCL runs a work-group's work-items one after the other from barrier to barrier, always from the first to the last. A
missing barrier may have no effect in this order. Therefore each kernel also runs with its work-items numbered from the
last to the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from kernels import structured
from ordered import CASES
from shared_kernels import linear

pytest.importorskip("pyopencl", reason="this image has no OpenCL")

import pyopencl as cl
from foundry_core.codegen.pipeline import WorkGroupTarget, to_llvm, to_spirv, to_work_group_mlir
from foundry_core.errors import LoweringError
from foundry_core.log import FIRST_FAILURE, FIRST_PRINTED, PRINTED, RECORD, Log
from foundry_core.runtime import opencl
from foundry_core.runtime.opencl import OpenCLDevice

rng = np.random.default_rng(0)
WORK_ITEMS = (1, 3, 32, 128)


@pytest.fixture(scope="module")
def device() -> OpenCLDevice:
    return OpenCLDevice(opencl.find("", variable="none"))


def mirrored(mlir: str, work_items: int) -> str:
    """Return the kernel with its work-items numbered in reverse order."""
    head, call, rest = mlir.partition('= llvm.call spir_funccc @"_Z12get_local_idj"')
    line, newline, body = rest.partition("\n")
    before, _, name = head.rpartition("\n")
    register = name.strip()
    return (
        f"{before}\n    %mirrored {call}{line}{newline}    %last_work_item = arith.constant {work_items - 1} : i64\n"
        f"    {register} = arith.subi %last_work_item, %mirrored : i64\n{body}"
    )


def run(
    device: OpenCLDevice,
    kernel: Any,
    types: Mapping[str, str],
    constants: Mapping[str, Any],
    work_items: int,
    mirror: bool,
    *arguments: Any,
    programs: int = 1,
    log: Sequence[np.ndarray] = (),
) -> None:
    """Launch a kernel. Array arguments are changed in place, and the log, if it takes one."""
    # Vectors wider than most processors' registers must not change results.
    target = WorkGroupTarget(vector_bytes=64, work_items=work_items)
    mlir = to_work_group_mlir(structured(kernel, types, constants), target)
    program = device.build(to_spirv(to_llvm(mirrored(mlir, work_items) if mirror else mlir)))
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    passed = [
        cl.Buffer(device.context, flags, hostbuf=argument) if isinstance(argument, np.ndarray) else argument
        for argument in (*arguments, *log)
    ]
    logs = [passed.pop() for _ in log]
    size, items = (programs * work_items, 1, 1), (work_items, 1, 1)
    grid = map(np.int32, (programs, 1, 1))
    cl.Kernel(program, kernel.__name__)(device.queue, size, items, *passed, *grid, *logs)
    for argument, buffer in zip((*arguments, *log), (*passed, *logs), strict=True):
        if isinstance(argument, np.ndarray):
            cl.enqueue_copy(device.queue, argument, buffer)
    device.queue.finish()


every_way = pytest.mark.parametrize(
    ("work_items", "mirror"), [(n, mirror) for n in WORK_ITEMS for mirror in (False, True)[: min(n, 2)]]
)


@triton.jit
def softmax(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.load(x + i, mask=i < n, other=-float("inf"))
    e = tl.exp(row - tl.max(row, 0))
    tl.store(x + i, e / tl.sum(e, 0), mask=i < n)


@pytest.mark.every_cpu
@every_way
def test_a_row_is_reduced_by_all_work_items_before_one_of_them_overwrites_it(
    device: OpenCLDevice, work_items: int, mirror: bool
) -> None:
    x = rng.standard_normal(1000).astype("f")
    e = np.exp(x.astype(np.float64) - x.max())
    run(device, softmax, {"x": "*fp32", "n": "i32"}, {"BLOCK": 1024}, work_items, mirror, x, np.int32(1000))
    # A sum of 1024 floats, two exponentials with at most 3 ulp (OpenCL C 3.0, table of relative errors), a division.
    np.testing.assert_allclose(x, e / e.sum(), rtol=1100 * 2.0**-24)


@triton.jit
def reverse_in_place(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + BLOCK - 1 - i, tl.load(x + i))


@every_way
def test_all_work_items_read_before_one_overwrites_their_elements(
    device: OpenCLDevice, work_items: int, mirror: bool
) -> None:
    x = rng.integers(-(2**31), 2**31, 4096).astype(np.int32)
    expected = x[::-1].copy()
    run(device, reverse_in_place, {"x": "*i32"}, {"BLOCK": 4096}, work_items, mirror, x)
    np.testing.assert_array_equal(x, expected)


@triton.jit
def chain(x, steps, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for step in range(steps):
        tl.store(x + (i + 1) % BLOCK, tl.load(x + i) + step)


@every_way
def test_a_store_is_seen_by_all_in_the_next_turn_of_a_loop(device: OpenCLDevice, work_items: int, mirror: bool) -> None:
    x = rng.integers(-1000, 1000, 256).astype(np.int32)
    expected = np.roll(x, 5) + 10
    run(device, chain, {"x": "*i32", "steps": "i32"}, {"BLOCK": 256}, work_items, mirror, x, np.int32(5))
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("mirror", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_accesses_through_other_offsets_keep_the_order_of_the_lines(
    device: OpenCLDevice, name: str, mirror: bool
) -> None:
    x, out, x_expected, out_expected = CASES[name].arrays(2, 256)
    run(device, CASES[name].kernel, {"x": "*i32", "out": "*i32"}, {"BLOCK": 256}, 32, mirror, x, out, programs=2)
    np.testing.assert_array_equal(x, x_expected)
    np.testing.assert_array_equal(out, out_expected)


@triton.jit
def scalars(x, out):
    for i in range(4):
        previous = tl.load(out)
        if previous % 2 == 0:
            tl.store(out, previous + tl.load(x + i))
        else:
            tl.store(out, previous * 3)


@every_way
def test_a_scalar_is_stored_once_and_all_take_the_same_branch(
    device: OpenCLDevice, work_items: int, mirror: bool
) -> None:
    x, out = np.array([3, 5, 7, 8], np.int64), np.array([2], np.int64)
    run(device, scalars, {"x": "*i64", "out": "*i64"}, {}, work_items, mirror, x, out)
    assert out[0] == 135  # 2 + 3, then times 3, times 3, times 3


@triton.jit
def conditional(x, y, out, which, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    if tl.load(which) > 0:
        row = tl.load(x + i) * 2
        best, source, odd = tl.max(row, 0), x, tl.sum(row, 0) % 2 == 1
        tl.store(out + i, row)
    else:
        row = tl.load(y + i) + 1
        best, source, odd = tl.min(row, 0), y, tl.sum(row, 0) % 3 == 1
    tl.store(out + BLOCK + i, row)
    tl.store(out + 2 * BLOCK, best)
    tl.store(out + 2 * BLOCK + 1, tl.load(source + 1))
    tl.store(out + 2 * BLOCK + 2, odd.to(tl.int32))


@pytest.mark.parametrize("which", [0, 1])
@every_way
def test_all_work_items_get_the_results_of_a_branch(
    device: OpenCLDevice, work_items: int, mirror: bool, which: int
) -> None:
    x, y = (rng.integers(-1000, 1000, 64).astype(np.int32) for _ in range(2))
    out = np.full(131, 77, np.int32)
    types = {"x": "*i32", "y": "*i32", "out": "*i32", "which": "*i32"}
    run(device, conditional, types, {"BLOCK": 64}, work_items, mirror, x, y, out, np.array([which], np.int32))
    row = x * 2 if which else y + 1
    np.testing.assert_array_equal(out[:64], row if which else np.full(64, 77))
    np.testing.assert_array_equal(out[64:128], row)
    # Signed remainders are C's.
    odd = np.fmod(row.sum(dtype=np.int32), 2 if which else 3) == 1
    assert [*out[128:]] == [row.max() if which else row.min(), (x if which else y)[1], odd]


@triton.jit
def product(a, b, c, steps, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    total = tl.zeros((M, N), tl.float32)
    for step in range(steps):
        left = tl.load(a + i * K * steps + (step * K + k)[None, :])
        right = tl.load(b + (step * K + k)[:, None] * N + j)
        total = tl.dot(left, right, total)
    # One work-item computes a row of these; others read a column.
    tl.store(c + i + j * M, total - tl.max(total, 1)[:, None])


@every_way
def test_tiles_are_whole_before_tl_dot_takes_them(device: OpenCLDevice, work_items: int, mirror: bool) -> None:
    m, n, k, steps = 32, 16, 16, 3
    a, b = (rng.uniform(-1, 1, shape).astype("f") for shape in ((m, k * steps), (k * steps, n)))
    c = np.full((n, m), np.nan, "f")
    types = {"a": "*fp32", "b": "*fp32", "c": "*fp32", "steps": "i32"}
    run(device, product, types, {"M": m, "N": n, "K": k}, work_items, mirror, a, b, c, np.int32(steps))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    # gamma(48) |A| |B| for each of two sums (Higham, section 3.1), and a subtraction.
    error = 2 * 49 * 2.0**-24 * (np.abs(a).astype(np.float64) @ np.abs(b)).max() + 2.0**-23 * np.abs(exact).max()
    np.testing.assert_allclose(c.T, exact - exact.max(1, keepdims=True), rtol=0, atol=error)


@triton.jit
def greatest(x, value, index, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(x + i)
    best, place = tl.max(row, 0, return_indices=True)
    tl.store(value + tl.program_id(0), best)
    tl.store(index + tl.program_id(0), place)


@pytest.mark.parametrize("block", [1, 16, 64, 4096])
@every_way
def test_parts_of_a_reduction_of_two_values(device: OpenCLDevice, work_items: int, mirror: bool, block: int) -> None:
    x = rng.integers(-50, 50, (3, block)).astype(np.int32)
    value, index = np.full(3, 77, np.int32), np.full(3, 77, np.int32)
    types = {"x": "*i32", "value": "*i32", "index": "*i32", "n": "i32"}
    run(device, greatest, types, {"BLOCK": block}, work_items, mirror, x, value, index, np.int32(block), programs=3)
    np.testing.assert_array_equal(value, x.max(1))
    # For equal values, the first index is the result.
    np.testing.assert_array_equal(index, x.argmax(1))


@triton.jit
def in_order(x, out, bins, R: tl.constexpr, C: tl.constexpr):
    i, r, c = tl.arange(0, R * C), tl.arange(0, R)[:, None], tl.arange(0, C)[None, :]
    v = tl.load(x + i)
    # The second result depends on the order of the elements.
    _, last = tl.reduce((v, i), 0, linear)
    tl.store(out, last)
    tl.store(x + i, tl.cumsum(v, 0))
    tile = tl.load(x + r * C + c)
    tl.store(out + 1 + r * C + c, tl.cumsum(tile, 0, reverse=True) + tl.cumsum(tile, 1))
    tl.store(bins + tl.arange(0, 8), tl.histogram(v, 8))
    tl.store(bins + 8 + r * C + c, tl.sort(tile))


@every_way
def test_reductions_scans_and_sorts_by_all_work_items(device: OpenCLDevice, work_items: int, mirror: bool) -> None:
    rows, columns = 4, 64
    x, out = rng.integers(0, 10, rows * columns).astype(np.int32), np.full(rows * columns + 1, 77, np.int32)
    before, bins = x.copy(), np.full(8 + rows * columns, 77, np.int32)
    types = {"x": "*i32", "out": "*i32", "bins": "*i32"}
    run(device, in_order, types, {"R": rows, "C": columns}, work_items, mirror, x, out, bins)
    last = 0
    for i, a in enumerate(before):
        last = (last * int(a) + i) % 2**32 if i else 0
    assert out[0] == np.uint32(last).astype(np.int32)
    np.testing.assert_array_equal(x, np.cumsum(before))
    tile = x.reshape(rows, columns)
    np.testing.assert_array_equal(
        out[1:].reshape(rows, columns), np.cumsum(tile[::-1], 0)[::-1] + np.cumsum(tile, 1, dtype=np.int32)
    )
    np.testing.assert_array_equal(bins[:8], np.bincount(before[before < 8], minlength=8))
    np.testing.assert_array_equal(bins[8:].reshape(rows, columns), np.sort(tile, 1))


@triton.jit
def clipped(x, least):
    if x < least:
        return least
    while x > 8:
        x -= 8
    return x


@triton.jit
def mixed(x, out, B: tl.constexpr, S: tl.constexpr):
    i = tl.arange(0, B * S * S)
    v = tl.load(x + i)
    first, second = tl.split(tl.reshape(v, (B * S * S // 2, 2)))
    w = tl.gather(tl.interleave(second, first), B * S * S - 1 - i, 0)
    for _ in range(2):
        a = tl.reshape(tl.map_elementwise(clipped, w, tl.sum(v, 0)), (B, S, S))
        w = tl.ravel(tl.dot(a, tl.permute(a, 0, 2, 1), tl.reshape(v, (B, S, S)), input_precision="ieee"))
    tl.store(out + i, w)


@every_way
@pytest.mark.skipif(not hasattr(tl, "map_elementwise"), reason="this release of Triton has no tl.map_elementwise")
def test_tiles_are_whole_before_other_elements_of_them_are_read(
    device: OpenCLDevice, work_items: int, mirror: bool
) -> None:
    shape = (8, 4, 4)
    x, out = rng.integers(-9, 9, shape).astype("f"), np.full(shape, np.nan, "f")
    run(device, mixed, {"x": "*fp32", "out": "*fp32"}, {"B": 8, "S": 4}, work_items, mirror, x, out)
    w = x.reshape(-1, 2)[:, ::-1].ravel()[::-1].reshape(shape)
    for _ in range(2):
        # Between 0, exclusive, and 8, or the least number.
        a = np.where(w < x.sum(), x.sum(), np.where(w > 8, w - 8 * np.ceil((w - 8) / 8), w))
        w = a @ a.transpose(0, 2, 1) + x
    np.testing.assert_array_equal(out, w)


def test_tiles_that_do_not_fit_a_work_groups_memory_are_refused_with_the_numbers() -> None:
    types = {"a": "*fp32", "b": "*fp32", "c": "*fp32", "steps": "i32"}
    kernel = structured(product, types, {"M": 512, "N": 512, "K": 64})
    with pytest.raises(LoweringError, match=r"keeps 1[0-9]{3} KiB .* gives a program 1024 KiB"):
        to_work_group_mlir(kernel)


@triton.jit
def change_atomically(counters, x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mine = tl.atomic_add(counters, 1)
    tl.store(out + mine * BLOCK + i, tl.atomic_add(counters + 1 + i % 3, i) // 1000000 + mine)
    while tl.atomic_cas(counters + 4, 0, 1) == 1:
        pass
    if tl.load(counters + 5, volatile=True) == 0:
        tl.store(x + i, i)
        tl.atomic_xchg(counters + 5, 1)
    else:
        tl.store(x + i, tl.load(x + i) + i)
    tl.atomic_xchg(counters + 4, 0)


@every_way
def test_an_atomic_operation_is_executed_once_and_all_see_its_result(
    device: OpenCLDevice, work_items: int, mirror: bool
) -> None:
    programs, size = 40, 256
    counters, x, out = np.zeros(6, np.int32), np.full(size, 77, np.int32), np.full(programs * size, 77, np.int32)
    types = dict.fromkeys(("counters", "x", "out"), "*i32")
    run(device, change_atomically, types, {"BLOCK": size}, work_items, mirror, counters, x, out, programs=programs)
    sums = [programs * np.arange(first, size, 3).sum() for first in range(3)]
    assert counters.tolist() == [programs, *sums, 0, 1]
    np.testing.assert_array_equal(x, np.arange(size) * programs)
    np.testing.assert_array_equal(
        out.reshape(programs, size), np.repeat(np.arange(programs), size).reshape(programs, -1)
    )


@triton.jit
def printing(x, n, BLOCK: tl.constexpr):
    tile = tl.load(x + tl.arange(0, BLOCK))
    for i in range(n):
        for j in range(i):
            if j < 2:
                tl.device_print("inner", j)
            else:
                tl.device_print("other", tile)
        tl.device_print("behind", i)
        tl.device_print("tile", tile + i)


@pytest.mark.parametrize(("work_items", "mirror"), [(3, True), (128, False)])
def test_each_value_is_printed_by_one_work_item(device: OpenCLDevice, work_items: int, mirror: bool) -> None:
    x = np.arange(8, dtype=np.int32)
    made = Log("printing", [])
    log = np.zeros(made.bytes // 8, np.uint64)
    log[:FIRST_FAILURE] = made.header()
    types = {"x": "*i32", "n": "i32"}
    run(device, printing, types, {"BLOCK": 8}, work_items, mirror, x, np.int32(4), log=[log])
    records = log[FIRST_PRINTED:].reshape(-1, RECORD)[: int(log[PRINTED])]
    found = [(int(word) & 0xFFFFFFFF, int(word) >> 32, int(value)) for word, value in records[:, [0, 3]]]
    expected = []
    for i in range(4):
        for j in range(i):
            expected += [(0, 0, j)] if j < 2 else [(1, at, at) for at in range(8)]
        expected += [(2, 0, i), *((3, at, at + i) for at in range(8))]
    assert found == expected
