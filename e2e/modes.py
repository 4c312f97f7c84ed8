"""The ways to choose a backend and to compile without running, each in a process of its own.

Needs the patches of this project (patches/triton): a Triton without them fails here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import triton
from report import Case

HERE = Path(__file__).resolve().parent


def cases() -> Iterator[Case]:
    """Compile-only mode for every backend; for spirv, the variable that chooses it in triton-spirv."""
    yield Case("modes", "TRITON_COMPILE_ONLY=ttir on a machine without a device", compile_only)
    if triton.runtime.driver.active.get_current_target().backend == "spirv":
        yield Case("modes", "TRITON_SPIRV_BACKEND=1 python e2e/vec_add.py", chosen_by_variable)


def compile_only() -> None:
    """See compile_only.py; OCL_ICD_VENDORS hides the OpenCL devices."""
    with tempfile.TemporaryDirectory() as cache:
        _script("compile_only.py", TRITON_COMPILE_ONLY="ttir", TRITON_CACHE_DIR=cache, OCL_ICD_VENDORS=cache)


def chosen_by_variable() -> None:
    """The reference's own check, on some of the cases."""
    _script("vec_add.py", "--only", "n=1000 ", TRITON_DEFAULT_BACKEND=None, TRITON_SPIRV_BACKEND="1")


def _script(name: str, *arguments: str, **variables: str | None) -> None:
    env = {**os.environ, **{name: value for name, value in variables.items() if value is not None}}
    for variable, value in variables.items():
        if value is None:
            env.pop(variable, None)
    done = subprocess.run([sys.executable, HERE / name, *arguments], env=env, capture_output=True, text=True)
    assert done.returncode == 0, f"{name} ended with status {done.returncode}:\n{done.stdout}{done.stderr}"
