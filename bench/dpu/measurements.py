"""List the measurements of the dpu target. All cycles are modelled by the emulator; no hardware was measured."""

from __future__ import annotations

from collections.abc import Callable

import stages
from measurement import Measurement

from . import addition, against_c, bounded, multiplication, speed

MEASUREMENTS: dict[str, Callable[[], list[Measurement]]] = {
    "vec_add": addition.measure,
    "matmul": multiplication.measure,
    "gemv": lambda: [against_c.gemv()],
    "reduction": lambda: [against_c.reduction()],
    "bounded": bounded.measure,
    "speed": speed.measure,
    "compile": stages.measure,
}
