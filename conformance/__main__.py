"""Run a folder of Triton tests in worker processes: `python conformance`, with e2e/ and pytest on PYTHONPATH.

The main process runs no test. It owns the results (e2e/supervise.py), and starts as many workers as there are
processors. If a test ends its worker, or if a worker is stopped because a test takes too long, only that test is lost.

Environment: FOUNDRY_SUITE is the folder or the file with the tests.
"""

from __future__ import annotations

import os
import sys

from outcomes import COLLECTION
from supervise import WORKER, main

if __name__ == "__main__":
    if WORKER in sys.argv[1:]:
        import tests_worker

        sys.exit(tests_worker.serve(os.environ["FOUNDRY_SUITE"]))
    sys.exit(main("conformance", workers=len(os.sched_getaffinity(0)), always=[COLLECTION]))
