"""Kernels that several threads compile at once, as the candidates of an autotuner."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from foundry_core.codegen import pipeline
from foundry_core.ir.depth import deep_expressions

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
