"""Run a script, and show what bounds each kernel that it launches: `python -m foundry_core.profile SCRIPT WORDS...`.

    python -m foundry_core.profile script.py --size 4096
    python -m foundry_core.profile --json=profile.json script.py

For each kernel, with each grid and each set of integer arguments, it prints the least time of a launch; the bytes of
the arrays that it reaches and the operations on floats that it computes, counted from the compiled kernel; the roofs of
this device, measured afterwards in the same process with as many bytes; and which of the two bounds the kernel. Below
it has the instructions of each line of the kernel's source in the object that PoCL compiled, and the disassembly of its
innermost loop. On emulated DPUs it prints modelled cycles, how busy the DMA engine and the pipeline are, and what each
source line takes of both.
"""

from __future__ import annotations

import argparse
import inspect
import json
import runpy
import sys
import traceback
from pathlib import Path

from .recording import recording
from .report import report


def main(words: list[str]) -> int:
    """Do what the module says; return the exit status."""
    parser = argparse.ArgumentParser(
        "python -m foundry_core.profile",
        description=inspect.cleandoc(__doc__ or ""),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", help="write the figures to this file, too")
    parser.add_argument("script")
    parser.add_argument("words", nargs=argparse.REMAINDER)
    options = parser.parse_args(words)
    sys.argv = [options.script, *options.words]
    sys.path[0] = str(Path(options.script).resolve().parent)
    if options.json:
        Path(options.json).unlink(missing_ok=True)
    status: object = 0
    with recording() as recorder:
        try:
            runpy.run_path(options.script, run_name="__main__")
        except SystemExit as end:
            status = end.code
        except Exception:
            # What ran before is shown all the same.
            traceback.print_exc()
            status = 1
    text, figures = report(recorder)
    print(f"\n{text}")
    if options.json:
        import triton

        found = {
            "ran": triton.runtime.driver.active.device_report().as_dict(),
            "script": options.script,
            "kernels": figures,
        }
        Path(options.json).write_text(json.dumps(found, indent=2) + "\n")
    return status if isinstance(status, int) else int(status is not None)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
