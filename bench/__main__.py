"""All measurements of the active backend in one run: `python bench [--only NAME]`.

With e2e/ on PYTHONPATH, whose supervise.py runs and reports them. Which backend that is, Triton says
(TRITON_DEFAULT_BACKEND where several are installed).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from importlib import import_module
from typing import Any

from report import Case, run_script

# The module with a backend's measurements. It needs what that backend's image has, and is imported there alone.
MODULES = {"dpu": "dpu.measurements", "vsi": "against_spirv", "spirv": "opencl"}
# Seconds for a measurement, which is many launches of several candidates.
LIMIT = 3600


def cases() -> Iterator[Case]:
    import triton

    backend = triton.runtime.driver.active.get_current_target().backend
    for name, measure in import_module(MODULES[backend]).MEASUREMENTS.items():
        yield Case("bench", name, lambda measure=measure: taken(measure))  # type: ignore[misc]


def taken(measure: Callable[[], Any]) -> dict[str, Any]:
    """Measure; the numbers, and the tables for the terminal."""
    measurements = list(measure())
    assert measurements, "nothing was measured"
    tables = "\n\n".join(measurement.table() for measurement in measurements)
    return {"measurements": [asdict(measurement) for measurement in measurements], "table": tables}


run_script("bench", cases, exact=True, limit=LIMIT)
