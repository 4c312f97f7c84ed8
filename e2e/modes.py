"""Triton's modes that every target has, each in a process of its own: compiling without running.

Needs the patches of this project (patches/triton): a Triton without them fails here.
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
    """Compile-only mode."""
    yield Case("modes", "TRITON_COMPILE_ONLY=ttir on a machine without a device", compile_only)


def compile_only() -> None:
    """See compile_only.py; OCL_ICD_VENDORS hides the OpenCL devices."""
    with tempfile.TemporaryDirectory() as cache:
        run_other("compile_only.py", TRITON_COMPILE_ONLY="ttir", TRITON_CACHE_DIR=cache, OCL_ICD_VENDORS=cache)


def run_other(name: str, *arguments: str, **variables: str | None) -> None:
    """Run another script of this folder; it must succeed.

    Args:
        variables: for its environment; None removes one.
    """
    env = {**os.environ, **{name: value for name, value in variables.items() if value is not None}}
    for variable, value in variables.items():
        if value is None:
            env.pop(variable, None)
    done = subprocess.run([sys.executable, HERE / name, *arguments], env=env, capture_output=True, text=True)
    assert done.returncode == 0, f"{name} ended with status {done.returncode}:\n{done.stdout}{done.stderr}"
