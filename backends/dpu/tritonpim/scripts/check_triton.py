"""Check that the Python that runs this has a Triton with the dpu backend, and these modules; else end with one line.

    $TRITON_PY scripts/check_triton.py [MODULE ...]

The line names what decides which Triton it is: TRITON_SRC, or else TRITON_PY.
"""

import importlib
import os
import sys

source = os.environ.get("TRITON_SRC")
decides = f"TRITON_SRC={source}, run by {sys.executable}," if source else f"TRITON_PY={os.environ['TRITON_PY']}"
try:
    found = importlib.import_module("triton.backends").backends
    if "dpu" not in found:
        raise ImportError(f"its backends are: {', '.join(sorted(found)) or 'none'}")
    for module in sys.argv[1:]:
        importlib.import_module(module)
except Exception as error:  # Whatever a damaged tree raises.
    why = str(error).strip().splitlines() or [type(error).__name__]
    sys.exit(f"{decides} has no Triton with the dpu backend: {why[-1]}")
