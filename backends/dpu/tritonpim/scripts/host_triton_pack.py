#!/usr/bin/env python3
"""Flow C: pack the kernel of a Triton script into an artifact folder, which container_artifact_run.sh builds and runs.

    ./scripts/host_triton_pack.py --artifact-dir ./artifacts/add --out-indices 2

The script, ./dpu_min_test.py unless --triton-script names another, must accept --out PATH and write LLVM IR there.
Which Python runs it, with which Triton and opt, is as for host_triton_ir.sh. If that Python has no Triton with the dpu
backend, and none of TRITON_PY, TRITON_SRC and UPMEM_OPT is set, the project's image packs, by `./foundry pack`.
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


def environment():
    """This process's environment with Triton and opt as environment.sh chooses them, or an exit with what it said."""
    line = 'root=$1; . "$1/scripts/environment.sh"; env -0'
    done = subprocess.run(["sh", "-c", line, "sh", HERE.parent], stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        sys.exit(done.returncode)
    return dict(entry.decode().split("=", 1) for entry in done.stdout.split(b"\0") if b"=" in entry)


def main():
    chosen = [name for name in ("TRITON_PY", "TRITON_SRC", "UPMEM_OPT") if os.environ.get(name)]
    used = environment()
    python = used["TRITON_PY"]
    command = [python, "-m", "triton_dpu_backend.artifact", "pack"]
    words = [python, HERE / "check_triton.py", "triton_dpu_backend"]
    here = subprocess.run(words, env=used, capture_output=True, text=True, check=False)
    if here.returncode != 0:
        what = (here.stderr.strip().splitlines() or [f"{python} ended without a word"])[-1]
        if "TRITON_SRC" in chosen:
            sys.exit(
                f"error: {what}\n  next: build that Triton for {python}, or use the installed one: unset TRITON_SRC"
            )
        if not (PROJECT / "foundry").is_file():
            sys.exit(f"error: {what}\n  next: set TRITON_PY to a Python that has them")
        if chosen:
            sys.exit(
                f"error: {what}\n  why:  the project's image could pack, but it would not use {', '.join(chosen)}\n"
                f"  next: unset {' '.join(chosen)}, to pack in the image; or set TRITON_PY to a Python that has them"
            )
        print(f"{what}; packing in the project's image", file=sys.stderr)
        command = [str(PROJECT / "foundry"), "pack"]
        used = os.environ
    return subprocess.run([*command, *arguments()], env=used, check=False).returncode


sys.exit(main())
