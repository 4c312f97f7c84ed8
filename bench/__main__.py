"""Run the measurements of the active backend: `python -m bench [--only NAME]`.

e2e/ must be on PYTHONPATH: its supervise.py runs and reports the measurements. Triton names the active backend
(TRITON_DEFAULT_BACKEND, if several are installed). The key `bench` of the target's file names the module to measure;
that of a variant, which Foundry passes in FOUNDRY_MEASUREMENTS, comes first. With FOUNDRY_BENCH_FULL=1, kernels are
measured in all their sizes and types; FOUNDRY_BENCH_CPU is for processor.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict, replace
from functools import partial
from importlib import import_module
from typing import Any

from report import Case, run_script

from . import processor
from .measurement import Measuring, Suite

# The image of spirv-vulkan has it on; a layer that checks each call takes time.
os.environ["FOUNDRY_VULKAN_VALIDATION"] = "0"
processor.limit_threads()
FULL = os.environ.get("FOUNDRY_BENCH_FULL") == "1"
PROFILE = os.environ.get("FOUNDRY_BENCH_PROFILE") == "1"
# Seconds for one measurement, which launches several candidates many times.
LIMIT = 3600


def cases() -> Iterator[Case]:
    import settings

    # The module needs packages that only the target's image has, so it is imported in workers only.
    module = import_module(f"bench.{os.environ.get('FOUNDRY_MEASUREMENTS') or settings.load()['bench']}")
    if os.environ.get("FOUNDRY_BENCH_PEER"):
        # With two backends in the process, Triton does not know of which one it is to say what it runs on.
        module.devices()[0].use()
    for name, found in module.MEASUREMENTS.items():
        parts = {name: found}
        if isinstance(found, Suite):
            parts = {**found.quick, **(found.more if FULL else {})}
        for part, call in parts.items():
            yield Case(name, part, partial(taken, call))


def taken(measure: Measuring) -> dict[str, Any]:
    """Run a measurement and return its numbers, and the tables for the terminal."""
    limited = f", limited to {processor.LIMIT}" if processor.LIMIT else ""
    on = processor.described()
    if PROFILE:
        from foundry_core.profile.recording import recording
        from foundry_core.profile.report import report
    with recording() if PROFILE else nullcontext() as recorder:
        measurements = [replace(each, title=each.title + limited, on={**on, **each.on}) for each in measure()]
    assert measurements, "nothing was measured"
    tables = "\n\n".join(measurement.table() for measurement in measurements)
    kernels: list[Any] = [kernel for each in measurements for kernel in each.kernels]
    if recorder is not None:
        text, kernels = report(recorder)
        tables += f"\n\n{text}"
    taken = [asdict(measurement) for measurement in measurements]
    failed = [f"{name}: {why}" for each in measurements for name, why in each.failed.items()]
    return {"measurements": taken, "kernels": kernels, "table": tables, "failure": "\n".join(failed) or None}


run_script("bench", cases, exact=True, limit=LIMIT)
