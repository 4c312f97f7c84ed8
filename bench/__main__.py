"""All measurements of the active backend in one run: `python bench [--results FOLDER] [--only NAME]`.

With e2e/ on PYTHONPATH. Which backend that is, Triton says (TRITON_DEFAULT_BACKEND where several are installed).
"""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

import triton
from measurement import Measurement, store

driver = triton.runtime.driver.active
backend = driver.get_current_target().backend
# The module with a backend's measurements. It needs what that backend's image has, and is imported there alone.
MODULES = {"dpu": "dpu.measurements", "vsi": "against_spirv", "spirv": "opencl"}
MEASUREMENTS = import_module(MODULES[backend]).MEASUREMENTS

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--results", type=Path, help="folder for bench.json")
parser.add_argument("--only", choices=MEASUREMENTS, help="take this measurement alone")
options = parser.parse_args()

print(f"bench on Triton {triton.__version__}\nran on {driver.ran()}\n", flush=True)
taken: list[Measurement] = []
for name, measure in MEASUREMENTS.items():
    if options.only in (None, name):
        for measurement in measure():
            print(measurement.table(), end="\n\n", flush=True)
            taken.append(measurement)
if options.results:
    store(options.results / "bench.json", {"triton": triton.__version__, **driver.ran().as_dict()}, taken)
