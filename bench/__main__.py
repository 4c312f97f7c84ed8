"""All measurements of the active backend in one run: `python bench [--only NAME]`.

With e2e/ on PYTHONPATH, whose supervise.py runs and reports them. Which backend that is, Triton says
(TRITON_DEFAULT_BACKEND where several are installed); the key `bench` of its target's file names the module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from importlib import import_module
from typing import Any

from report import Case, run_script

# Seconds for a measurement, which is many launches of several candidates.
LIMIT = 3600


def cases() -> Iterator[Case]:
    import settings

    # It needs what the target's image has, and is imported there only.
    for name, measure in import_module(settings.load()["bench"]).MEASUREMENTS.items():
        yield Case("bench", name, lambda measure=measure: taken(measure))  # type: ignore[misc]


def taken(measure: Callable[[], Any]) -> dict[str, Any]:
    """Measure; the numbers, and the tables for the terminal."""
    measurements = list(measure())
    assert measurements, "nothing was measured"
    tables = "\n\n".join(measurement.table() for measurement in measurements)
    return {"measurements": [asdict(measurement) for measurement in measurements], "table": tables}


run_script("bench", cases, exact=True, limit=LIMIT)
