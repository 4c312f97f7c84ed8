"""Comparisons, choices, minima and maxima; NaN is unordered."""

from __future__ import annotations

import numpy as np
import pytest
from checking import DTYPES, FLOATS, Array, check, compute, operand

pytestmark = pytest.mark.values

ORDER = {
    "a == b": np.equal,
    "a != b": np.not_equal,
    "a < b": np.less,
    "a <= b": np.less_equal,
    "a > b": np.greater,
    "a >= b": np.greater_equal,
}


@pytest.mark.operation("<, <=, ==, !=, >=, >")
@pytest.mark.parametrize("dtype", DTYPES)
def test_order(dtype: str) -> None:
    """Test all six comparisons at once: each one is a bit of the result."""
    a, b = operand(DTYPES[dtype], 1), operand(DTYPES[dtype], 2)
    b[::7] = a[::7]
    check_order(a, b)


def check_order(a: Array, b: Array, left: str = "a", right: str = "b") -> None:
    """Compare two operands in all ways; `left` and `right` are expressions of them."""
    both = {"a": left, "b": right}
    compared = [" ".join(both.get(word, word) for word in each.split()) for each in ORDER]
    expression = " | ".join(f"(({each}).to(tl.int8) << {bit})" for bit, each in enumerate(compared))
    reference = sum(compare(a, b).astype(np.int8) << bit for bit, compare in enumerate(ORDER.values()))
    check(compute(expression, np.int8, a=a, b=b), np.asarray(reference, np.int8))


@pytest.mark.operation("<, <=, ==, !=, >=, >", type="i1")
@pytest.mark.parametrize("count", [4, 300])
def test_false_is_less_than_true(count: int) -> None:
    """SPIR-V compares booleans as no numbers, and MLIR as signed ones of one bit."""
    a, b = (np.resize(np.array(each, bool), count) for each in ([0, 0, 1, 1], [0, 1, 0, 1]))
    check_order(a, b)
    for left, right in ((0, 2), (2, 0), (2, 3)):
        check_order(np.full(1, a[left]), np.full(1, a[right]), "tl.load(a_ptr)", "tl.load(b_ptr)")


@pytest.mark.operation("tl.where")
@pytest.mark.parametrize("dtype", DTYPES)
def test_where_takes_an_element_of_one_or_the_other(dtype: str) -> None:
    a, b = operand(DTYPES[dtype], 1), operand(DTYPES[dtype], 2)
    check(compute("tl.where(a < b, a, b)", DTYPES[dtype], a=a, b=b), np.where(a < b, a, b))


EXTREMES = {
    "tl.minimum(a, b)": np.fmin,
    "tl.maximum(a, b)": np.fmax,
    "tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)": np.minimum,
    "tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)": np.maximum,
}


@pytest.mark.operation("{expression}")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("expression", EXTREMES)
def test_minimum_and_maximum_treat_nan_as_asked(expression: str, dtype: str) -> None:
    a, b = operand(DTYPES[dtype], 1), operand(DTYPES[dtype], 2)
    if dtype in FLOATS:
        # It is not defined which of two zeros of different signs is the smaller one.
        a[a == 0], b[b == 0] = 0, 0
    wide = (a.astype(np.float64), b.astype(np.float64)) if dtype in FLOATS else (a, b)
    check(compute(expression, DTYPES[dtype], a=a, b=b), EXTREMES[expression](*wide))


@pytest.mark.operation("tl.clamp")
@pytest.mark.parametrize("dtype", FLOATS)
def test_clamp_keeps_what_is_within_and_nan_if_asked(dtype: str) -> None:
    """Of NaN, the result is one of the limits if not asked. Triton does not say which one."""
    a = operand(FLOATS[dtype], 1)
    a[a == 0] = 1
    reference = np.clip(a.astype(np.float64), -1.5, 2.0)
    check(compute("tl.clamp(a, -1.5, 2.0, propagate_nan=tl.PropagateNan.ALL)", FLOATS[dtype], a=a), reference)
    out = compute("tl.clamp(a, -1.5, 2.0)", FLOATS[dtype], a=a)
    nan = np.isnan(reference)
    assert np.isin(out.array[nan].astype(np.float64), [-1.5, 2.0]).all()
    out.array[nan] = np.nan
    check(out, reference)
