"""How a launch is spread over DPUs, and its arrays over their memories; the memories are NumPy arrays."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from foundry_core.footprint import Footprint, Span
from foundry_core.tensor import Tensor
from triton_dpu_backend.plan import (
    ALIGNMENT,
    Array,
    ByteInterval,
    LaunchPlan,
    MemoryExceeded,
    Placement,
    Round,
    plan_launch,
)
from triton_dpu_backend.transfer import receive, send, view

MRAM = 1 << 16
# Not a multiple of ALIGNMENT: a program's end can be anywhere.
HEAP = 0x08000000 + 1000
EVERYTHING = Span(-(1 << 62), 1 << 62)


class Memories:
    """The poisoned MRAM of some DPUs, with the copy functions of a set of DPUs."""

    def __init__(self, count: int, arrays: Sequence[npt.NDArray[Any]]) -> None:
        self.count = count
        self.mram = [np.full(MRAM, 0xA5, np.uint8) for _ in range(count)]
        self._allocations = [Tensor(array).untyped_storage() for array in arrays]

    def _check(self, offset: int, size: int, addresses: Sequence[int]) -> None:
        assert len(addresses) == self.count
        assert offset % 8 == 0 and size % 8 == 0 and size > 0
        for address in filter(None, addresses):
            for storage in self._allocations:
                low, high = storage.data_ptr(), storage.data_ptr() + storage.nbytes()
                # A transfer that starts in an array must not leave it for memory outside.
                assert address + size <= low or address >= high or (low <= address and address + size <= high)

    def send(self, symbol: str, offset: int, size: int, sources: Sequence[int]) -> None:
        self._check(offset, size, sources)
        for mram, source in zip(self.mram, sources, strict=True):
            if source:
                mram[offset : offset + size] = view(ByteInterval(source, source + size))

    def receive(self, symbol: str, offset: int, size: int, targets: Sequence[int]) -> None:
        self._check(offset, size, targets)
        for mram, target in zip(self.mram, targets, strict=True):
            if target:
                view(ByteInterval(target, target + size))[:] = mram[offset : offset + size]


def array(name: str, data: npt.NDArray[Any]) -> Array:
    tensor = Tensor(data)
    storage = tensor.untyped_storage()
    return Array(name, tensor.data_ptr(), storage.data_ptr(), storage.data_ptr() + storage.nbytes(), data.itemsize)


# An argument on a DPU: returns the element at an index from it, as an array over MRAM.
Pointer = Callable[[int], npt.NDArray[Any]]
# A program's effect; the first parameter is its number.
Program = Callable[[int, Sequence[Pointer]], None]


def run(plan: LaunchPlan, dpus: int, data: Sequence[npt.NDArray[Any]], program: Program) -> None:
    """Do what the driver does, with `program` on the memories in place of a DPU program."""
    memories = Memories(dpus, data)

    def pointer(one: Round, k: int, i: int) -> Pointer:
        """Return argument i on DPU k."""
        region = next(region for region in one.regions if i in region.arguments)
        held = region.held[k]

        def element(index: int) -> npt.NDArray[Any]:
            assert held is not None
            place = region.offset + Tensor(data[i]).data_ptr() - held.low
            assert (HEAP + place) % ALIGNMENT == Tensor(data[i]).data_ptr() % ALIGNMENT
            low = place + index * data[i].itemsize
            assert region.offset <= low < region.offset + region.size
            return memories.mram[k][low : low + data[i].itemsize].view(data[i].dtype)

        return element

    for one in plan.rounds:
        send(memories, one)  # type: ignore[arg-type]
        for k, (first, count) in enumerate(one.programs):
            for p in range(first, first + count):
                program(p, [pointer(one, k, i) for i in range(len(data))])
        receive(memories, one)  # type: ignore[arg-type]


def planned(
    data: Sequence[npt.NDArray[Any]],
    footprint: Callable[[int, int], Mapping[int, Footprint]],
    *,
    programs: int,
    dpus: int,
    capacity: int = MRAM,
    wanted: Mapping[str, Placement] | None = None,
) -> LaunchPlan:
    return plan_launch(
        {i: array("xyz"[i], one) for i, one in enumerate(data)},
        lambda bounds: [footprint(*ends) for ends in pairwise(bounds)],
        programs=programs,
        dpus=dpus,
        heap=HEAP,
        capacity=capacity,
        wanted=wanted or {},
    )


def blocks(item: int, n: int, block: int) -> Callable[[int, int], Mapping[int, Footprint]]:
    """Return footprints of programs that read a block of x and write a block of y."""

    def footprint(first: int, last: int) -> Mapping[int, Footprint]:
        span = Span(item * first * block, item * min(last * block, n))
        return {0: Footprint(span, None, False), 1: Footprint(None, span, True)}

    return footprint


def tripled(n: int, block: int) -> Program:
    def program(p: int, at: Sequence[Pointer]) -> None:
        for i in range(p * block, min((p + 1) * block, n)):
            at[1](i)[:] = 3 * at[0](i)

    return program


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.float32, np.int64])
@pytest.mark.parametrize(("n", "block", "dpus"), [(100, 10, 4), (64, 8, 8), (1, 4, 1), (97, 5, 7), (33, 1, 33)])
def test_blocks_are_computed_where_their_bytes_are(n: int, block: int, dpus: int, dtype: Any) -> None:
    x, y = (np.arange(n + 7) % 40).astype(dtype), np.full(n + 9, 77, dtype)
    programs = -(-n // block)
    for first in range(4):  # every alignment
        y[:] = 77
        data = [x[first : first + n], y[first : first + n]]
        plan = planned(data, blocks(x.itemsize, n, block), programs=programs, dpus=dpus)
        run(plan, dpus, data, tripled(n, block))
        assert np.array_equal(y[first : first + n], 3 * x[first : first + n])
        assert (y[:first] == 77).all() and (y[first + n :] == 77).all()


def test_arrays_of_a_launch_larger_than_mram_take_several_rounds() -> None:
    n, block = 1000, 10
    x, y = np.arange(n, dtype=np.int32), np.zeros(n, np.int32)
    plan = planned([x, y], blocks(4, n, block), programs=100, dpus=4, capacity=512)
    assert len(plan.rounds) > 1000 * 8 // (4 * 512)
    assert all(region.offset + region.size <= 512 for one in plan.rounds for region in one.regions)
    run(plan, 4, [x, y], tripled(n, block))
    assert np.array_equal(y, 3 * x)


def test_a_last_round_may_leave_dpus_without_work() -> None:
    x, y = np.arange(50, dtype=np.int64), np.zeros(50, np.int64)
    plan = planned([x, y], blocks(8, 50, 10), programs=5, dpus=4, capacity=200)
    assert [one.programs for one in plan.rounds] == [((0, 1), (1, 1), (2, 1), (3, 1)), ((4, 1), (5, 0), (5, 0), (5, 0))]
    run(plan, 4, [x, y], tripled(50, 10))
    assert np.array_equal(y, 3 * x)


def test_one_program_that_needs_more_than_mram_is_refused_with_the_numbers() -> None:
    x, y = np.zeros(100, np.int32), np.zeros(100, np.int32)

    def footprint(first: int, last: int) -> Mapping[int, Footprint]:
        return {0: Footprint(EVERYTHING, None, False), 1: Footprint(None, Span(0, 4), True)}

    with pytest.raises(MemoryExceeded, match=r"needs \d+ bytes of MRAM, a DPU has room for 300: x 4\d\d of 400 bytes"):
        planned([x, y], footprint, programs=4, dpus=2, capacity=300)


def test_an_argument_given_twice_has_one_copy_on_a_dpu() -> None:
    x = np.arange(40, dtype=np.int32)
    plan = planned([x, x], blocks(4, 40, 10), programs=4, dpus=3)
    assert [region.arguments for region in plan.rounds[0].regions] == [(0, 1)]
    run(plan, 3, [x, x], tripled(40, 10))
    assert np.array_equal(x, 3 * np.arange(40))


def test_views_apart_in_one_array_are_separate_on_dpus() -> None:
    base = np.arange(100, dtype=np.int32)
    plan = planned([base[:40], base[50:90]], blocks(4, 40, 10), programs=4, dpus=3)
    assert [region.arguments for region in plan.rounds[0].regions] == [(0,), (1,)]
    run(plan, 3, [base[:40], base[50:90]], tripled(40, 10))
    assert np.array_equal(base, [*range(50), *(3 * i for i in range(40)), *range(90, 100)])


def interleaved(dpus: int) -> tuple[npt.NDArray[Any], LaunchPlan]:
    """Return 160 elements and a plan: each of 16 programs writes every sixteenth, the first 9 of 10. Hulls overlap."""
    y = np.arange(160, dtype=np.int16)

    def footprint(first: int, last: int) -> Mapping[int, Footprint]:
        return {0: Footprint(None, Span(2 * first, 2 * (last + 144)), False)}

    return y, planned([y], footprint, programs=16, dpus=dpus)


@pytest.mark.parametrize("dpus", [1, 2, 5, 16])
def test_bytes_that_each_dpu_changed_are_merged(dpus: int) -> None:
    y, plan = interleaved(dpus)

    def program(p: int, at: Sequence[Pointer]) -> None:
        for i in range(9):
            at[0](16 * i + p)[:] = -1000 * p - i

    run(plan, dpus, [y], program)
    expected = [-1000 * (i % 16) - i // 16 if i < 144 else i for i in range(160)]
    assert np.array_equal(y, expected)


def test_an_element_that_several_dpus_store_is_one_dpus_and_no_mixture() -> None:
    y = np.array([0x0102, 5], np.int16)
    plan = planned([y], lambda first, last: {0: Footprint(None, Span(0, 2), False)}, programs=2, dpus=2)

    def program(p: int, at: Sequence[Pointer]) -> None:
        at[0](0)[:] = (0x0103, 0x0202)[p]  # each program changes another byte

    run(plan, 2, [y], program)
    assert y[0] in (0x0103, 0x0202)
    assert y[1] == 5


def test_elements_that_no_program_writes_keep_their_values() -> None:
    y = np.arange(64, dtype=np.int32)
    plan = planned(
        [y], lambda first, last: {0: Footprint(None, Span(64 * first, 64 * last), False)}, programs=4, dpus=4
    )

    def program(p: int, at: Sequence[Pointer]) -> None:
        at[0](16 * p + 3)[:] = -p

    run(plan, 4, [y], program)
    assert np.array_equal(y, [-(i // 16) if i % 16 == 3 else i for i in range(64)])


def test_outputs_that_are_written_whole_are_not_sent() -> None:
    x, y = np.zeros(40, np.int32), np.zeros(40, np.int32)
    sent = [region.sent for region in planned([x, y], blocks(4, 40, 10), programs=4, dpus=2).rounds[0].regions]
    assert sent == [True, False]


def test_a_replicated_output_is_merged() -> None:
    x, y = np.arange(40, dtype=np.int32), np.full(40, 7, np.int32)
    wanted = dict.fromkeys("xy", Placement.REPLICATED)
    plan = planned([x, y], blocks(4, 40, 10), programs=4, dpus=4, wanted=wanted)
    for i, one in enumerate([x, y]):
        placed, size = plan.placements[i]
        assert (placed.placement, placed.why) == (Placement.REPLICATED, "as asked")
        assert size == one.nbytes + Tensor(one).data_ptr() % ALIGNMENT
    run(plan, 4, [x, y], tripled(40, 10))
    assert np.array_equal(y, 3 * x)


def test_request_to_shard_an_unshardable_array_is_refused() -> None:
    x = np.zeros(40, np.int32)
    with pytest.raises(MemoryExceeded, match="x cannot be sharded"):
        planned(
            [x],
            lambda first, last: {0: Footprint(EVERYTHING, None, False)},
            programs=2,
            dpus=2,
            wanted={"x": Placement.SHARDED},
        )


def test_a_span_beyond_both_ends_of_an_array_is_a_guess() -> None:
    x = np.zeros(40, np.int32)
    plan = planned([x], lambda first, last: {0: Footprint(Span(-8, 168), None, False)}, programs=2, dpus=2)
    assert plan.placements[0][0].placement is Placement.REPLICATED
    # A span beyond one end is normal: the last, masked iteration of a loop has one.
    plan = planned([x], lambda first, last: {0: Footprint(Span(80 * first, 168), None, False)}, programs=2, dpus=2)
    assert plan.placements[0][0].placement is Placement.SHARDED


def test_array_that_all_programs_reach_is_called_replicated() -> None:
    x = np.zeros(40, np.int32)
    plan = planned([x], lambda first, last: {0: Footprint(Span(40, 80), None, False)}, programs=2, dpus=2)
    placed, size = plan.placements[0]
    assert (placed.placement, placed.why) == (Placement.REPLICATED, "all programs reach the same bytes")
    assert size < 80


@pytest.mark.parametrize("seed", range(200))
def test_random_footprints_and_views_give_what_one_memory_gives(seed: int) -> None:
    """Compare programs on views of one buffer, with footprints of random width, with a plain loop."""
    chosen = random.Random(seed)
    dtype = np.dtype(chosen.choice([np.int8, np.int16, np.int32, np.float64]))
    n, block = chosen.randrange(1, 120), chosen.randrange(1, 12)
    programs = -(-n // block)
    dpus = chosen.randrange(1, min(programs, 9) + 1)
    stride = chosen.choice([1, 1, 2, 3])
    buffer = np.arange(8 * n * stride + 100).astype(dtype)
    step = n * stride + chosen.randrange(20)
    first = chosen.randrange(16)
    views = [buffer[first + k * step :][: n * stride] for k in (0, 1, 2)]
    if chosen.random() < 0.3:
        views[1] = views[0]
    if chosen.random() < 0.3:
        views[2] = views[0]  # it is also written: in place
    data = views if chosen.random() < 0.7 else [views[0].copy(), *views[1:]]
    wide = [chosen.choice([0, 0, 1, 40]) for _ in range(4)]
    everything = [chosen.random() < 0.1 for _ in range(3)]

    def footprint(begin: int, end: int) -> Mapping[int, Footprint]:
        low, high = begin * block * stride, (min(end * block, n) - 1) * stride + 1
        read = Span(dtype.itemsize * (low - wide[0]), dtype.itemsize * (high + wide[1]))
        exact = wide[2] == wide[3] == 0 and stride == 1
        written = Span(dtype.itemsize * (low - wide[2]), dtype.itemsize * (high + wide[3]))
        return {
            0: Footprint(EVERYTHING if everything[0] else read, None, False),
            1: Footprint(EVERYTHING if everything[1] else read, None, False),
            2: Footprint(None, EVERYTHING if everything[2] else written, exact and not everything[2]),
        }

    def program(p: int, at: Sequence[Pointer]) -> None:
        for i in range(p * block, min((p + 1) * block, n)):
            at[2](i * stride)[:] = at[0](i * stride) + 2 * at[1](i * stride)

    one_memory = buffer.copy()
    before = [one.copy() for one in data]
    capacity = chosen.choice([MRAM, MRAM, 4096])
    try:
        plan = planned(data, footprint, programs=programs, dpus=dpus, capacity=capacity)
    except MemoryExceeded:
        assert capacity == 4096
        return
    with np.errstate(all="ignore"):
        run(plan, dpus, data, program)
        expected = before[2].copy()
        expected[: n * stride : stride] = (before[0] + 2 * before[1])[: n * stride : stride]
    assert np.array_equal(data[2], expected)
    at = first + next(k for k, view in enumerate(views) if view is views[2] or (k == 0 and views[2] is views[0])) * step
    if data[2] is views[2]:
        one_memory[at : at + n * stride] = expected
        assert np.array_equal(buffer, one_memory)
