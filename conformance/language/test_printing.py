"""tl.device_print, tl.device_assert, print and assert: every line and every failure, for all types and shapes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from checking import DTYPES, FLOATS, INTEGERS, check, launch, operand, poisoned
from foundry_core.log import DeviceAssertionError

COUNT = 64


def lines(array: np.ndarray, name: str, *, hexadecimal: bool = False, programs: int = 1) -> list[str]:
    """Return what a tile, or an array of rank 0 for a scalar, prints in each program of a grid."""
    found = []
    for program in range(programs):
        for at in np.ndindex(array.shape):
            index = ", ".join(f"{i:{math.ceil(math.log10(n))}}" for i, n in zip(at, array.shape, strict=True))
            found.append(f"pid ({program}, 0, 0) idx ({index}) {name}: {text(array[at], hexadecimal)}")
    return found


def text(value: Any, hexadecimal: bool) -> str:
    if value.dtype == np.bool_:
        return str(int(value))
    if np.issubdtype(value.dtype, np.integer):
        bits = 8 * value.dtype.itemsize
        return f"0x{int(value) % (1 << bits):0{bits // 4}x}" if hexadecimal else str(int(value))
    number = float(value)
    if not hexadecimal or not math.isfinite(number):
        return f"{number:f}"
    digits, exponent = number.hex().split("p")
    whole, _, fraction = digits.partition(".")
    fraction = fraction.rstrip("0")
    return f"{whole}{'.' if fraction else ''}{fraction}p{exponent}"


@triton.jit
def printing(x, BLOCK: tl.constexpr, HEX: tl.constexpr):
    tl.device_print("value", tl.load(x + tl.arange(0, BLOCK)), hex=HEX)
    tl.device_print("first", tl.load(x), hex=HEX)


@pytest.mark.parametrize("hexadecimal", [False, True], ids=["decimal", "hexadecimal"])
@pytest.mark.parametrize("name", DTYPES)
def test_values(name: str, hexadecimal: bool, capsys: pytest.CaptureFixture[str]) -> None:
    x = operand(DTYPES[name], 1, COUNT)
    launch(printing, (2,), x, BLOCK=COUNT, HEX=hexadecimal)
    both = [(lines(x, "value", hexadecimal=hexadecimal), lines(x[0].reshape(()), "first", hexadecimal=hexadecimal))]
    one = [*both[0][0], *both[0][1]]
    expected = one + [line.replace("pid (0,", "pid (1,") for line in one]
    # Which NaN it is has no text.
    assert [line.replace("-nan", "nan") for line in capsys.readouterr().out.splitlines()] == expected


@triton.jit
def reshaped(x, SHAPE: tl.constexpr, BLOCK: tl.constexpr):
    value = tl.load(x + tl.arange(0, BLOCK))
    tl.device_print("shaped", tl.reshape(value, SHAPE))
    tl.device_print("large", tl.reshape(value, SHAPE) > 3)


@pytest.mark.parametrize(
    "shape", [(1,), (2,), (16,), (1, 1), (2, 8), (16, 1), (1, 16, 2), (2, 4, 4), (2, 1, 4, 2), (2, 2, 1, 2, 2)]
)
def test_shapes(shape: tuple[int, ...], capsys: pytest.CaptureFixture[str]) -> None:
    x = np.arange(math.prod(shape), dtype=np.int32)
    launch(reshaped, (1,), x, SHAPE=shape, BLOCK=x.size)
    expected = lines(x.reshape(shape), "shaped") + lines(x.reshape(shape) > 3, "large")
    assert capsys.readouterr().out.splitlines() == expected


@triton.jit
def computing(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tile = tl.load(x + i[:, None] * N + i[None, :])
    product = tl.dot(tile, tl.trans(tile))
    tl.device_print("product", product)
    sums = tl.sum(product, 1)
    tl.device_print("sums", sums)
    tl.device_print("most", tl.max(sums, 0))
    product += sums[:, None]
    tl.device_print("product", product)
    tl.store(out + i[:, None] * N + i[None, :], product)
    tl.device_print("again", tl.load(out + i[:, None] * N + i[None, :]) - sums[None, :])


def test_results_of_whole_tile_operations(capsys: pytest.CaptureFixture[str]) -> None:
    x = np.random.default_rng(2).integers(-3, 4, (16, 16)).astype(np.float32)
    out = poisoned(16, 16, dtype=np.float32)
    launch(computing, (1,), x, out, N=16)
    product = x @ x.T
    sums = product.sum(1)
    after = product + sums[:, None]
    expected = [*lines(product, "product"), *lines(sums, "sums"), *lines(sums.max().reshape(()), "most")]
    expected += [*lines(after, "product"), *lines(after - sums[None, :], "again")]
    assert capsys.readouterr().out.splitlines() == expected
    check(out, after)


@triton.jit(noinline=True)
def told(x):
    tl.device_print("told", x)
    tl.device_assert(x < 100, "told too much")


@triton.jit
def nested(n):
    for i in range(n):
        for j in range(i):
            if (i + j) % 2 == 1:
                print("odd", i, j)
            elif j > 1:
                tl.device_print("even", i * 10 + j)
        told(i)
        tl.device_print("rest")
    if n == 1:
        return
    tl.device_print("end")


@pytest.mark.parametrize("n", [0, 1, 7])
def test_control_flow(n: int, capsys: pytest.CaptureFixture[str]) -> None:
    launch(nested, (1,), n)
    here, expected = "pid (0, 0, 0)", []
    for i in range(n):
        for j in range(i):
            if (i + j) % 2 == 1:
                expected += [f"{here} idx () odd: (operand 0) {i}", f"{here} idx () odd: (operand 1) {j}"]
            elif j > 1:
                expected.append(f"{here} idx () even: {i * 10 + j}")
        expected.append(f"{here} idx () told: {i}")
        expected.append(f"{here} rest")
    if n != 1:
        expected.append(f"{here} end")
    assert capsys.readouterr().out.splitlines() == expected


@triton.jit
def constant(CONDITION: tl.constexpr, MASK: tl.constexpr):
    tl.device_assert(CONDITION, "constant", mask=MASK)


@pytest.mark.skipif(triton.__version__.startswith("3.2"), reason="this release has no masks of assertions")
@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("mask", [None, False, True])
@pytest.mark.parametrize("condition", [False, True])
def test_constant_conditions(condition: bool, mask: bool | None, debug: bool) -> None:
    if debug and not condition and mask is not False:
        with pytest.raises(RuntimeError, match="constant"):
            constant[(1,)](condition, mask, debug=debug)
    else:
        constant[(1,)](condition, mask, debug=debug)


@triton.jit
def bounded(x, out, low, high, n, N: tl.constexpr):
    i = tl.arange(0, N)
    total = tl.zeros((N, N), tl.float32)
    for j in range(n):
        tile = tl.load(x + j * N * N + i[:, None] * N + i[None, :])
        total = tl.dot(tile, tile, total)
        tl.device_assert((tile >= low) & (tile <= high), 'out of bounds: größer "≥" {0} 100%\\')
        tl.store(out + i[:, None] * N + i[None, :], total)
    tl.store(out + i[:, None] * N + i[None, :], total + 1)


@pytest.mark.parametrize("bad", [(), ((1, 3, 5),), ((0, 15, 15), (2, 0, 0)), ((2, 1, 0), (2, 1, 2))])
def test_an_assertion_in_a_loop(bad: tuple[tuple[int, int, int], ...]) -> None:
    x = np.random.default_rng(3).integers(-3, 4, (3, 16, 16)).astype(np.float32)
    for place in bad:
        x[place] = 4
    out = poisoned(16, 16, dtype=np.float32)
    before = out.array.copy()
    if not bad:
        launch(bounded, (1,), x, out, -3, 3, 3, N=16, debug=True)
        check(out, sum(tile @ tile for tile in x.astype(np.float64)) + 1)
        return
    with pytest.raises(DeviceAssertionError, match="out of bounds") as caught:
        launch(bounded, (1,), x, out, -3, 3, 3, N=16, debug=True)
    first = bad[0][0]
    assert caught.value.message == 'out of bounds: größer "≥" {0} 100%\\'
    assert caught.value.index == bad[0][1:]
    assert caught.value.count == sum(place[0] == first for place in bad)
    if first == 0:
        np.testing.assert_array_equal(out.array, before)
    else:
        check(out, sum(tile @ tile for tile in x[:first].astype(np.float64)))


@triton.jit
def adding(x, y, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) + tl.load(y + i))


@pytest.mark.parametrize("name", [*INTEGERS, *FLOATS])
def test_overflow_is_reported_with_debug(name: str) -> None:
    kind = DTYPES[name]
    x, y = np.ones(COUNT, kind), np.ones(COUNT, kind)
    checked = name in INTEGERS and np.dtype(kind).itemsize < 8
    x[5] = np.iinfo(kind).max if name in INTEGERS else 1
    out = poisoned(COUNT, dtype=kind)
    if checked:
        with pytest.raises(DeviceAssertionError, match="overflow") as caught:
            launch(adding, (1,), x, y, out, BLOCK=COUNT, debug=True)
        assert (caught.value.count, caught.value.index) == (1, (5,))
    else:
        launch(adding, (1,), x, y, out, BLOCK=COUNT, debug=True)
    with np.errstate(over="ignore"):
        check(out, x + y if name in INTEGERS else (x + y).astype(np.float64))
