"""Aggregates: classes of tensors with methods, in loops, branches and functions."""

# Triton until 3.6 reads the annotations as classes, so they must not be text.

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from checking import check, launch, poisoned

aggregate: Any = getattr(tl.core, "_aggregate", None)
if aggregate is None:
    pytest.skip("this release of Triton has no aggregates", allow_module_level=True)


@aggregate
class Line:
    """A line for each element of a tile, all with one offset."""

    slope: tl.tensor
    offset: tl.tensor
    power: tl.constexpr

    @triton.constexpr_function
    def __init__(self, slope, offset, power):
        self.slope = slope
        self.offset = offset
        self.power = tl.constexpr(power)

    @triton.jit
    def at(self, x):
        y = self.slope * x + self.offset
        for _ in tl.static_range(self.power - 1):
            y *= self.slope * x + self.offset
        return y

    @triton.jit
    def steeper(self, by):
        return Line(self.slope + by, self.offset, self.power)


@aggregate
class Lines:
    """Two lines, and an array that they are stored in."""

    first: Line
    second: Line
    out: tl.tensor

    @triton.constexpr_function
    def __init__(self, first, second, out):
        self.first = first
        self.second = second
        self.out = out

    @triton.jit
    def store(self, i, x):
        tl.store(self.out + i, self.first.at(x) - self.second.at(x))


@triton.jit(noinline=True)
def turned(line, by):
    return line.steeper(by).offset + by


@triton.jit
def lines(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    line = Line(tl.load(x + i), n.to(tl.float32), 2)
    for k in range(n):
        if k % 2 == 0:  # noqa: SIM108  the form that is tested
            line = line.steeper(k)
        else:
            line = Line(line.slope, turned(line, 1.0), 2)
    Lines(line, Line(line.slope, line.offset, 1), out).store(i, 0.5)


@pytest.mark.operation("aggregate")
@pytest.mark.parametrize("n", [2, 5])
def test_aggregates_go_through_loops_branches_and_functions(n: int) -> None:
    """All numbers are multiples of a quarter and small, so f32 has them exactly."""
    x, out = np.arange(-16, 16, dtype=np.float32), poisoned(32, dtype=np.float32)
    launch(lines, (1,), x, out, n, BLOCK=32)
    slope, offset = x + sum(range(0, n, 2)), n + sum(1 for k in range(n) if k % 2)
    y = slope.astype(np.float64) * 0.5 + offset
    check(out, y * y - y)
