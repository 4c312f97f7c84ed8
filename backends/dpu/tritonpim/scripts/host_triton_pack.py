#!/usr/bin/env python3
"""Flow C: pack the kernel of a Triton script into an artifact folder, which container_artifact_run.sh builds and runs.

    ./scripts/host_triton_pack.py --artifact-dir ./artifacts/add --out-indices 2

The script, ./dpu_min_test.py unless --triton-script names another, must accept --out PATH and write LLVM IR there. It
is run by TRITON_PY if that is set, or by this Python, if Triton and the dpu backend are installed there; else in the
project's image, by `./foundry pack`.
"""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# The project's folder, four above this one; in the image, where this folder is mounted at /mnt/host_cwd, there is none.
PROJECT = HERE.joinpath(*[".."] * 4).resolve()


def arguments():
    """Those that were given, and the default script if they name none."""
    given = sys.argv[1:]
    if any(word.split("=")[0] in ("--triton-script", "--script", "--help", "-h") for word in given):
        return given
    scripts = [HERE.parent / "dpu_min_test.py"]
    if source := os.environ.get("TRITON_SRC"):
        scripts.append(Path(source, "python", "triton", "backends", "dpu", "dpu_min_test.py"))
    found = next((script for script in scripts if script.is_file()), None)
    if found is None:
        sys.exit(f"error: there is no {' and no '.join(map(str, scripts))}: give --triton-script FILE")
    return [*given, "--triton-script", str(found)]


def main():
    python = os.environ.get("TRITON_PY") or sys.executable
    command = [python, "-m", "triton_dpu_backend.artifact", "pack"]
    here = subprocess.run([python, "-c", "import triton, triton_dpu_backend"], capture_output=True, check=False)
    if here.returncode != 0 and (PROJECT / "foundry").is_file():
        print(f"{python} has no Triton with the dpu backend: packing in the project's image", file=sys.stderr)
        command = [str(PROJECT / "foundry"), "pack"]
    return subprocess.run([*command, *arguments()], check=False).returncode


sys.exit(main())
