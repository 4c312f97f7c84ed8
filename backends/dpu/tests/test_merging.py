"""Atomic operations on several DPUs: what their copies are merged to, and what is refused."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.log import FoundRecords, Log
from foundry_core.tensor import Tensor
from triton_dpu_backend.comparing import Comparisons
from triton_dpu_backend.host.errors import DpuError
from triton_dpu_backend.merging import Merge

FLOATS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
INTEGERS: dict[str, Any] = {"i32": np.int32, "i64": np.int64}
SPECIAL = [0.0, -0.0, 1.5, -3.0, 1e-7, np.inf, -np.inf, np.nan]


def merged(kind: str, element: str, start: np.ndarray, *parts: np.ndarray) -> np.ndarray:
    result = start.copy()
    for part in parts:
        Merge(kind, element).combine(result.view(np.uint8), part.view(np.uint8))
    return result


@pytest.mark.parametrize("kind", ["add", "max", "min", "umax", "umin", "and", "or", "xor"])
@pytest.mark.parametrize("element", INTEGERS)
def test_integers_of_several_dpus_are_combined_by_the_operation(kind: str, element: str) -> None:
    dtype = INTEGERS[element]
    info, unsigned = np.iinfo(dtype), np.dtype(f"u{np.dtype(dtype).itemsize}")
    a, b, c = (np.random.default_rng(n).integers(info.min, info.max, 50, dtype, endpoint=True) for n in range(3))
    a[:2], b[:2] = info.min, (info.max, -1)
    function: dict[str, Any] = {"add": np.add, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
    by = function.get(kind, np.maximum if kind.endswith("max") else np.minimum)
    view = unsigned if kind[0] == "u" else dtype
    expected = by(by(a.view(view), b.view(view)), c.view(view)).view(dtype)
    np.testing.assert_array_equal(merged(kind, element, a, b, c), expected)
    # A DPU that did nothing changes nothing.
    neutral = np.resize(Merge(kind, element).neutral, a.size).view(dtype)
    np.testing.assert_array_equal(by(a.view(view), neutral.view(view)).view(dtype), a)


@pytest.mark.parametrize("element", FLOATS)
def test_sums_of_floats_start_from_a_zero_that_changes_nothing(element: str) -> None:
    a, b = (m.ravel().astype(FLOATS[element]) for m in np.meshgrid(SPECIAL, SPECIAL))
    with np.errstate(all="ignore"):
        expected = a + b
    result = merged("fadd", element, a, b)
    np.testing.assert_array_equal(result.astype("d"), expected.astype("d"))
    bits = np.dtype(f"u{a.itemsize}")
    zeros = (b == 0) & np.signbit(b.astype("d"))
    np.testing.assert_array_equal(result.view(bits)[zeros], a.view(bits)[zeros])
    sums = result == 0
    np.testing.assert_array_equal(np.signbit(result.astype("d"))[sums], np.signbit(expected.astype("d"))[sums])
    assert Merge("fadd", element).neutral.view(a.dtype)[0] == 0 and np.signbit(
        Merge("fadd", element).neutral.view(a.dtype).astype("d")[0]
    )


@pytest.mark.parametrize("element", ["f32", "f64"])
@pytest.mark.parametrize(("kind", "function"), [("fmax", np.fmax), ("fmin", np.fmin)])
def test_extremes_of_floats_are_those_of_their_bits(kind: str, function: Any, element: str) -> None:
    dtype = FLOATS[element]
    numbers = np.array([x for x in SPECIAL if x == x and x != 0] + [0.0, 5e-324], dtype)
    a, b = (m.ravel() for m in np.meshgrid(numbers, numbers))
    np.testing.assert_array_equal(merged(kind, element, a, b), function(a, b))
    zeros = np.array([-0.0, 0.0], dtype)
    assert np.signbit(merged(kind, element, zeros, zeros[::-1].copy())).tolist() == [kind == "fmin"] * 2
    untouched = np.resize(Merge(kind, element).neutral, numbers.size).view(dtype)
    np.testing.assert_array_equal(merged(kind, element, numbers, untouched), numbers)
    np.testing.assert_array_equal(merged(kind, element, untouched, numbers), numbers)


@triton.jit
def count(x, bins, most, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.atomic_add(bins + (v & 15), 1, mask=i < n)
    tl.atomic_max(most, tl.max(tl.where(i < n, v, 0).to(tl.float32)))


@triton.jit
def take(counter, out, BLOCK: tl.constexpr):
    tl.store(out + tl.program_id(0), tl.atomic_add(counter + tl.program_id(0) // BLOCK, 1))


@triton.jit
def load_too(x, counter, out):
    tl.atomic_add(counter, 1)
    tl.store(out + tl.program_id(0), tl.load(x))


@pytest.mark.parametrize("room", [None, "2048"])
def test_counts_of_several_dpus_and_rounds_are_summed(monkeypatch: pytest.MonkeyPatch, room: str | None) -> None:
    if room is not None:
        monkeypatch.setenv("TRITON_DPU_MRAM_BYTES", room)
    x = np.random.default_rng(3).integers(0, 1000, 3000).astype(np.int32)
    bins, most = np.arange(16, dtype=np.int32), np.array([-5], np.float32)
    with_launches = triton.runtime.driver.active.profile
    with with_launches() as launches:
        count[(94,)](Tensor(x), Tensor(bins), Tensor(most), x.size, BLOCK=32, num_dpus=5)
    assert launches[0].dpus == 5 and (launches[0].rounds > 1) is (room is not None)
    np.testing.assert_array_equal(bins, np.arange(16) + np.bincount(x & 15, minlength=16))
    assert most[0] == x.max()


def test_a_used_result_keeps_programs_on_one_dpu_unless_dpus_reach_different_elements() -> None:
    counter, out = np.zeros(8, np.int32), np.full(64, -1, np.int32)
    with triton.runtime.driver.active.profile() as launches:
        take[(64,)](Tensor(counter), Tensor(out), BLOCK=64)
        take[(64,)](Tensor(counter), Tensor(out), BLOCK=8, num_dpus=4)
    assert [launch.dpus for launch in launches] == [1, 4]
    assert counter.tolist() == [72, *[8] * 7]
    np.testing.assert_array_equal(np.sort(out[:8]), np.arange(64, 72))
    np.testing.assert_array_equal(np.sort(out[8:].reshape(7, 8), 1), np.tile(np.arange(8), (7, 1)))
    with pytest.raises(DpuError, match=r"(?s)take cannot run on 3 DPUs .*counter.*result of an atomic add.*num_dpus=1"):
        take[(64,)](Tensor(counter), Tensor(out), BLOCK=64, num_dpus=3)


def test_an_array_that_is_merged_must_not_be_another_argument_too() -> None:
    x, out = np.array([7], np.int32), np.full(64, -1, np.int32)
    with pytest.raises(DpuError, match=r"(?s)counter, which is changed atomically, shares memory with x"):
        load_too[(64,)](Tensor(x), Tensor(x), Tensor(out), num_dpus=2)


@pytest.mark.parametrize(("grid", "bits"), [((100, 1, 1), 16), ((50, 7, 200), 12), ((3, 1 << 20, 1), 8)])
def test_conflict_check_finds_different_values_from_programs_on_two_dpus(grid: tuple[int, int, int], bits: int) -> None:
    places, others = [("k.py", 3)], [("k.py", 5)]
    common = {"kind": "conflict", "text": "store", "type": "i64", "shape": [8], "signed": True, "arguments": [0]}
    log = Log("k", [{**common, "places": places}, {**common, "places": others}])
    comparisons = Comparisons(log, {1: 0})

    def word(program: int, value: int) -> int:
        return (program + 1) << bits | value

    # Written by one, by different programs as different values, as the same value, by the same program, by none.
    first = np.array([word(4, 1), word(4, 1), word(4, 7), word(4, 1), 0], np.uint32)
    second = np.array([0, word(61, 2), word(61, 7), word(4, 2), 0], np.uint32)
    out, shadow = np.zeros(5, np.int16)[::-1], np.zeros(5, np.uint32)
    for part in (first, second):
        comparisons.merges[1].combine(shadow.view(np.uint8), part.view(np.uint8))
    assert shadow.tolist() == [first[0], *second[1:]]
    with pytest.raises(FoundRecords) as caught:
        log.report([comparisons.log(grid, [Tensor(out), Tensor(shadow)], {0: 2, 1: 4})])
    (record,) = caught.value.records
    assert record.program == (61 % grid[0], 61 // grid[0] % grid[1], 0) and caught.value.count == 1
    # The reversed array begins at index -4.
    assert (record.value >> 40, record.value % (1 << 40)) == (5, (-4 + 1) % (1 << 40))
    assert (record.site.location(), record.site.text, record.site.shape) == ("k.py:3", "store or at k.py:5", ())
    comparisons.begin()
    log.report([comparisons.log(grid, [Tensor(out), Tensor(shadow)], {0: 2, 1: 4})])
