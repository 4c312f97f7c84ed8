"""The candidates of triton.autotune are compiled before one is measured; what is chosen and reported stays the same."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.tensor import Tensor
from foundry_core.triton_hooks import tuning

pytestmark = pytest.mark.skipif(not hasattr(triton, "AsyncCompileMode"), reason="this release compiles in one thread")
BLOCKS = (16, 32, 64)
SIZE = 200


def kernel(out, n, BLOCK: tl.constexpr, REFUSED: tl.constexpr):
    tl.static_assert(BLOCK != REFUSED)
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + offsets, offsets + BLOCK, mask=offsets < n)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[threading.Thread]]:
    """Return a list that gets the thread of each compilation; the cache is an empty one."""
    threads: list[threading.Thread] = []
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(
        triton.knobs.compilation, "listener", lambda **_: threads.append(threading.current_thread()), raising=False
    )
    yield threads


def tune(
    measure: Callable[[int], float], refused: int = 0, configs: list[triton.Config] | None = None, **options: Any
) -> tuple[Any, np.ndarray]:
    """Tune the kernel for one array and return the tuner and the result; `measure` gives each candidate its time."""
    found: list[Any] = []

    def do_bench(call: Callable[[], object], quantiles: Any) -> list[float]:
        call()
        found.append(measure(len(found)))
        return [found[-1]] * 3

    configs = configs or [triton.Config({"BLOCK": block}) for block in BLOCKS]
    tuned = triton.autotune(configs, key=["n"], do_bench=do_bench, **options)(triton.jit(kernel))
    out = np.full(SIZE, -1, np.int32)
    tuned[lambda chosen: (triton.cdiv(SIZE, chosen["BLOCK"]),)](Tensor(out), SIZE, REFUSED=refused)
    return tuned, out


def test_all_candidates_are_compiled_in_other_threads_before_the_first_is_measured(
    compiled: list[threading.Thread],
) -> None:
    before: list[int] = []

    def measure(number: int) -> float:
        before.append(len(compiled))
        return abs(number - 1)

    tuned, out = tune(measure)
    assert before == [len(BLOCKS)] * len(BLOCKS)
    assert len(compiled) == len(BLOCKS) and threading.main_thread() not in compiled
    assert tuned.best_config.kwargs == {"BLOCK": BLOCKS[1]}
    np.testing.assert_array_equal(out, np.arange(SIZE) + BLOCKS[1])


def test_the_cache_gets_the_entries_of_candidates_compiled_one_by_one(
    compiled: list[threading.Thread], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def entries(folder: Path) -> dict[str, bytes]:
        files = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("__grp__"))
        return {str(path.relative_to(folder)): path.read_bytes() for path in files}

    tune(float)
    one_by_one = tmp_path / "one-by-one"
    monkeypatch.setenv("TRITON_CACHE_DIR", str(one_by_one))
    monkeypatch.setattr(tuning, "compile_candidates", lambda *_: None)
    tune(float)
    assert threading.main_thread() in compiled
    alone = entries(one_by_one)
    assert len(alone) > len(BLOCKS)
    assert {name: data for name, data in entries(tmp_path).items() if not name.startswith("one-by-one")} == alone


def test_a_candidate_that_cannot_be_compiled_is_left_out_as_before(compiled: list[threading.Thread]) -> None:
    tuned, out = tune(lambda number: -number, refused=BLOCKS[-1])
    assert tuned.best_config.kwargs == {"BLOCK": BLOCKS[-2]}
    times = [tuned.configs_timings[config][0] for config in tuned.configs]
    assert times == [0, -1, float("inf")]
    np.testing.assert_array_equal(out, np.arange(SIZE) + BLOCKS[-2])


def test_an_error_that_ends_tuning_is_raised_where_it_was(compiled: list[threading.Thread]) -> None:
    configs = [triton.Config({"BLOCK": block}) for block in (16, 17)]
    with pytest.raises(triton.compiler.errors.CompilationError, match="power of 2"):
        tune(float, configs=configs)
    assert len(compiled) == 1


@pytest.mark.parametrize("of", ["candidate", "tuner", "kernel"])
def test_candidates_wait_for_functions_that_the_user_wants_called_first(
    compiled: list[threading.Thread], of: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []

    def note(*_: Any, **__: Any) -> None:
        calls.append(len(compiled))

    configs = [triton.Config({"BLOCK": block}, pre_hook=note if of == "candidate" else None) for block in (16, 32)]
    if of == "kernel":
        jit = triton.jit

        def hooked(function: Any) -> Any:
            made = jit(function)
            made.add_pre_run_hook(note)
            return made

        monkeypatch.setattr(triton, "jit", hooked)
    tune(float, configs=configs, pre_hook=note if of == "tuner" else None)
    assert calls[:2] == [0, 1]
    assert set(compiled) == {threading.main_thread()}
