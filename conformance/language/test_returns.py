"""A return under a condition that is known only at run time: the other programs run the code after it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from checking import check, launch

BLOCK = 64
PROGRAMS = 8


@triton.jit
def early(x, n, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    if program >= n:
        return
    at = x + program * BLOCK + tl.arange(0, BLOCK)
    tl.store(at, tl.load(at) + 1)


@triton.jit
def several(x, n, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    at = x + program * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(at)
    if program == 1:
        tl.store(at, v * 2)
        return
    elif program == 2:  # noqa: RET505  the form that is tested
        v += 10
    elif program > n:
        return
    total = tl.sum(v, 0)
    if total > 1000:
        tl.store(at, v + total)
        return
    tl.store(at, v + 1)


@triton.jit
def meeting_behind_a_return(x, n, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    at = x + program * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(at)
    if program % 2 == 0:
        if program == n:
            return
        v += 1
    else:
        v += 2
    # Reached on two paths, one of them after a possible return.
    for i in range(3):
        v = v * 2 + i
    tl.store(at, v)


@triton.jit
def all_return(x, n, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    at = x + program * BLOCK + tl.arange(0, BLOCK)
    if program < n:
        tl.store(at, 5.0)
        return
    else:  # noqa: RET505  the form that is tested
        tl.store(at, 6.0)
        return


@triton.jit
def weight(program, n):
    if program > n:
        return 3.0
    if program == n:
        return 2.0
    return 1.0


@triton.jit
def in_a_function(x, n, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    at = x + program * BLOCK + tl.arange(0, BLOCK)
    tl.store(at, tl.load(at) * weight(program, n))


def run(kernel: Any, x: np.ndarray, n: int) -> np.ndarray:
    """Run a kernel. The array has space for one more program, which must stay unchanged."""
    data = np.concatenate([x, np.full(BLOCK, np.nan, np.float32)])
    launch(kernel, (PROGRAMS,), data, n, BLOCK=BLOCK)
    assert np.isnan(data[-BLOCK:]).all()
    return data[:-BLOCK].reshape(PROGRAMS, BLOCK)


@pytest.fixture
def x() -> np.ndarray:
    return np.random.default_rng(0).uniform(0, 4, PROGRAMS * BLOCK).astype(np.float32)


@pytest.mark.parametrize("n", [0, 3, 8])
def test_programs_that_return_at_once_store_nothing(x: np.ndarray, n: int) -> None:
    expected = x.reshape(PROGRAMS, BLOCK).copy()
    expected[:n] += 1
    check(run(early, x, n), expected)


def test_each_condition_has_its_return(x: np.ndarray) -> None:
    before = x.reshape(PROGRAMS, BLOCK).copy()
    before[4] += 30  # its sum is large
    result = run(several, before.ravel(), 5)
    expected = before.copy()
    expected[1] *= 2
    expected[2] = before[2] + 10 + 1
    for program in (0, 3, 5):
        expected[program] += 1
    expected[4] += before[4].astype(np.float64).sum()
    np.testing.assert_allclose(result, expected, rtol=BLOCK * 2.0**-24)
    check(result[6:], before[6:])


def test_programs_that_did_not_return_run_the_code_after_a_return(x: np.ndarray) -> None:
    rows = x.reshape(PROGRAMS, BLOCK)
    expected = rows.copy()
    expected[0::2] += 1
    expected[1::2] += 2
    for i in range(3):
        expected = expected * 2 + np.float32(i)
    expected[4] = rows[4]
    check(run(meeting_behind_a_return, x, 4), expected)


def test_all_ways_may_return(x: np.ndarray) -> None:
    result = run(all_return, x, 3)
    assert (result[:3] == 5).all()
    assert (result[3:] == 6).all()


def test_a_function_may_return_in_several_places(x: np.ndarray) -> None:
    weights = np.array([1, 1, 1, 2, 3, 3, 3, 3], np.float32)[:, None]
    check(run(in_a_function, x, 3), x.reshape(PROGRAMS, BLOCK) * weights)
