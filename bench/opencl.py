"""List the measurements of a target that runs on an OpenCL device."""

from __future__ import annotations

from collections.abc import Callable

import addition
import first_launch
import latency
import multiplication
import stages
from measurement import Measurement

MEASUREMENTS: dict[str, Callable[[], list[Measurement]]] = {
    "launch": lambda: [latency.measure()],
    "vec_add": lambda: [addition.measure()],
    "matmul": lambda: [multiplication.measure()],
    "first": first_launch.measure,
    "compile": stages.measure,
}
