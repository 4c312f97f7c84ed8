"""Time candidates in turns: tune each backend of Triton, check each result, then rounds in which each has its turn."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from devices import Backend, Cuda, Vulkan
from measures import EmptyLaunch, Measure


@dataclass
class Candidate:
    """Something that is timed.

    Attributes:
        name: in reports.
        backend: whose events take the time, and which is active.
        call: does the work once.
        config: the launch options, if they were chosen.
        error: of its result, as a part of what is allowed.
        milliseconds: of one call, in each round.
    """

    name: str
    backend: Backend
    call: Callable[[], Any]
    config: dict[str, int] = field(default_factory=dict)
    error: float = float("nan")
    milliseconds: list[float] = field(default_factory=list)
    compiled: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """How long to measure.

    Attributes:
        warm: seconds of work before the first round that counts, for the device's clocks.
        rounds: how many rounds count.
        batch: milliseconds of work in one turn.
    """

    warm: float
    rounds: int
    batch: float


def turn(candidate: Candidate, calls: int, *, host: bool) -> float:
    """Return the milliseconds of one call, from a turn with so many calls; by the host's clock, or by events."""
    backend = candidate.backend
    backend.use()
    candidate.call()
    if host:
        backend.wait()
        start = time.perf_counter()
        for _ in range(calls):
            candidate.call()
        backend.wait()
        return (time.perf_counter() - start) * 1e3 / calls
    first = backend.event()
    for _ in range(calls):
        candidate.call()
    last = backend.event()
    backend.wait()
    return float(first.elapsed_time(last)) / calls


def calls_for(candidate: Candidate, milliseconds: float, *, host: bool) -> int:
    """Return how many calls take so long."""
    once = turn(candidate, 3, host=host)
    return max(3, min(2000, round(milliseconds / max(once, 1e-4))))


def _work(candidate: Candidate, calls: int, seconds: float, *, host: bool) -> None:
    """Keep the device busy, so that its clocks rise."""
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        turn(candidate, calls, host=host)


def tune(measure: Measure, backend: Backend, arrays: dict[str, Any], plan: Plan) -> tuple[Candidate, dict[str, str]]:
    """Return the fastest of the measure's configurations on a backend, and what the others took or why they failed.

    Raises:
        RuntimeError: all of them failed.
    """
    host, log = isinstance(measure, EmptyLaunch), dict[str, str]()
    best: tuple[float, Candidate] | None = None
    for config in measure.configs:
        backend.use()
        candidate = Candidate(
            backend.name, backend, lambda config=config: measure.launch(backend, arrays, config), dict(config)
        )
        label = ", ".join(f"{name}={value}" for name, value in config.items())
        try:
            start = time.perf_counter()
            kernel = candidate.call()
            backend.wait()
            first = time.perf_counter() - start
            candidate.compiled = backend.compiled(kernel)
            calls = calls_for(candidate, plan.batch, host=host)
            if best is None:
                _work(candidate, calls, plan.warm / 3, host=host)
            took = statistics.median(turn(candidate, calls, host=host) for _ in range(3))
        except Exception as failure:  # a configuration that a device refuses is not chosen
            log[label] = f"{type(failure).__name__}: {failure}"[:500]
            continue
        log[label] = f"{measure.amount / took / measure.scale * 1e3:.4g} {measure.unit}, first launch {first:.1f} s"
        if best is None or took < best[0]:
            best = took, candidate
    if best is None:
        raise RuntimeError(f"no configuration ran on {backend.name}: {log}")
    return best[1], log


def take(measure: Measure, ours: Vulkan, peer: Backend | None, plan: Plan) -> dict[str, Any]:
    """Measure everything, and return it for JSON."""
    measure.make(np.random.default_rng(14))
    candidates: list[Candidate] = []
    tuning: dict[str, dict[str, str]] = {}
    failed: dict[str, str] = {}
    placed: list[tuple[Backend, dict[str, Any]]] = []
    for backend in filter(None, (ours, peer)):
        arrays = measure.place(backend)
        placed.append((backend, arrays))
        try:
            chosen, tuning[backend.name] = tune(measure, backend, arrays, plan)
            # A configuration before it may have written the right result.
            arrays[measure.output] = backend.poisoned(*measure.result())
            backend.use()
            chosen.call()
            chosen.error = measure.error(backend.numpy(arrays[measure.output]))
            candidates.append(chosen)
        except Exception as failure:
            failed[backend.name] = f"{type(failure).__name__}: {failure}"[:2000]
    arrays = placed[0][1]
    arrays[measure.output] = ours.poisoned(*measure.result())
    more: list[tuple[str, Backend, Callable[[], Any]]] = []
    try:
        more += [(name, ours, call) for name, call in measure.others(ours, arrays).items()]
    except Exception as failure:
        failed["others"] = f"{type(failure).__name__}: {failure}"[:2000]
    if isinstance(peer, Cuda):
        more += [(name, peer, call) for name, call in measure.torch(peer.torch, placed[1][1]).items()]
    for name, backend, call in more:
        try:
            backend.use()
            # torch's candidates return their result, ours write it.
            result = call() if backend is peer else (call(), arrays[measure.output])[1]
            candidates.append(Candidate(name, backend, call, error=measure.error(backend.numpy(result))))
        except Exception as failure:
            failed[name] = f"{type(failure).__name__}: {failure}"[:2000]
    host = isinstance(measure, EmptyLaunch)
    calls = {each.name: calls_for(each, plan.batch, host=host) for each in candidates}
    start = time.perf_counter()
    while time.perf_counter() - start < plan.warm:
        for each in candidates:
            turn(each, calls[each.name], host=host)
    for _ in range(plan.rounds):
        for each in candidates:
            each.milliseconds.append(turn(each, calls[each.name], host=host))
    return {
        "title": measure.title,
        "unit": measure.unit,
        "aims": [asdict(aim) for aim in measure.aims],
        "candidates": [_reported(measure, each) for each in candidates],
        "tuning": tuning,
        "failed": failed,
    }


def _reported(measure: Measure, each: Candidate) -> dict[str, Any]:
    rates = sorted(measure.amount / took / measure.scale * 1e3 for took in each.milliseconds)
    return {
        "name": each.name,
        "config": each.config,
        "compiled": each.compiled,
        "error": each.error,
        "right": bool(each.error <= 1),
        "milliseconds": each.milliseconds,
        "rate": statistics.median(rates),
        "least": rates[0],
        "most": rates[-1],
    }
