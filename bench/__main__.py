"""All measurements in one run: `python bench [--results FOLDER] [--only TEXT]`, with e2e/ on PYTHONPATH."""

from __future__ import annotations

import argparse
from pathlib import Path

import addition
import first_launch
import latency
import multiplication
import triton
from measurement import Measurement, store

MEASUREMENTS = {
    "launch": lambda: [latency.measure()],
    "vec_add": lambda: [addition.measure()],
    "matmul": lambda: [multiplication.measure()],
    "first": first_launch.measure,
}

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--results", type=Path, help="folder for bench.json")
parser.add_argument("--only", choices=MEASUREMENTS, help="take this measurement alone")
options = parser.parse_args()

driver = triton.runtime.driver.active
print(f"bench on Triton {triton.__version__}\nran on {driver.ran()}\n", flush=True)
taken: list[Measurement] = []
for name, measure in MEASUREMENTS.items():
    if options.only in (None, name):
        for measurement in measure():
            print(measurement.table(), end="\n\n", flush=True)
            taken.append(measurement)
if options.results:
    store(options.results / "bench.json", {"triton": triton.__version__, **driver.ran().as_dict()}, taken)
