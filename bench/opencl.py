"""List the measurements of a target that runs on an OpenCL device."""

from __future__ import annotations

from collections.abc import Callable

import first_launch
import latency
import stages
from measurement import Measurement
from problem import Suite
from tutorials import Tutorials

MEASUREMENTS: dict[str, Callable[[], list[Measurement]] | Suite | Tutorials] = {
    "launch": lambda: [latency.measure()],
    "vec_add": Suite("vec_add"),
    "matmul": Suite("matmul"),
    "softmax": Suite("softmax"),
    "layer-norm": Suite("layer_norm"),
    "attention": Suite("attention"),
    "gemv": Suite("gemv"),
    "reductions": Suite("reductions"),
    "transpose": Suite("transpose"),
    "gather": Suite("gather"),
    "tutorials": Tutorials(),
    "first": first_launch.measure,
    "compile": stages.measure,
}
