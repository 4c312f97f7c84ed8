"""The image in which the tests run: its backend, its release of Triton and its Python."""

from __future__ import annotations

import os
import subprocess
import sys

import triton

BACKEND: str = triton.runtime.driver.active.get_current_target().backend
ON_DPU, ON_VSI = BACKEND == "dpu", BACKEND == "vsi"
# Of Triton, like (3, 9).
RELEASE = tuple(map(int, triton.__version__.split(".")[:2]))


def python(*arguments: str | os.PathLike[str], **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments and more variables, with the modules of this process, and return its output."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))} | variables
    return subprocess.run([sys.executable, *arguments], env=env, capture_output=True, text=True, check=False)


def printed(*arguments: str | os.PathLike[str], **variables: str) -> str:
    """Run Python as `python` does, which must succeed, and return what it printed."""
    done = python(*arguments, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
