"""All measurements of the active backend in one run: `python bench [--results FOLDER] [--only NAME]`.

With e2e/ on PYTHONPATH. Which backend that is, Triton says (TRITON_DEFAULT_BACKEND where several are installed).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import triton
from measurement import Measurement, store

driver = triton.runtime.driver.active
backend = driver.get_current_target().backend
# What a backend is measured by needs what its image has: a backend's modules are imported there alone.
if backend == "dpu":
    from dpu.measurements import MEASUREMENTS
elif backend == "vsi":
    from against_spirv import MEASUREMENTS
else:
    from opencl import MEASUREMENTS

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
