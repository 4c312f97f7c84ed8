"""A process that compiles: what it imports, how it identifies a compiler, and threads that share it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace

import foundry_core
import pytest
from foundry_core.codegen import pipeline, programs
from foundry_core.codegen.programs import triton_fingerprint
from foundry_core.ir.depth import deep_expressions
from foundry_core.once import once
from foundry_core.triton_hooks.registration import HOOKS

# NumPy takes a fifth of the time in which a compiler starts, and xDSL's llvm dialect a seventh.
SLOW = ("numpy", "ml_dtypes", "xdsl.dialects.llvm")


@pytest.mark.parametrize("module", ["codegen.pipeline", "mapping.workgroup.program"])
def test_the_lowering_starts_without_what_only_launches_and_dpus_need(module: str) -> None:
    path = str(next(iter(foundry_core.__path__))).rpartition("/")[0]
    script = f"import sys; sys.path.insert(0, {path!r}); import foundry_core.{module}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.split()
    assert f"foundry_core.{module}" in loaded
    assert not set(SLOW) & set(loaded)


def test_each_function_that_extends_triton_is_registered_once() -> None:
    package = Path(next(iter(foundry_core.__path__)))
    defined = {
        f"triton_hooks.{path.stem}.{name}"
        for path in (package / "triton_hooks").glob("*.py")
        for name in re.findall(r"^def (install\w*)\(", path.read_text(), re.MULTILINE)
        if path.stem not in ("import_order", "registration")
    }
    named = [hook.install for hook in HOOKS if hook.install.startswith("triton_hooks.")]
    assert sorted(named) == sorted(defined)


def test_triton_is_identified_by_its_source_and_by_the_size_and_date_of_libtriton(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    source, library = tmp_path / "tiny_triton" / "runtime" / "jit.py", tmp_path / "tiny_triton" / "_C" / "libtriton.so"
    for path in (tmp_path / "tiny_triton" / "__init__.py", source, library):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    def after(path: Path, text: str, seconds: int) -> str:
        path.write_text(text)
        os.utime(path, (seconds, seconds))
        return triton_fingerprint("tiny_triton")

    first = after(library, "a", 1)
    assert after(library, "b", 1) == first  # it is not read
    found = [first, after(library, "b", 2), after(library, "bb", 2), after(source, "x = 1", 1)]
    assert len(set(found)) == len(found)
    assert after(source, "x = 1", 2) == found[-1]


KERNEL = """module {{
  tt.func public @kernel(%out: !tt.ptr<i32>) {{
    %value = arith.constant {number} : i32
    tt.store %out, %value : !tt.ptr<i32>
    tt.return
  }}
}}
"""


def test_each_thread_gets_its_own_kernel() -> None:
    alone = {number: _compile(number) for number in range(8)}
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(_compile, range(8))) == [alone[number] for number in range(8)]
    assert len(set(alone.values())) == 8


def _compile(number: int) -> str:
    return pipeline.to_mlir(pipeline.to_structured(KERNEL.format(number=number)))


def test_the_limit_of_recursion_holds_until_the_last_thread_is_done() -> None:
    before = sys.getrecursionlimit()
    entered, left = Barrier(2, timeout=10), Barrier(2, timeout=10)

    def long() -> int:
        with deep_expressions():
            entered.wait()
            left.wait()
            return sys.getrecursionlimit()

    with ThreadPoolExecutor(1) as pool:
        with deep_expressions():
            slow = pool.submit(long)
            entered.wait()
        left.wait()
        assert slow.result() > before
    assert sys.getrecursionlimit() == before


def test_threads_that_call_at_the_same_time_get_one_result() -> None:
    @once
    def opened() -> object:
        time.sleep(0.02)
        return object()

    with ThreadPoolExecutor(8) as pool:
        assert len({id(result) for result in pool.map(lambda _: opened(), range(8))}) == 1


def test_an_error_is_not_kept_and_a_result_can_be_forgotten() -> None:
    answers: Iterator[ValueError | int] = iter([ValueError("not yet"), 1, 2])

    @once
    def opened() -> int:
        answer = next(answers)
        if isinstance(answer, ValueError):
            raise answer
        return answer

    with pytest.raises(ValueError, match="not yet"):
        opened()
    assert [opened(), opened()] == [1, 1]
    opened.cache_clear()
    assert opened() == 2


def test_a_child_of_a_fork_does_not_wait_for_a_thread_that_it_does_not_have() -> None:
    begun, end = threading.Event(), threading.Event()

    @once
    def opened() -> int:
        begun.set()
        end.wait(10)
        return 1

    thread = threading.Thread(target=opened)
    thread.start()
    begun.wait()
    child = os.fork()
    if child == 0:
        # A child that waits for the lock ends by a signal.
        signal.alarm(5)
        end.set()
        os._exit(opened())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    end.set()
    thread.join()


def test_triton_is_identified_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def identify() -> str:
        read.append("sources")
        return "digest"

    monkeypatch.setattr(programs, "triton_fingerprint", identify)
    cache = SimpleNamespace(triton_key=None)
    for name, module in (("triton", SimpleNamespace(__version__="1.0")), ("triton.runtime.cache", cache)):
        monkeypatch.setitem(sys.modules, name, module)
    programs._triton_key.cache_clear()
    for _ in range(2):
        programs.replace_triton_key(object)
        assert cache.triton_key() == "1.0-digest"
    programs._triton_key.cache_clear()
    assert read == ["sources"]
