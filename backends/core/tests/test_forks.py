"""A process that asked for a device can fork; the child of one that launched is refused, and does not hang."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

# Of a test's script, in which a child that hangs is found.
SECONDS = 120
BEGINNING = """
import multiprocessing, os, sys
import numpy as np
import triton
import triton.language as tl
from foundry_core.failure import Failure

@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, 2 * tl.load(x_ptr + at, mask=at < n), mask=at < n)

def work(number):
    x, out = np.full(100, number, np.int32), np.full(100, -1, np.int32)
    double_kernel[(2,)](x, out, 100, BLOCK=64)
    assert (out == 2 * number).all()
    return int(out[0])

def refused(number):
    try:
        work(number)
    except Failure as error:
        return str(error)
    return "it ran"
"""


def run(script: str) -> str:
    """Run a script in a file, because Triton reads a kernel's source; return what it printed."""
    code = "import pathlib, runpy, sys, tempfile\nfile = pathlib.Path(tempfile.mkdtemp(), 'script.py')\n"
    code += f"file.write_text({BEGINNING + textwrap.dedent(script)!r})\nrunpy.run_path(str(file), run_name='script')"
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=2 * SECONDS)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("asks", ["", "triton.runtime.driver.active.get_current_device()"])
def test_children_of_a_process_that_asked_whether_there_is_a_device_launch(asks: str) -> None:
    said = run(f"""
        active = [name for name, each in triton.backends.backends.items() if each.driver.is_active()]
        {asks}
        with multiprocessing.get_context("fork").Pool(2) as pool:
            print(pool.map_async(work, range(4)).get(timeout={SECONDS}))
        print(len(active), work(7))
    """)
    assert said == "[0, 2, 4, 6]\n1 14\n"


def test_children_of_a_process_that_launched_are_refused_with_what_to_do() -> None:
    said = run(f"""
        work(1)
        with multiprocessing.get_context("fork").Pool(1) as pool:
            print(pool.map_async(refused, [2]).get(timeout={SECONDS})[0], flush=True)
        if (child := os.fork()) == 0:
            print(refused(3), flush=True)
            sys.exit(0)  # not os._exit: what ends with a process must not wait for its parent's threads
        os.waitpid(child, 0)
        print(work(4))
    """)
    assert said.count("spawn") == 2 and "it ran" not in said, said
    assert said.splitlines()[-1] == "8"
