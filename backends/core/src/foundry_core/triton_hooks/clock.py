"""Measures calls: triton.testing.do_bench for devices of this project, and the timers that it and Triton ask for.

Triton's own do_bench decides by the time of five calls, which includes the time to clear the cache, how often it calls.
Where the cache is large, that gives one sample. It starts cold, and other work on the machine decides about it.
"""

from __future__ import annotations

import functools
import inspect
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .import_order import call_after

# So many samples are taken of any function, however long a call takes. With the calls before them, as many as Triton's.
LEAST_SAMPLES = 5
# Most bytes of the filler. The part of a larger cache that one core fills, such as a die's, is smaller.
_MOST_FILLER = 64 << 20
_MODES = ("min", "max", "mean", "median", "all")


class Event:
    """A point in time; torch calls this an event. Launches are synchronous: they have finished when they return."""

    def __init__(self, enable_timing: bool = True) -> None:
        self._seconds = 0.0

    def record(self) -> None:
        """Store the current time; every launch before this call has finished."""
        self._seconds = time.perf_counter()

    def elapsed_time(self, end: Event) -> float:
        """Return the time from this event to `end`, in milliseconds."""
        return (end._seconds - self._seconds) * 1e3


class DeviceInterface:
    """The part of torch.cuda that triton.testing.do_bench uses."""

    Event = Event

    @staticmethod
    def synchronize() -> None:
        """Return immediately: launches are synchronous."""

    @staticmethod
    def current_device() -> int:
        """Return 0, the only device."""
        return 0


def cache_filler(cache_bytes: int) -> npt.NDArray[np.uint8]:
    """Return an array; writing to it evicts other data from a last-level cache of `cache_bytes`.

    From a cache of more than 32 MiB it evicts as much only.
    """
    return np.empty(min(2 * cache_bytes, _MOST_FILLER), np.uint8)


def install(_: type) -> None:
    """Make triton.testing measure with the active driver's `samples`, if it has this method."""
    call_after(lambda: _replace(sys.modules["triton.testing"]), "triton.testing", "do_bench")


def _replace(testing: Any) -> None:
    from triton.runtime.driver import driver

    def replaced(native: Any, *, cold: bool) -> Any:
        signature = inspect.signature(native)

        @functools.wraps(native)
        def measure(*arguments: Any, **named: Any) -> Any:
            if not hasattr(driver.active, "samples"):
                return native(*arguments, **named)
            bound = signature.bind(*arguments, **named)
            bound.apply_defaults()
            given = bound.arguments
            assert given["return_mode"] in _MODES, f"return_mode is none of {', '.join(_MODES)}"
            taken = driver.active.samples(
                given["fn"],
                warmup=given.get("warmup", 0),
                rep=given["rep"],
                grad_to_none=given["grad_to_none"] or (),
                cold=cold,
            )
            if given["quantiles"] is not None:
                found = [float(each) for each in np.quantile(taken, given["quantiles"])]
                return found[0] if len(found) == 1 else found
            mode = given["return_mode"]
            return taken if mode == "all" else float(getattr(np, mode)(taken))

        return measure

    testing.do_bench = replaced(testing.do_bench, cold=True)
    # CUDA graphs make the launches of many calls cheaper. There are no graphs here.
    testing.do_bench_cudagraph = replaced(testing.do_bench_cudagraph, cold=False)


def samples(
    driver: Any, call: Callable[[], object], *, warmup: float, rep: float, grad_to_none: Sequence[Any], cold: bool
) -> list[float]:
    """Return the times of single calls in milliseconds: at least LEAST_SAMPLES.

    Args:
        driver: Triton's driver; it has the timers and clears the cache.
        warmup, rep: milliseconds of calls without and with a timer. Clearing the cache counts in `rep`.
        grad_to_none: tensors whose gradients are removed before each call.
        cold: whether the cache is cleared before each call.
    """
    device = driver.get_device_interface()
    call()
    device.synchronize()
    cache = driver.get_empty_cache_for_benchmark() if cold else None
    if cold:
        # The first write also gets the memory.
        driver.clear_cache(cache)

    def sample() -> tuple[Any, Any]:
        for tensor in grad_to_none:
            tensor.grad = None
        if cold:
            driver.clear_cache(cache)
        start, end = device.Event(enable_timing=True), device.Event(enable_timing=True)
        start.record()
        call()
        end.record()
        return start, end

    began = time.perf_counter()
    start, end = sample()
    device.synchronize()
    whole = max((time.perf_counter() - began) * 1e3, 1e-6)
    once = max(start.elapsed_time(end), 1e-3)
    for _ in range(max(1, int(warmup / once))):
        call()
    taken = [sample() for _ in range(max(LEAST_SAMPLES, int(rep / whole)))]
    device.synchronize()
    return [start.elapsed_time(end) for start, end in taken]
