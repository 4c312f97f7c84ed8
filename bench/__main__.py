"""Run all measurements of the active backend: `python bench [--only NAME]`.

e2e/ must be on PYTHONPATH: its supervise.py runs and reports the measurements. Triton names the active backend
(TRITON_DEFAULT_BACKEND, if several are installed). The key `bench` of the target's file names the module to measure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from importlib import import_module
from typing import Any

from report import Case, run_script

# Seconds for one measurement, which launches several candidates many times.
LIMIT = 3600


def cases() -> Iterator[Case]:
    import settings

    # The module needs packages that only the target's image has, so it is imported in workers only.
    for name, measure in import_module(settings.load()["bench"]).MEASUREMENTS.items():
        yield Case("bench", name, lambda measure=measure: taken(measure))  # type: ignore[misc]


def taken(measure: Callable[[], Any]) -> dict[str, Any]:
    """Run a measurement and return its numbers, and the tables for the terminal."""
    measurements = list(measure())
    assert measurements, "nothing was measured"
    tables = "\n\n".join(measurement.table() for measurement in measurements)
    return {"measurements": [asdict(measurement) for measurement in measurements], "table": tables}


run_script("bench", cases, exact=True, limit=LIMIT)
