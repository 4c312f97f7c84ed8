"""Compiles the candidates of triton.autotune in parallel, before the first of them is measured.

Triton's autotuner compiles each configuration when it measures it, one after the other. Most of that time the process
waits for other programs and for the device's compiler. `install` wraps the two methods of the autotuner that choose the
candidates and that measure one.

The kernels are compiled as by the same launches with `warmup=True`, in threads, and are kept where a launch finds them.
So the autotuner does as before what is left: it launches and measures one candidate after the other. A candidate that
cannot be compiled is not kept; it fails again when it is measured, with the error and the consequences that it would
have had.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from .import_order import call_after

_AUTOTUNER = "triton.runtime.autotuner"
# What holds a tuner's candidates from their choice to the first measurement.
_CHOSEN = "foundry_chosen"


def install(backends: type) -> None:
    """Make Triton's autotuner compile candidates for backends of this class in parallel.

    Triton imports its backends before it defines the autotuner, and tunes before it makes an object of a backend.
    """
    call_after(lambda: _wrap(sys.modules[_AUTOTUNER].Autotuner, backends))


def _wrap(tuner: Any, backends: type) -> None:
    # Releases without this module do not promise that several threads can compile.
    if "triton.runtime._async_compile" not in sys.modules:
        return
    choose, measure = tuner.prune_configs, tuner._bench

    def prune_configs(self: Any, *arguments: Any, **named: Any) -> Any:
        chosen = choose(self, *arguments, **named)
        setattr(self, _CHOSEN, chosen)
        return chosen

    def _bench(self: Any, *arguments: Any, config: Any, **named: Any) -> Any:
        compile_candidates(self, self.__dict__.pop(_CHOSEN, ()), arguments, named, backends)
        return measure(self, *arguments, config=config, **named)

    tuner.prune_configs, tuner._bench = prune_configs, _bench


def compile_candidates(
    tuner: Any, chosen: Sequence[Any], arguments: Sequence[Any], named: dict[str, Any], backends: type
) -> None:
    """Compile the chosen configurations of an autotuned kernel for the arguments of a launch; report no errors.

    Nothing is done if a function of the user runs before a launch or a compilation: it may change what is compiled, or
    count it.
    """
    # Imported here, because Triton imports this module before them.
    from triton import knobs
    from triton.runtime.driver import driver
    from triton.runtime.jit import JITFunction

    kernel = tuner.fn
    while not isinstance(kernel, JITFunction):
        kernel = getattr(kernel, "fn", None)
        if kernel is None:  # of Triton's interpreter
            return
    hooks = (*kernel.pre_run_hooks, *(config.pre_hook for config in chosen))
    listening = knobs.runtime.jit_cache_hook or knobs.runtime.jit_post_compile_hook
    if len(chosen) < 2 or any(hooks) or listening or tuner.user_defined_pre_hook:
        return
    # Made here, because each thread would make its own.
    if not any(isinstance(part, backends) for part in kernel.device_caches[driver.active.get_current_device()]):
        return
    kernel.cache_key  # noqa: B018  computes it
    loads = driver.active.loads_in_threads

    def compile_one(config: Any) -> None:
        with suppress(Exception):
            compiled = tuner.fn.run(*arguments, **named | config.all_kwargs() | {"warmup": True})
            if loads and compiled is not None:
                try:
                    compiled.run  # noqa: B018  Triton loads the kernel at the first access
                except Exception:  # the first launch tries again
                    compiled.module = compiled.function = compiled._run = None

    pool = ThreadPoolExecutor(min(len(chosen), len(os.sched_getaffinity(0))))
    try:
        for waiting in [pool.submit(compile_one, config) for config in chosen]:
            waiting.result()
    finally:
        pool.shutdown(cancel_futures=True)
