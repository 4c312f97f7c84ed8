"""triton.testing measures with several samples, however large the cache is, and without the time to clear it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.triton_hooks import clock
from triton.runtime.driver import driver


class Machine:
    """A machine whose time is counted: a call takes `call` seconds, and clearing its cache `clear` seconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, call: float, clear: float) -> None:
        self.now, self.calls, self.cleared = 0.0, 0, 0
        self._call, self._clear = call, clear
        driver.active.get_current_device()  # 3.2 makes the driver at its first use, behind a proxy
        kind = type(getattr(driver.active, "_obj", driver.active))
        monkeypatch.setattr("time.perf_counter", lambda: self.now)
        monkeypatch.setattr(kind, "get_device_interface", lambda _: clock.DeviceInterface)
        monkeypatch.setattr(kind, "get_empty_cache_for_benchmark", lambda _: None)
        monkeypatch.setattr(kind, "clear_cache", lambda *_: self.clear())

    def clear(self) -> None:
        self.now += self._clear
        self.cleared += 1

    def call(self) -> None:
        self.now += self._call
        self.calls += 1


@pytest.mark.parametrize(("call", "clear"), [(1e-3, 1.0), (10.0, 0.0), (1e-3, 1e-3), (0.0, 0.0)])
def test_there_are_several_samples_and_no_time_of_the_cache(
    call: float, clear: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(monkeypatch, call, clear)
    # A time that counts nothing: the loops end all the same.
    rep = 100 if call + clear else 1e-3
    taken = triton.testing.do_bench(machine.call, warmup=25, rep=rep, return_mode="all")
    np.testing.assert_allclose(taken, call * 1e3)
    assert len(taken) == {(1e-3, 1e-3): 50, (0.0, 0.0): 1000}.get((call, clear), clock.LEAST_SAMPLES)
    # The samples, a call that compiles, one that tells how long it takes, and those that warm up.
    warm = {1e-3: 25, 10.0: 1, 0.0: 25000}[call]
    assert machine.calls == len(taken) + 2 + warm
    assert machine.cleared == len(taken) + 2


def test_do_bench_returns_the_requested_statistic_of_the_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, 1e-3, 0.0)
    gradient = type("WithGradient", (), {"grad": 1})()
    monkeypatch.setattr(clock, "samples", lambda *_, **how: [4.0, 1.0, 3.0, 2.0, 10.0] * bool(how["grad_to_none"]))

    def bench(**how: Any) -> Any:
        return triton.testing.do_bench(machine.call, 1, 2, [gradient], **how)

    assert bench() == 4.0 and bench(return_mode="median") == 3.0
    assert (bench(return_mode="min"), bench(return_mode="max")) == (1.0, 10.0)
    assert bench(return_mode="all") == [4.0, 1.0, 3.0, 2.0, 10.0]
    assert bench(quantiles=[0.5, 0.0, 0.75]) == [3.0, 1.0, 4.0] and bench(quantiles=[0.5]) == 3.0
    with pytest.raises(AssertionError):
        bench(return_mode="fastest")


def test_gradients_are_removed_before_each_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, 1e-3, 0.0)
    gradient = type("WithGradient", (), {"grad": 1})()
    seen = []

    def call() -> None:
        seen.append(gradient.grad)
        gradient.grad = 1
        machine.call()

    triton.testing.do_bench(call, warmup=1, rep=1, grad_to_none=[gradient])
    assert seen[-clock.LEAST_SAMPLES :] == [None] * clock.LEAST_SAMPLES and seen[0] == 1


def test_a_graph_of_calls_is_measured_as_calls_without_clearing_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, 1e-3, 1.0)
    assert triton.testing.do_bench_cudagraph(machine.call, rep=30) == pytest.approx(1.0)
    assert machine.calls == 33 and machine.cleared == 0


def test_another_drivers_calls_are_measured_by_tritons_own_function(monkeypatch: pytest.MonkeyPatch) -> None:
    native = triton.testing.do_bench.__wrapped__
    asked = []

    class Other:
        def get_device_interface(self) -> None:
            asked.append("its device")
            raise NotImplementedError

    monkeypatch.setattr(driver, "_active" if hasattr(driver, "_active") else "active", Other())
    for bench in (native, triton.testing.do_bench):
        with pytest.raises(NotImplementedError):
            bench(lambda: None)
    assert len(asked) == 2


def test_the_filler_of_a_large_cache_is_bounded() -> None:
    assert clock.cache_filler(480 << 20).nbytes == 64 << 20
    assert clock.cache_filler(1 << 20).nbytes == 2 << 20


@triton.jit
def fill(out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, i, mask=i < n)


def test_a_kernel_is_measured() -> None:
    out = np.full(100, -1, np.int32)
    taken = triton.testing.do_bench(lambda: fill[(2,)](out, 100, BLOCK=64), warmup=1, rep=1, return_mode="all")
    assert len(taken) >= clock.LEAST_SAMPLES and min(taken) > 0
    np.testing.assert_array_equal(out, np.arange(100))
