"""The checked mode: what a kernel must not do is reported with its place and not done; a correct one goes on."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.checked import POISON, CheckModeError, memory
from foundry_core.checked.findings import CheckError
from foundry_core.tensor import Tensor
from image import BACKEND

GUARD = 64


def guarded(size: int, dtype: Any, fill: float) -> tuple[np.ndarray, np.ndarray]:
    """Return an array in the middle of a larger one, and the larger one."""
    whole = np.full(size + 2 * GUARD, fill, dtype)
    return whole[GUARD:-GUARD], whole


def line(kernel: Any, text: str) -> int:
    """Return the number of the line of a kernel that has a text."""
    lines, first = inspect.getsourcelines(kernel.fn)
    (found,) = (number for number, each in enumerate(lines, first) if text in each)
    return found


def finding(launch: Callable[..., Any], *arguments: Any, **options: Any) -> CheckError:
    with pytest.raises(CheckError) as raised:
        launch(*arguments, check=True, **options)
    return raised.value


@triton.jit
def add_one(x, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + offsets, tl.load(x + offsets, mask=offsets < n) + 1, mask=offsets < n)


@triton.jit
def add_one_unmasked(x, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + offsets)
    tl.store(out + offsets, value + 1, mask=offsets < n + 3)


def test_first_element_outside_is_named_and_memory_behind_the_array_is_not_touched() -> None:
    x, _ = guarded(1000, np.float32, np.nan)
    out, whole = guarded(1000, np.float32, -7)
    x[:] = np.arange(1000)
    error = finding(add_one_unmasked[(4,)], Tensor(x), Tensor(out), 1000, BLOCK=256)
    assert (error.kernel, error.kind, error.count) == ("add_one_unmasked", "outside", 2)
    assert (error.operation, error.argument, error.index) == ("load", "x", 1000)
    assert (error.program, error.lane) == ((3, 0, 0), (232,))
    assert (error.size, error.shape, error.dtype) == (1000, (1000,), "float32")
    assert error.file == __file__ and error.line == line(add_one_unmasked, "tl.load")
    store = error.findings[1]
    assert (store.operation, store.argument, store.index, store.masked) == ("store", "out", 1000, True)
    assert "next: mask it: mask=offsets < n" in str(error)
    assert (out == x + 1).all() and (whole[:GUARD] == -7).all() and (whole[-GUARD:] == -7).all()


def test_report_prints_the_finding_and_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    x, out = np.arange(5, dtype=np.int32), np.full(5, -1, np.int32)
    add_one_unmasked[(1,)](Tensor(x), Tensor(out), 5, BLOCK=8, check="report")
    assert out.tolist() == [1, 2, 3, 4, 5]
    assert "load at x[5], but x has 5 elements (shape (5,), int32)" in capsys.readouterr().err


def test_correct_kernel_has_no_finding_and_a_wrong_mode_is_refused() -> None:
    x, out = np.arange(1000, dtype=np.float32), np.zeros(1000, np.float32)
    add_one[(4,)](Tensor(x), Tensor(out), 1000, BLOCK=256, check=True)
    assert (out == x + 1).all()
    with pytest.raises(CheckModeError, match="'yes'"):
        add_one[(4,)](Tensor(x), Tensor(out), 1000, BLOCK=256, check="yes")


@triton.jit
def read_rows(x, out, stride, STEPS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    rows, columns = tl.arange(0, BM), tl.arange(0, BN)
    pointers = x + rows[:, None] * stride + columns[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for _ in range(STEPS):
        total += tl.load(pointers)
        pointers += BN
    tl.store(out + rows[:, None] * BN + columns[None, :], total)


def test_pointers_that_a_loop_moves_are_checked_in_each_iteration() -> None:
    x, out = np.ones((8, 40), np.float32), np.full((8, 8), np.nan, np.float32)
    read_rows[(1,)](Tensor(x), Tensor(out), 40, STEPS=5, BM=8, BN=8, check=True)
    assert (out == 5).all()
    error = finding(read_rows[(1,)], Tensor(x), Tensor(out), 40, STEPS=6, BM=8, BN=8)
    assert (error.argument, error.index, error.lane, error.size) == ("x", 320, (7, 0), 320)
    # The bytes between the strides of a view belong to it, those around it do not.
    view = x[:4, 8:16]
    error = finding(read_rows[(1,)], Tensor(view), Tensor(out[:4]), 40, STEPS=2, BM=4, BN=8)
    assert (error.index, error.lane, error.size, error.shape) == (128, (3, 0), 128, (4, 8))


@triton.jit
def read_before(x, out):
    tl.store(out, tl.load(x - 1))


def test_index_before_the_array_is_negative_and_a_reversed_array_has_it() -> None:
    x, out = np.arange(4, dtype=np.float32), np.full(1, np.nan, np.float32)
    error = finding(read_before[(1,)], Tensor(x), Tensor(out))
    assert (error.index, error.lane) == (-1, ())
    read_before[(1,)](Tensor(x[::-1]), Tensor(out), check=True)
    assert out[0] == 2


@triton.jit
def count(bins, index, BLOCK: tl.constexpr):
    tl.atomic_add(bins + tl.load(index + tl.arange(0, BLOCK)), 1)


@triton.jit
def swap(x, n):
    tl.atomic_cas(x + n, 0, 7)


def test_atomic_operations_are_checked_by_element() -> None:
    bins, index = np.zeros(4, np.int32), np.array([0, 1, 2, 3, 4, -1, 2, 2], np.int32)
    error = finding(count[(1,)], Tensor(bins), Tensor(index), BLOCK=8)
    assert (error.operation, error.index, error.lane, error.argument) == ("atomic add", 4, (4,), "bins")
    assert bins.tolist() == [1, 1, 3, 1]
    error = finding(swap[(1,)], Tensor(bins), 4)
    assert (error.operation, error.index) == ("atomic cas", 4)


@triton.jit
def copy_of_one(x, y, out, first, BLOCK: tl.constexpr):
    pointer = x
    if first == 0:
        pointer = y
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(tl.where(i < 2, x, pointer + 1) + i))


def test_pointer_of_several_arguments_must_be_inside_of_the_one_that_is_selected() -> None:
    x, y, out = np.zeros(16, np.int32), np.ones(9, np.int32), np.full(8, -1, np.int32)
    copy_of_one[(1,)](Tensor(x), Tensor(y), Tensor(out), 0, BLOCK=8, check=True)
    assert out.tolist() == [0, 0, 1, 1, 1, 1, 1, 1]
    both = np.zeros(400, np.int32)
    x, y = both[:16], both[200:208]
    error = finding(copy_of_one[(1,)], Tensor(x), Tensor(y), Tensor(out), 0, BLOCK=8)
    assert (error.argument, error.index, error.lane) == ("y", 8, (7,))
    # The next array begins where the selected one ends.
    x, y = both[:4], both[4:16]
    error = finding(copy_of_one[(1,)], Tensor(x), Tensor(y), Tensor(out), 1, BLOCK=8)
    assert (error.argument, error.index, error.lane) == ("x", 4, (3,))
    y = np.full(9, POISON, np.uint32).view(np.int32)
    error = finding(copy_of_one[(1,)], Tensor(x), Tensor(y), Tensor(out), 0, BLOCK=8)
    assert (error.kind, error.argument, error.index, error.lane) == ("unwritten", "y", 3, (2,))


@triton.jit
def divide(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    quotient = tl.load(x + i, mask=i < n) // tl.load(y + i, mask=i < n)
    tl.store(out + i, quotient, mask=i < n)


@triton.jit
def remainder(out, n, m):
    tl.store(out, n % m)


def test_division_by_zero_is_reported_for_elements_that_count() -> None:
    x, y, out = np.array([8, 9, -(2**31), 7, 6], np.int32), np.ones(5, np.int32), np.zeros(5, np.int32)
    # The elements that the mask excludes have any divisor.
    divide[(1,)](Tensor(x), Tensor(y), Tensor(out), 5, BLOCK=16, check=True)
    assert (out == x).all()
    y[:] = [1, 3, -1, 0, 2]
    error = finding(divide[(1,)], Tensor(x), Tensor(y), Tensor(out), 5, BLOCK=16)
    assert (error.kind, error.operation, error.lane, error.line) == ("division", "division", (2,), line(divide, "//"))
    assert error.index == -1 and "division by -1 of the smallest number" in str(error)
    assert out.tolist()[:2] == [8, 3] and out[4] == 3
    y[2] = 1
    error = finding(divide[(1,)], Tensor(x), Tensor(y), Tensor(out), 5, BLOCK=16)
    assert (error.index, error.lane, error.argument) == (0, (3,), "")
    error = finding(remainder[(1,)], Tensor(out), 17, 0)
    assert (error.operation, error.index, error.lane) == ("remainder", 0, ())


@triton.jit
def far(x, out, first, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    offsets = (first + i) * stride
    tl.store(out + i, tl.load(x + offsets, mask=i < 3))


def test_offset_that_wraps_around_is_reported_as_it_was_meant() -> None:
    x, out = np.zeros(8, np.int32), np.zeros(4, np.int32)
    # 3 * 2^30 wraps around, and so does 4 * 2^30, to an element that the array has.
    error = finding(far[(1,)], Tensor(x), Tensor(out), 2, 2**30, BLOCK=4)
    first = error.findings[0]
    assert (first.kind, first.index, first.lane, first.argument) == ("overflow", 2**31, (0,), "x")
    assert "tl.int64" in str(error)
    error = finding(far[(1,)], Tensor(x), Tensor(out), 4, 2**30, BLOCK=4)
    assert (error.kind, error.index, error.lane) == ("overflow", 2**32, (0,))


@triton.jit
def step_by_step(x, out, steps, stride):
    offset = 0
    for _ in range(steps):
        offset += stride
    tl.store(out, tl.load(x + offset))


@triton.jit
def step_while(x, out, steps, stride):
    offset = 0
    while steps > 0:
        steps -= 1
        offset += stride
    tl.store(out, tl.load(x + offset))


@triton.jit
def step_in_two_loops(x, out, steps, stride):
    offset = 0
    while steps > 0:
        for _ in range(2):
            offset += stride
        steps -= 2
    while steps < 0:
        steps += 1
        offset -= stride
    tl.store(out, tl.load(x + offset))


@pytest.mark.parametrize("kernel", [step_by_step, step_while, step_in_two_loops], ids=lambda each: each.__name__)
def test_offset_that_wraps_around_in_a_loop_is_reported(kernel: triton.JITFunction) -> None:
    x, out = np.arange(8, dtype=np.int32), np.zeros(1, np.int32)
    kernel[(1,)](Tensor(x), Tensor(out), 3, 2, check=True)
    assert out[0] == 6
    error = finding(kernel[(1,)], Tensor(x), Tensor(out), 4, 2**30)
    assert (error.kind, error.index, error.argument) == ("overflow", 2**32, "x")


@pytest.mark.parametrize(("dtype", "first"), [(np.float16, 21), (np.int16, 22), (np.int8, 24)])
def test_poison_of_narrow_types_is_reported(dtype: Any, first: int) -> None:
    x, out = np.empty(40, dtype), np.zeros(40, dtype)
    memory.fill(x.view(np.uint8))
    x[:21] = 0
    add_one[(1,)](Tensor(x), Tensor(out), 21, BLOCK=64, check=True)
    # All numbers of 8 and 16 bits may be meant, so a whole word of 32 bits must have the poison.
    error = finding(add_one[(1,)], Tensor(x), Tensor(out), 40, BLOCK=64)
    assert (error.kind, error.index, error.argument) == ("unwritten", first, "x")
    alike = np.full(40, np.array([POISON], np.uint32).view(dtype)[0])
    if dtype != np.float16:
        add_one[(1,)](Tensor(alike), Tensor(out), 40, BLOCK=64, check=True)


@triton.jit
def write_and_read(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, -19 + 0 * i, mask=i < n)
    tl.debug_barrier()
    tl.store(x + i, tl.load(x + i) * 2)


@pytest.mark.skipif(BACKEND == "dpu", reason="docs/checked-mode.md: not where a kernel also writes the array")
def test_bytes_equal_to_poison_that_a_kernel_wrote_are_not_reported() -> None:
    x = np.empty(16, np.int8)
    memory.fill(x.view(np.uint8))
    write_and_read[(1,)](Tensor(x), 16, BLOCK=16, check=True)
    assert (x == -38).all()
    memory.fill(x.view(np.uint8))
    assert finding(write_and_read[(1,)], Tensor(x), 11, BLOCK=16).index == 11


def test_memory_that_nobody_has_written_is_reported_where_it_is_read() -> None:
    x, out = np.arange(40, dtype=np.float32), np.full(40, np.nan, np.float32)
    x.view(np.uint32)[37] = POISON
    add_one[(1,)](Tensor(x), Tensor(out), 37, BLOCK=64, check=True)
    error = finding(add_one[(1,)], Tensor(x), Tensor(out), 40, BLOCK=64)
    assert (error.kind, error.operation, error.index, error.lane) == ("unwritten", "load", 37, (37,))
    assert (error.argument, error.line) == ("x", line(add_one, "tl.load"))


@triton.jit
def store_to_same(out, value, SHIFT: tl.constexpr, BLOCK: tl.constexpr):
    program = tl.program_id(0) + 2 * tl.program_id(1)
    i = tl.arange(0, BLOCK)
    tl.store(out + program * SHIFT + i, value + i + program * SHIFT)
    tl.store(out + program * SHIFT + BLOCK, program)


def test_programs_that_write_different_values_to_one_place_are_reported() -> None:
    out = np.zeros(80, np.int64)
    store_to_same[(2, 2)](Tensor(out), 5, SHIFT=17, BLOCK=16, check=True)
    # The values that overlap are equal, except the last one of each program.
    error = finding(store_to_same[(2, 2)], Tensor(out), 5, SHIFT=15, BLOCK=16)
    assert (error.kind, error.operation, error.argument) == ("conflict", "store", "out")
    pairs = {(each.index, frozenset([each.program, each.other])) for each in error.findings}
    programs = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)]
    assert pairs == {(15 * n + 16, frozenset(programs[n : n + 2])) for n in range(3)}


@triton.jit
def add_by_address(address, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(address).to(tl.pointer_type(tl.float32))
    tl.store(out + i, tl.load(x + i) + 1)


@pytest.mark.skipif(
    BACKEND == "dpu" or os.environ.get("FOUNDRY_SPIRV_API") == "vulkan",
    reason="the device cannot follow addresses of the host",
)
def test_address_of_no_array_is_reported() -> None:
    x, out = np.arange(8, dtype=np.float32), np.zeros(4, np.float32)
    # Of a part of an array that is no argument: a script that gets an address lets kernels reach the array.
    addresses = np.array([Tensor(x[:6]).data_ptr()], np.int64)
    add_by_address[(1,)](Tensor(addresses), Tensor(out), BLOCK=4, check=True)
    assert (out == x[:4] + 1).all()
    addresses += 10
    error = finding(add_by_address[(1,)], Tensor(addresses), Tensor(out), BLOCK=4)
    # The last two bytes of this element are behind the array.
    assert (error.kind, error.operation, error.lane) == ("stray", "load", (3,))
    assert (error.index, error.line) == (addresses[0] + 12, line(add_by_address, "tl.load(x + i)"))
    # Of an argument, and of memory that nothing points to any more.
    add_by_address[(1,)](Tensor(np.array([out.ctypes.data])), Tensor(out), BLOCK=4, check=True)
    del x
    assert finding(add_by_address[(1,)], Tensor(addresses - 10), Tensor(out), BLOCK=4).lane == (0,)


@triton.jit
def largest(x, out, rows, columns, OTHER: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    r, c = tl.arange(0, BM)[:, None], tl.arange(0, BN)[None, :]
    mask = (r < rows) & (c < columns)
    if OTHER:
        v = tl.load(x + r * columns + c, mask=mask, other=-float("inf"))
    else:
        v = tl.load(x + r * columns + c, mask=mask)
    row = tl.arange(0, BM)
    tl.store(out + row, tl.max(v * 2, 1), mask=row < rows)


@triton.jit
def copy_too_much(x, out, n, m, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < m)


def test_elements_that_a_mask_leaves_undefined_are_reported_if_they_are_used() -> None:
    x, out = -np.arange(1, 16, dtype=np.float32).reshape(3, 5), np.zeros(3, np.float32)
    largest[(1,)](Tensor(x), Tensor(out), 3, 5, OTHER=True, BM=4, BN=8, check=True)
    assert out.tolist() == [-2, -12, -22]
    error = finding(largest[(1,)], Tensor(x), Tensor(out), 3, 5, OTHER=False, BM=4, BN=8)
    assert (error.kind, error.operation) == ("undefined", "load for a reduction")
    assert (error.lane, error.argument, error.line) == ((0, 5), "x", line(largest, "mask=mask)"))
    assert "other=-float('inf')" in str(error)
    # Rows that are off as a whole are used nowhere, and all columns are on.
    x = -np.arange(1, 25, dtype=np.float32).reshape(3, 8)
    largest[(1,)](Tensor(x), Tensor(out), 3, 8, OTHER=False, BM=4, BN=8, check=True)
    y, out = np.arange(8, dtype=np.int32), np.zeros(8, np.int32)
    copy_too_much[(1,)](Tensor(y), Tensor(out), 5, 5, BLOCK=8, check=True)
    error = finding(copy_too_much[(1,)], Tensor(y), Tensor(out), 5, 7, BLOCK=8)
    assert (error.operation, error.lane, error.index) == ("load for a store", (5,), 5)


@triton.jit
def sums(x, out, n, stored, ENDS: tl.constexpr, REVERSE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)[None, :]
    place = tl.arange(0, 2)[:, None] * BLOCK + i
    value = tl.load(x + place, mask=i < n if ENDS else n <= i)
    tl.store(out + place, tl.cumsum(value, 1, reverse=REVERSE), mask=i < stored)


def test_undefined_elements_of_a_scan_are_reported_unless_they_are_behind_all_that_are_stored() -> None:
    x, out = np.ones((2, 16), np.float32), np.zeros((2, 16), np.float32)
    sums[(1,)](Tensor(x), Tensor(out), 13, 13, ENDS=True, REVERSE=False, BLOCK=16, check=True)
    assert out[1].tolist() == [*range(1, 14), 0, 0, 0]
    error = finding(sums[(1,)], Tensor(x), Tensor(out), 13, 14, ENDS=True, REVERSE=False, BLOCK=16)
    assert (error.operation, error.lane) == ("load for a store", (0, 13))
    error = finding(sums[(1,)], Tensor(x), Tensor(out), 13, 13, ENDS=True, REVERSE=True, BLOCK=16)
    assert (error.operation, error.lane) == ("load for a scan", (0, 13))
    error = finding(sums[(1,)], Tensor(x), Tensor(out), 3, 16, ENDS=False, REVERSE=False, BLOCK=16)
    assert (error.operation, error.lane) == ("load for a scan", (0, 0))


@triton.jit
def total_of_blocks(x, out, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, n, BLOCK):
        i = first + tl.arange(0, BLOCK)
        total += tl.load(x + i, mask=i < n)
    tl.store(out, tl.sum(total))


def test_undefined_elements_that_a_loop_carries_to_a_sum_are_reported() -> None:
    x, out = np.ones(20, np.float32), np.zeros(1, np.float32)
    total_of_blocks[(1,)](Tensor(x), Tensor(out), 16, BLOCK=8, check=True)
    assert out[0] == 16
    error = finding(total_of_blocks[(1,)], Tensor(x), Tensor(out), 20, BLOCK=8)
    assert (error.kind, error.lane, error.index) == ("undefined", (4,), 20)


@triton.jit
def asserted(out):
    program = tl.program_id(0)
    tl.device_assert(program != 0, "not the first")
    tl.store(out + 4 * program, program)


def test_failed_assertion_is_reported_with_other_findings(capsys: pytest.CaptureFixture[str]) -> None:
    out = np.zeros(5, np.int32)
    asserted[(2,)](Tensor(out), check="report")
    assert "assertion `not the first` failed" in capsys.readouterr().err and out.tolist() == [0, 0, 0, 0, 1]
    error = finding(asserted[(3,)], Tensor(out))
    assert [each.kind for each in error.findings] == ["assert", "outside"]
    assert error.line == line(asserted, "device_assert") and "out[8]" in str(error)


@triton.jit
def shift(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i + tl.program_id(0)))


@pytest.mark.parametrize("dtype", [np.float16, np.int8])
def test_values_of_narrow_types_are_compared(dtype: Any) -> None:
    x, out = np.zeros(33, dtype), np.zeros(32, dtype)
    shift[(2,)](Tensor(x), Tensor(out), BLOCK=32, check=True)
    x[7] = 1
    error = finding(shift[(2,)], Tensor(x), Tensor(out), BLOCK=32)
    assert error.kind == "conflict" and error.index in (6, 7)


@triton.jit
def shifted(x, out, by, turns, BARRIERS: tl.constexpr, BLOCK: tl.constexpr):
    row, i = tl.program_id(0) * BLOCK, tl.arange(0, BLOCK)
    value = tl.load(x + row + i)
    if BARRIERS:
        tl.debug_barrier()
    tl.store(x + row + (i + by) % BLOCK, value)
    for turn in range(turns):
        tl.atomic_add(out + row + (i + turn * by) % BLOCK, value)
    if BARRIERS:
        tl.debug_barrier()
    tl.store(out + row, 7)


@pytest.mark.skipif(BACKEND == "dpu", reason="a DPU has no room to compare the order of accesses")
def test_accesses_that_only_a_barrier_would_order_on_cuda_are_reported() -> None:
    x, out = np.arange(128, dtype=np.int32), np.zeros(128, np.int32)
    # At the same elements, and with barriers between, there is nothing to report; nor of sums, in any order.
    shifted[(2,)](Tensor(x), Tensor(out), 64, 3, BARRIERS=True, BLOCK=64, check=True)
    shifted[(2,)](Tensor(x), Tensor(out), 5, 3, BARRIERS=True, BLOCK=64, check=True)
    x[:], out[:] = np.arange(128), 0
    error = finding(shifted[(2,)], Tensor(x), Tensor(out), 5, 0, BARRIERS=False, BLOCK=64)
    assert (error.kind, error.line, error.argument) == ("unordered", line(shifted, "tl.store(x + row"), "x")
    assert f"test_checked.py:{line(shifted, 'value = tl.load')}" in str(error) and "tl.debug_barrier()" in str(error)
    assert (error.lane, error.index) == ((0,), 5)
    # The launch did what its lines say.
    np.testing.assert_array_equal(x.reshape(2, 64), np.roll(np.arange(128).reshape(2, 64), 5, axis=1))
    # A tile and a scalar; the elements that meet in `x` are the same of both tiles.
    error = finding(shifted[(2,)], Tensor(x), Tensor(out), 64, 1, BARRIERS=False, BLOCK=64)
    assert (error.kind, error.operation[:5], error.line) == ("unordered", "store", line(shifted, "tl.store(out + row"))
    assert [each.argument for each in error.findings] == ["out", "out"]
