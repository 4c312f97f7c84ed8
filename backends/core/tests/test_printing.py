"""Prints and assertions in kernels: each line once, in order, with the right text; a failure is an exception."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.log import DeviceAssertionError
from foundry_core.tensor import Tensor
from image import BACKEND


@triton.jit
def integers(a, b, c, d, e, f, g, h, scalar, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.device_print("a", tl.load(a + i), tl.load(b + i))
    tl.device_print("c: ", tl.load(c + i), tl.load(d + i))
    tl.device_print(" e", tl.load(e + i), tl.load(f + i), hex=True)
    tl.device_print("", tl.load(g + i), tl.load(h + i))
    tl.device_print("scalar", scalar)
    tl.device_print("100% of %s {}", tl.load(c + i) > 0)
    print("nothing")


def test_integers_are_printed_with_their_signs_and_in_hexadecimal(capsys: pytest.CaptureFixture[str]) -> None:
    kinds = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64)
    arrays = [np.array([np.iinfo(kind).min, np.iinfo(kind).max, 0, 1], kind) for kind in kinds]
    integers[(1,)](*map(Tensor, arrays), -7, BLOCK=4)
    expected = []
    for prefix, pair in (("a", arrays[:2]), ("c", arrays[2:4]), ("e", arrays[4:6]), ("", arrays[6:])):
        for operand, (at, value) in itertools.product(range(2), enumerate(zip(*pair, strict=True))):
            number, bits = int(value[operand]), 8 * pair[operand].itemsize
            text = f"0x{number % (1 << bits):0{bits // 4}x}" if prefix == "e" else str(number)
            expected.append(f"pid (0, 0, 0) idx ({at}){f' {prefix}' if prefix else ''}: (operand {operand}) {text}")
    expected.append("pid (0, 0, 0) idx () scalar: -7")
    expected += [f"pid (0, 0, 0) idx ({at}) 100% of %s {{}}: {int(value > 0)}" for at, value in enumerate(arrays[2])]
    expected.append("pid (0, 0, 0) nothing")
    assert capsys.readouterr().out.splitlines() == expected


@triton.jit
def pointers(x, TILES: tl.constexpr, BLOCK: tl.constexpr):
    tl.device_print("x", x)
    if TILES:
        tl.device_print("tile", (x + 3 * tl.arange(0, BLOCK))[:, None])


def test_pointers_are_printed_as_addresses(capsys: pytest.CaptureFixture[str]) -> None:
    x = np.zeros(16, np.int16)
    pointers[(1,)](Tensor(x), TILES=BACKEND != "dpu", BLOCK=4)
    first, *others = capsys.readouterr().out.splitlines()
    start, address = first.split(": ")
    assert start == "pid (0, 0, 0) idx () x"
    tile = [f"pid (0, 0, 0) idx ({i}, 0) tile: {int(address, 16) + 6 * i:#x}" for i in range(4)]
    assert others == ([] if BACKEND == "dpu" else tile)


@triton.jit
def in_the_order_of_the_program(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    pid = tl.program_id(0) + tl.program_id(2)
    if pid > 0:
        # Not what the first program writes: programs are in no order.
        tl.device_print("before", tl.load(x + BLOCK + i))
    tl.store(x + i, tl.load(x + i, mask=pid == 0) * 2, mask=pid == 0)
    for j in range(n):
        if j % 2 == 0:
            tl.device_print("even", j)
        else:
            tl.device_print("odd", tl.sum(tl.load(x + i)), tl.program_id(2))
    k = 0
    while k < n:
        k += 2
        tl.device_print("k", k)
    tl.device_print("tile", (i[:, None] * 10 + tl.arange(0, 16)[None, :])[None, :, :])
    if pid == 0:
        tl.device_print("after", tl.load(x + i))


def test_lines_are_in_the_order_of_programs_and_statements_and_obey_conditions(
    capsys: pytest.CaptureFixture[str],
) -> None:
    x = np.arange(1, 5, dtype=np.int32)
    in_the_order_of_the_program[(1, 1, 1)](Tensor(x), 3, BLOCK=2)
    in_the_order_of_the_program[(2, 1, 2)](Tensor(x), 0, BLOCK=2)

    def tile(program: tuple[int, int, int]) -> list[str]:
        return [f"pid {program} idx (0, {r}, {c:2}) tile: {r * 10 + c}" for r in range(2) for c in range(16)]

    here = "pid (0, 0, 0) idx"
    expected = [f"{here} () even: 0", f"{here} () odd: (operand 0) 6", f"{here} () odd: (operand 1) 0"]
    expected += [f"{here} () even: 2", f"{here} () k: 2", f"{here} () k: 4", *tile((0, 0, 0))]
    expected += [f"{here} (0) after: 2", f"{here} (1) after: 4"]
    printed = capsys.readouterr().out.splitlines()
    assert printed[: len(expected)] == expected
    rest = [line for line in printed[len(expected) :] if "before" not in line and "after" not in line]
    assert rest == [line for program in ((0, 0, 0), (1, 0, 0), (0, 0, 1), (1, 0, 1)) for line in tile(program)]
    assert x.tolist() == [4, 8, 3, 4]


@triton.jit
def by_many_programs(x, BLOCK: tl.constexpr):
    tl.device_print("x", tl.load(x + tl.arange(0, BLOCK)) + tl.program_id(0) + 100 * tl.program_id(1))


@pytest.mark.parametrize("lines", [1 << 17, 1000])
def test_many_programs_print_each_line_once_and_say_what_is_lost(
    lines: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOUNDRY_PRINT_LINES", str(lines))
    (by_many_programs.device_caches if hasattr(by_many_programs, "device_caches") else by_many_programs.cache).clear()
    x = np.arange(128, dtype=np.int32)
    # One DPU, because each has a log.
    options = {"num_dpus": 1} if BACKEND == "dpu" else {}
    by_many_programs[(20, 2)](Tensor(x), BLOCK=128, **options)
    captured = capsys.readouterr()
    programs = [(i, j) for j in range(2) for i in range(20)]
    expected = [f"pid ({i}, {j}, 0) idx ({k:3}) x: {k + i + 100 * j}" for i, j in programs for k in range(128)]
    printed = captured.out.splitlines()
    if lines > 40 * 128:
        assert printed == expected
        assert captured.err == ""
    else:
        assert len(printed) == lines
        assert len(set(printed)) == lines
        assert set(printed) <= set(expected)
        assert f"printed 5120 values, of which {5120 - lines} are lost" in captured.err


@triton.jit
def positive(v):
    tl.device_assert(v > 0, "not positive")
    return v


@triton.jit
def asserting(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.store(out + i, v)
    assert n < 100, "too many"
    tl.device_assert(v < 50)
    v = positive(v[None, :])
    tl.device_print("n", n)
    tl.static_assert(BLOCK == 8, "compiled in")


def launch_asserting(x: np.ndarray, n: int, **options: Any) -> np.ndarray:
    out = np.full(x.size, 77, np.int32)
    try:
        asserting[(x.size // 8,)](Tensor(x), Tensor(out), n, BLOCK=8, **options)
    finally:
        np.testing.assert_array_equal(out, x)
    return out


def line_of(text: str) -> int:
    return 1 + next(at for at, line in enumerate(Path(__file__).read_text().splitlines()) if text in line)


def test_a_failed_assertion_is_an_exception_with_its_place_program_and_element(
    capsys: pytest.CaptureFixture[str],
) -> None:
    x = np.arange(1, 33, dtype=np.int32)
    launch_asserting(x, 5, debug=True)
    bad = x.copy()
    bad[[13, 15, 30]] = 0, -3, 99
    for failure, where, message, program, index, count in (
        (lambda: launch_asserting(bad, 5, debug=True), "assert(v > 0", "not positive", 1, (0, 5), 3),
        (lambda: launch_asserting(x, 100, debug=True), "assert n < 100", "too many", 0, (), 4),
    ):
        with pytest.raises(DeviceAssertionError) as caught:
            failure()
        error = caught.value
        assert isinstance(error, RuntimeError)
        assert (error.kernel, error.message, error.count) == ("asserting", message, count)
        assert (error.program, error.index) == ((program, 0, 0), index)
        assert (error.file, error.line) == (__file__, line_of(where))
        assert f"{__file__}:{error.line}" in str(error) and f"program ({program}, 0, 0)" in str(error)
    # The next launch works.
    launch_asserting(x, 5, debug=True)
    # Without debug there is no assertion.
    launch_asserting(bad, 100, debug=False)
    assert capsys.readouterr().out.count("n: 5") >= 8


@triton.jit
def reaching(x, out, steps, n, count, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.int32)
    for j in range(4):
        step = tl.load(steps + pid * 4 + j)
        if step % 2 == 0:
            tl.device_assert(step < n, "beyond the end")
        # Far outside of everything, unless the program has ended.
        total += tl.load(x + step.to(tl.int64) * 1048576 + i)
        tl.store(out + pid * BLOCK + i, total)
    while count > 0:
        count -= 1
        assert count != 5, "five"
        tl.store(out + pid * BLOCK + i, tl.load(out + pid * BLOCK + i) + 100)
    assert total > 0, "not positive"
    tl.store(out + pid * BLOCK + i, total * 1000)


def test_a_failed_assertion_ends_its_program_and_no_other() -> None:
    x, out = np.arange(1, 9, dtype=np.int32), np.full((5, 8), 77, np.int32)
    big = 2**30
    steps = np.array([[0, 0, 0, 0], [0, 0, big, big], [big, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]], np.int32)
    with pytest.raises(DeviceAssertionError, match="beyond the end") as caught:
        reaching[(5,)](Tensor(x), Tensor(out), Tensor(steps), 8, 0, BLOCK=8, debug=True)
    assert (caught.value.count, caught.value.program) == (2, (1, 0, 0))
    np.testing.assert_array_equal(out, [x * 4000, x * 2, [77] * 8, x * 4000, x * 4000])
    x[3] = -1
    steps[:] = 0
    for count, message, stored in ((5, "not positive", x * 4 + 500), (8, "five", x * 4 + 200)):
        with pytest.raises(DeviceAssertionError, match=message) as caught:
            reaching[(1,)](Tensor(x), Tensor(out), Tensor(steps), 8, count, BLOCK=8, debug=True)
        assert (caught.value.count, caught.value.index) == (1, (3,) if message == "not positive" else ())
        np.testing.assert_array_equal(out[0], stored)


@triton.jit
def adding_while(x, out, count, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total, turn = tl.zeros((BLOCK,), tl.int32), 0
    while turn < count:
        tile = tl.load(x + turn * BLOCK + i)
        tl.device_assert(tile < 50, "too large")
        total = tl.maximum(total + tile, tl.max(tile, 0))
        turn += 1
    tl.store(out + i, total)
    tl.store(out + BLOCK, turn)


@pytest.mark.parametrize("count", [0, 1, 3, 4])
def test_a_while_loop_carries_what_follows_an_assertion(count: int) -> None:
    x, out = np.arange(32, dtype=np.int32).reshape(4, 8), np.full(9, 77, np.int32)
    x[3, 5] = 50
    expected = np.zeros(8, np.int32)
    for tile in x[:count]:
        expected = np.maximum(expected + tile, tile.max())
    if count == 4:
        with pytest.raises(DeviceAssertionError, match="too large") as caught:
            adding_while[(1,)](Tensor(x), Tensor(out), count, BLOCK=8, debug=True)
        assert (caught.value.count, caught.value.index) == (1, (5,))
        assert (out == 77).all()
    else:
        adding_while[(1,)](Tensor(x), Tensor(out), count, BLOCK=8, debug=True)
        np.testing.assert_array_equal(out, [*expected, count])


@triton.jit
def plain(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), tl.load(x + tl.arange(0, BLOCK)) + 1)


@pytest.mark.skipif(BACKEND == "vsi", reason="zen-compiler keeps no intermediate form")
def test_a_kernel_without_prints_takes_no_log() -> None:
    kernel = plain[(1,)](Tensor(np.zeros(8, np.float32)), BLOCK=8, debug=True)
    assert "%log" not in kernel.asm["mlir"]
    assert kernel.metadata.sites == []
