"""Functions, constants, tuples, assertions, random numbers, and how kernels are called."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import triton
import triton.language as tl
from checking import RELEASE, check, launch, operand, poisoned


@triton.jit
def square_and_half(x):
    return x * x, x / 2


@triton.jit
def polynomial(x, a: tl.constexpr, b):
    square, half = square_and_half(x)
    return a * square + b * half


@triton.jit
def calls(x, out, b, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.store(out + i, polynomial(v, 3, b))


def test_functions_that_call_functions() -> None:
    x, out = np.arange(32, dtype=np.float32), poisoned(32, dtype=np.float32)
    launch(calls, (1,), x, out, 4.0, BLOCK=32)
    check(out, 3.0 * x * x + 2.0 * x)


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


@pytest.mark.operation("noinline")
def test_calls_in_loops_and_branches_have_their_results_and_effects() -> None:
    n, y = 8, 3.0
    x, out = np.arange(1, n + 1, dtype=np.float32), np.full(4 * n, -77, np.float32)
    launch(calling, (1,), x, out, n, y, BLOCK=8)

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
    check(out, expected)  # all numbers are exact in f32


@triton.jit
def applied(x, out, F: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    r, _ = F(tl.load(x + i))
    tl.store(out + i, r)


@pytest.mark.skipif(RELEASE < (3, 3), reason="Triton 3.2 takes no function as an argument")
def test_a_function_as_an_argument() -> None:
    x, out = np.arange(32, dtype=np.float32), poisoned(32, dtype=np.float32)
    launch(applied, (1,), x, out, F=square_and_half, BLOCK=32)
    check(out, x.astype(np.float64) ** 2)


@triton.jit
def of_all_kinds(out, a, b, c, d, e):
    tl.store(out, a + b + c.to(tl.int64) + d.to(tl.int64) + e)


def test_scalars_of_all_kinds() -> None:
    out = poisoned(1, dtype=np.int64)
    launch(of_all_kinds, (1,), out, 1, 2**40, 2.5, True, -(2**31))
    check(out, np.array([1 + 2**40 + 2 + 1 - 2**31]))


@triton.jit
def constants(out, NAME: tl.constexpr, SHAPE: tl.constexpr, NONE: tl.constexpr):
    tl.static_assert(NONE is None)
    v = tl.full(SHAPE, 7, tl.int32) + tl.zeros(SHAPE, tl.int32)
    if NAME == "ones":
        v = v - 6
    tl.store(out + tl.arange(0, 4)[:, None] * 8 + tl.arange(0, 8)[None, :], v)


@pytest.mark.parametrize(("name", "value"), [("ones", 1), ("sevens", 7)])
def test_constants_may_be_text_tuples_and_none(name: str, value: int) -> None:
    out = poisoned(4, 8, dtype=np.int32)
    launch(constants, (1,), out, NAME=name, SHAPE=(4, 8), NONE=None)
    check(out, np.full((4, 8), value))


@triton.jit
def tuples(out, values, BLOCK: tl.constexpr):
    a, b = values
    total = a
    for k in tl.static_range(len(values)):
        total += values[k] * (k + 1)
    tl.store(out + tl.arange(0, BLOCK), total + b)


@pytest.mark.skipif(not hasattr(tl, "tuple"), reason="this release of Triton has no tuples as arguments")
def test_a_tuple_as_an_argument() -> None:
    out = poisoned(16, dtype=np.int32)
    launch(tuples, (1,), out, (5, 30), BLOCK=16)
    check(out, np.full(16, 5 + 5 + 60 + 30))


@triton.jit
def random_numbers(out, seed, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if KIND == "randint":
        r = tl.randint(seed, i)
    elif KIND == "rand":
        r = tl.rand(seed, i)
    else:
        tl.static_assert(KIND == "randn")
        r = tl.randn(seed, i)
    tl.store(out + i, r)


def philox(seed: int, count: int) -> np.ndarray:
    """Return the first of the four words of Philox 4x32-10 (Salmon et al. 2011) for the counters 0 to count - 1."""
    c = [np.arange(count, dtype=np.uint64)] + [np.zeros(count, np.uint64)] * 3
    key = [np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)]
    word, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(b >> shift) ^ c[1] ^ key[0], b & word, (a >> shift) ^ c[3] ^ key[1], a & word]
        key = [(key[0] + np.uint64(0x9E3779B9)) & word, (key[1] + np.uint64(0xBB67AE85)) & word]
    return c[0].astype(np.uint32)


@pytest.mark.operation("tl.randint")
@pytest.mark.parametrize("seed", [0, 42, 2**40 + 7])
def test_random_integers_are_those_of_philox(seed: int) -> None:
    out = poisoned(256, dtype=np.int32)
    launch(random_numbers, (4,), out, seed, KIND="randint", BLOCK=64)
    check(out, philox(seed, 256).view(np.int32))


@pytest.mark.operation("tl.rand")
def test_random_floats_are_uniform_on_the_unit_interval() -> None:
    """The mean of 4096 numbers lies within six standard deviations, 0.5 / sqrt(3 n)."""
    out = poisoned(4096, dtype=np.float32)
    launch(random_numbers, (64,), out, 42, KIND="rand", BLOCK=64)
    out.check_fences("the output")
    assert np.all((out.array >= 0) & (out.array < 1))
    assert abs(out.array.mean() - 0.5) < 6 * 0.2887 / 64
    assert len(np.unique(out.array)) > 4000


@triton.autotune(configs=[triton.Config({"BLOCK": 32}), triton.Config({"BLOCK": 64})], key=["n"])
@triton.heuristics({"EVEN": lambda arguments: arguments["n"] % arguments["BLOCK"] == 0})
@triton.jit
def tuned(x, out, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.store(out + i, tl.load(x + i) + 1)
    else:
        tl.store(out + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


@pytest.mark.parametrize("n", [64, 100])
def test_autotune_and_heuristics(n: int) -> None:
    from foundry_core.tensor import Tensor

    x, out = operand(np.float32, 1, n), poisoned(n, dtype=np.float32)
    tuned[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](Tensor(x), Tensor(out.array), n)
    with np.errstate(all="ignore"):
        check(out, x.astype(np.float64) + 1)


@triton.jit
def incremented(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


@pytest.mark.operation("JITFunction.warmup")
def test_a_warm_up_compiles_and_launches_nothing() -> None:
    from foundry_core.tensor import Tensor

    x, out = operand(np.int32, 1, 64), poisoned(64, dtype=np.int32)
    before = out.array.copy()
    compiled = incremented.warmup(Tensor(x), Tensor(out.array), 64, BLOCK=32, grid=(2,))
    np.testing.assert_array_equal(out.array, before)
    assert incremented[(2,)](Tensor(x), Tensor(out.array), 64, BLOCK=32) is compiled
    with np.errstate(over="ignore"):
        check(out, x + 1)


@triton.jit
def its_block(out, n, BLOCK: tl.constexpr):
    tl.store(out + tl.arange(0, 16), n + tl.full([16], BLOCK, tl.int32))


def tune(**options: Any) -> tuple[list[int], int]:
    """Tune a kernel that stores its block, where larger blocks count as faster.

    Returns:
        The blocks that were timed, and the one that was chosen.
    """
    from foundry_core.tensor import Tensor

    out, timed = poisoned(16, dtype=np.int32), []

    def bench(call: Callable[[], Any], quantiles: Any) -> list[float]:
        call()
        timed.append(int(out.array[0]))
        return [1 / timed[-1]] * 3

    configs = [triton.Config({"BLOCK": block}) for block in (16, 32, 64, 128)]
    tuned = triton.autotune(configs=configs, key=["n"], do_bench=bench, **options)(its_block)
    for _ in range(2):  # the second launch takes the choice of the first
        tuned[(1,)](Tensor(out.array), 0)
    check(out, np.full(16, tuned.best_config.kwargs["BLOCK"]))
    return timed, int(out.array[0])


@pytest.mark.operation("triton.autotune")
@pytest.mark.skipif(RELEASE < (3, 3), reason="Triton 3.2 times configurations by its own function only")
def test_autotune_times_the_configurations_that_pruning_leaves() -> None:
    def small(configs: list[Any], arguments: dict[str, Any], **_: Any) -> list[Any]:
        return [each for each in configs if each.kwargs["BLOCK"] < 128 + arguments["n"]]

    def slowest(BLOCK: int, **_: Any) -> float:
        return float(BLOCK)

    assert tune() == ([16, 32, 64, 128], 128)
    assert tune(prune_configs_by={"early_config_prune": small}) == ([16, 32, 64], 64)
    assert tune(prune_configs_by={"perf_model": slowest, "top_k": 2}) == ([16, 32], 32)


@pytest.mark.operation("triton.autotune")
@pytest.mark.skipif(not hasattr(triton, "knobs"), reason="this release of Triton keeps no results of autotune")
def test_autotune_reads_its_results_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    assert tune(cache_results=True) == ([16, 32, 64, 128], 128)
    assert tune(cache_results=True) == ([], 128)


tuples_only = pytest.mark.skipif(not hasattr(tl, "tuple"), reason="this release of Triton has no tuples as arguments")


class Span(NamedTuple):
    """A pointer and a number."""

    start: Any
    count: Any


@triton.jit
def paired(a, b):
    return Span(a, b), (a, (b, a))


@triton.jit
def nested_tuples(span, out, rest, n):
    first, second = paired(span.count, rest[1][0])
    t = (first.start, second[1][0], (1.5, span.start))
    for i in range(n):
        a, b, c = t
        t = (a + i, b + 2, (c[0] * 2, c[1] + 1))
    if n > 2:  # noqa: SIM108  the form that is tested
        u = (t[0], t[1])
    else:
        u = (t[1], t[0])
    k = 0
    while k < n:
        u = (u[1], u[0] + 1)
        k += 1
    tl.store(out, u[0])
    tl.store(out + 1, u[1])
    tl.store(out + 2, t[2][0])
    tl.store(out + 3, tl.load(t[2][1]))
    tl.store(out + 4, tl.load(rest[1][1]))


@tuples_only
@pytest.mark.parametrize("n", [2, 3])
def test_nested_and_named_tuples_of_pointers(n: int) -> None:
    from foundry_core.tensor import Tensor

    x, one, out = np.arange(8, dtype=np.float32), np.full(1, 99, np.float32), poisoned(5, dtype=np.float32)
    launch(nested_tuples, (1,), Span(Tensor(x), 3), out, (5, (7, Tensor(one))), n)
    a, b = 3 + sum(range(n)), 7 + 2 * n
    u = (a, b) if n > 2 else (b, a)
    for _ in range(n):
        u = (u[1], u[0] + 1)
    check(out, np.array([*u, 1.5 * 2**n, x[n], 99]))


@triton.jit
def keywords(x, out, n, scale: tl.constexpr = 2, BLOCK: tl.constexpr = 8):
    tl.store(out + tl.arange(0, BLOCK), tl.load(x) * scale + n)


def test_arguments_by_keyword_and_by_default() -> None:
    from foundry_core.tensor import Tensor

    x, out = np.array([4], np.int32), poisoned(8, dtype=np.int32)
    keywords[(1,)](n=3, out=Tensor(out.array), x=x)
    check(out, np.full(8, 11))
    with pytest.raises(TypeError):
        keywords[(1,)](x, Tensor(out.array))


def scaling(factor: int) -> Any:
    number = tl.constexpr(factor)

    @triton.jit
    def scaled(x):
        return x * number

    return scaled


@pytest.mark.skipif(not hasattr(tl, "tuple"), reason="this release of Triton does not read what a function encloses")
@pytest.mark.parametrize("factor", [2, 3])
def test_a_closure_as_an_argument(factor: int) -> None:
    x, out = np.arange(32, dtype=np.float32), poisoned(32, dtype=np.float32)
    launch(closed, (1,), x, out, F=scaling(factor), BLOCK=32)
    check(out, x.astype(np.float64) * factor)


@triton.jit
def closed(x, out, F: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, F(tl.load(x + i)))


if hasattr(triton, "constexpr_function"):

    @triton.constexpr_function
    def logarithm(n):
        return n.bit_length() - 1

    @triton.jit
    def at_compile_time(out, BLOCK: tl.constexpr):
        count: tl.constexpr = logarithm(BLOCK)
        tl.store(out + tl.arange(0, count), count)

    def test_a_function_that_runs_at_compile_time() -> None:
        out = poisoned(8, dtype=np.int32)
        reference = out.array.copy()
        reference[:4] = 4
        launch(at_compile_time, (1,), out, BLOCK=16)
        check(out, reference)


if hasattr(triton, "knobs"):

    @triton.jit(launch_metadata=lambda grid, kernel, arguments: {"name": f"grid {grid[0]}"})
    def hooked(out):
        tl.store(out + tl.program_id(0), tl.program_id(0))

    def test_hooks_see_each_launch_and_each_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
        runtime, seen = triton.knobs.runtime, []
        for name in ("launch_enter_hook", "launch_exit_hook"):
            note: Any = lambda launch, name=name: seen.append((name, launch.get()["name"]))  # noqa: E731
            chain = getattr(runtime, name)
            if hasattr(chain, "calls"):
                monkeypatch.setattr(chain, "calls", [*chain.calls, note])
            else:
                monkeypatch.setattr(runtime, name, note)
        monkeypatch.setattr(runtime, "jit_post_compile_hook", lambda **what: seen.append(("compiled", what["fn"].name)))
        out = poisoned(3, dtype=np.int32)
        for grid in ((3,), (3,), (0,)):
            launch(hooked, grid, out)
        check(out, np.arange(3))
        enter, leave = "launch_enter_hook", "launch_exit_hook"
        assert [name for name, _ in seen if name == "compiled"] == ["compiled"]
        assert [one for one in seen if one[0] != "compiled"] == [
            (name, f"grid {programs}") for programs in (3, 3, 0) for name in (enter, leave)
        ]
