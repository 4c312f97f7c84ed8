"""Triton's modes that every target has, each in its own process: compiling without running, and interpreting.

They need this project's patches (patches/triton): with the official wheel of some release, a case fails.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from report import Case

HERE = Path(__file__).resolve().parent


def cases() -> Iterator[Case]:
    """Yield a case for each mode."""
    yield Case("modes", "TRITON_COMPILE_ONLY=ttir on a machine without a device", compile_only)
    yield Case("modes", "TRITON_INTERPRET=1 runs kernels in Triton's interpreter", interpret)


def compile_only() -> None:
    """Run compile_only.py; OCL_ICD_VENDORS hides the OpenCL devices."""
    with tempfile.TemporaryDirectory() as cache:
        run_other("compile_only.py", TRITON_COMPILE_ONLY="ttir", TRITON_CACHE_DIR=cache, OCL_ICD_VENDORS=cache)


def interpret() -> None:
    """Run interpreted.py, with NumPy arrays."""
    run_other("interpreted.py", TRITON_INTERPRET="1")


def run_other(name: str, *arguments: str, **variables: str | None) -> None:
    """Run another script of this folder; the script must succeed.

    Args:
        variables: environment variables to set; None removes one.
    """
    env = {**os.environ, **{name: value for name, value in variables.items() if value is not None}}
    for variable, value in variables.items():
        if value is None:
            env.pop(variable, None)
    done = subprocess.run([sys.executable, HERE / name, *arguments], env=env, capture_output=True, text=True)
    assert done.returncode == 0, f"{name} ended with status {done.returncode}:\n{done.stdout}{done.stderr}"
