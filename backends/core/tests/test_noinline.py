"""Functions marked noinline: results, effects and returns at every place of a kernel; recursion is refused."""

from __future__ import annotations

import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.codegen.pipeline import to_structured, written_arguments
from foundry_core.errors import UnsupportedOperation
from image import RELEASE


@triton.jit(noinline=True)
def doubled_or_less_one(x, n):
    if n > 3:
        return x * 2, n + 1
    return x - 1, n


@triton.jit(noinline=True)
def scaled(p, i, y):
    v, n = doubled_or_less_one(tl.load(p + i), i)
    return v * y + n


@triton.jit(noinline=True)
def store_unless_negative(p, n):
    if n < 0:
        return
    tl.store(p, n)


@triton.jit(noinline=True)
def moved(p, i):
    return p + i


@triton.jit(noinline=True)
def halved(p, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(p + i, mask=i < n, other=0.0)
    tl.store(out + i, v / 2, mask=i < n)
    return tl.sum(v)


@triton.jit
def calling(x, out, n, y, BLOCK: tl.constexpr):
    total = 0.0
    for k in range(n):
        if k % 2 == 0:
            a, b = doubled_or_less_one(tl.load(x + k), k)
            total += a * b
        else:
            store_unless_negative(out + k, k - 3)
            tl.store(out + n + k, scaled(x, k, y))
    tl.store(moved(out, 2 * n), total)
    rest = out + 2 * n + 1
    # The second call reads what the first one stored.
    tl.store(rest, halved(x, rest + 2, n - 1, BLOCK))
    tl.store(rest + 1, halved(rest + 2, rest + 2, n - 2, BLOCK))


def test_calls_in_loops_and_branches_have_their_results_and_effects() -> None:
    n, y = 8, 3.0
    x, out = np.arange(1, n + 1, dtype=np.float32), np.full(4 * n, -77, np.float32)
    calling[(1,)](x, out, n, y, BLOCK=8)

    def first(v: float, k: int) -> tuple[float, int]:
        return (v * 2, k + 1) if k > 3 else (v - 1, k)

    expected, total = np.full(4 * n, -77.0), 0.0
    for k in range(n):
        a, b = first(float(x[k]), k)
        if k % 2 == 0:
            total += a * b
        else:
            if k >= 3:
                expected[k] = k - 3
            expected[n + k] = a * y + b
    rest = 2 * n + 1
    expected[2 * n : rest + 1] = total, x[: n - 1].sum()
    expected[rest + 2 : rest + 2 + n - 1] = x[: n - 1] / 2
    expected[rest + 1] = expected[rest + 2 : rest + 2 + n - 2].sum()
    expected[rest + 2 : rest + 2 + n - 2] /= 2
    np.testing.assert_array_equal(out, expected)  # all numbers are exact in f32


@triton.jit(noinline=True)
def factorial(n):
    if n <= 1:
        return 1
    return n * factorial(n - 1)


@triton.jit
def recursive(out, n):
    tl.store(out, factorial(n))


@triton.jit
def power(x, N: tl.constexpr):
    if N == 0:
        return 1
    else:  # noqa: RET505  Triton generates what follows an if
        return x * power(x, N - 1)


@triton.jit
def unrolled(out, n):
    tl.store(out, power(n, 5))


@triton.jit
def endless(x, N: tl.constexpr):
    return x * endless(x, N + 1)


@triton.jit
def never(out, n):
    tl.store(out, endless(n, 1))


@pytest.mark.skipif(RELEASE < (3, 3), reason="3.2 cannot hash a function that calls itself")
def test_recursion_is_refused_unless_it_ends_at_compile_time() -> None:
    out = np.full(1, -1, np.int32)
    for kernel, said in ((recursive, "factorial calls itself\n"), (never, "endless calls itself without end")):
        with pytest.raises(triton.compiler.errors.CompilationError, match=f"{said}(?s:.*)next: write a loop"):
            kernel[(1,)](out, 3)
    assert out[0] == -1
    unrolled[(1,)](out, 3)
    assert out[0] == 3**5


TTIR = """
tt.func public @k(%p: !tt.ptr<i32>, %q: !tt.ptr<i32>, %n: i32) {{
  %r = tt.call @"f.g"(%q, %n) : (!tt.ptr<i32>, i32) -> i32
  tt.return
}}
tt.func private @"f.g"(%to: !tt.ptr<i32>, %n: i32) -> i32 attributes {{noinline = true}} {{
  {body}
}}
"""


def test_pointer_that_a_function_stores_through_counts_as_written() -> None:
    ttir = TTIR.format(body="tt.store %to, %n : !tt.ptr<i32>\n tt.return %n : i32")
    assert written_arguments(ttir) == ([1], [1])
    text = to_structured(ttir)
    assert "tile.store %n to %q" in text and "call" not in text and "private" not in text


def test_a_recursion_in_ttir_is_refused() -> None:
    ttir = TTIR.format(body='%r = tt.call @"f.g"(%to, %n) : (!tt.ptr<i32>, i32) -> i32\n tt.return %r : i32')
    with pytest.raises(UnsupportedOperation, match=r"tt\.call is not supported: recursion: f\.g calls itself"):
        to_structured(ttir)
