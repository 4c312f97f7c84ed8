"""Lines of a kernel's source reach the code that the device executes: a crash in a kernel names its line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyopencl", reason="kernels end the process only where PoCL runs them in it")

# Lines 8 to 11 are those of the kernel's body.
SCRIPT = """import sys
import numpy as np, triton, triton.language as tl
from foundry_core.tensor import Tensor

@triton.jit
def astray(x, y, before, after, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + before + i)


    tl.store(y + after + i, v)

x, y = np.zeros(1024, np.float32), np.full(1024, np.nan, np.float32)
astray[(8,)](Tensor(x), Tensor(y), 0, 0, B=128)
print(y.sum(), flush=True)
astray[(8,)](Tensor(x), Tensor(y), *map(int, sys.argv[1:]), B=128)
"""
FAR = str(1 << 40)


@pytest.mark.any_release
@pytest.mark.parametrize(("offsets", "line"), [((FAR, "0"), 8), (("0", FAR), 11)], ids=["load", "store"])
def test_a_crash_in_a_kernel_names_the_kernel_and_the_line(offsets: tuple[str, str], line: int, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, script, *offsets], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (-signal.SIGSEGV, "0.0\n"), done.stderr
    assert f"kernel astray crashed at {script}:{line} (SIGSEGV)\n" in done.stderr
    assert done.stderr.count("FOUNDRY_CHECK=1") == 1


@pytest.mark.parametrize(
    "way",
    [
        "ctypes.string_at(0)",
        "os.kill(os.getpid(), signal.SIGSEGV)",
        "signal.raise_signal(signal.SIGSEGV)",
        "subprocess.run(['sh', '-c', 'kill -s SEGV $PPID'])",
        "threading.Thread(target=signal.raise_signal, args=[signal.SIGSEGV]).start()",
    ],
)
def test_a_crash_outside_of_kernels_and_a_signal_that_was_sent_are_left_alone(way: str) -> None:
    script = f"import ctypes, os, signal, subprocess, threading, foundry_core.crash as crash; crash.install(); {way}"
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGSEGV, "")
