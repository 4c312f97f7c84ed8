"""Lines of a kernel's source reach the code that the device executes: a crash in a kernel names its line."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from image import python

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
@pytest.mark.parametrize(
    ("file", "offsets", "line"),
    [("script.py", (FAR, "0"), 8), ('añadir "加".py', ("0", FAR), 11)],
    ids=["load", "store in a file with an odd name"],
)
def test_a_crash_in_a_kernel_names_the_kernel_and_the_line(
    file: str, offsets: tuple[str, str], line: int, tmp_path: Path
) -> None:
    script = tmp_path / file
    script.write_text(SCRIPT)
    done = python(script, *offsets)
    assert (done.returncode, done.stdout) == (-signal.SIGSEGV, "0.0\n"), done.stderr
    assert f"kernel astray crashed at {script}:{line} (SIGSEGV)\n" in done.stderr
    assert done.stderr.count("FOUNDRY_CHECK=1") == 1


# Sends each signal to a child, in each way, and prints the signals that did not end it.
# Of all threads, faulthandler reads frames while they run, and may crash.
SENDING = (
    "import faulthandler; faulthandler.enable(all_threads=False)\n"
    + SCRIPT.split("astray[(8,)](Tensor(x), Tensor(y), *")[0]
    + """
import os, signal, threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of a fork with threads; nothing but the signal follows

def in_thread(number):
    thread = threading.Thread(target=signal.raise_signal, args=[number])
    thread.start()
    thread.join()

ways = {
    "kill": lambda number: os.kill(os.getpid(), number),
    "raise": signal.raise_signal,
    "thread": in_thread,
}
for number in map(int, sys.argv[1:]):
    for name, send in ways.items():
        child = os.fork()
        if child == 0:
            send(number)
            os._exit(0)
        if os.waitpid(child, 0)[1] & 0x7f != number:
            print(name, signal.Signals(number).name)
"""
)
FATAL = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGABRT, signal.SIGQUIT, signal.SIGTRAP, signal.SIGSYS)


@pytest.mark.any_release
def test_a_signal_that_was_sent_ends_the_process_and_is_no_crash_of_a_kernel(tmp_path: Path) -> None:
    """LLVM's handlers, in PoCL and in Triton, take it for a fault of an instruction that will be executed again."""
    script = tmp_path / "script.py"
    script.write_text(SENDING)
    done = python(script, *(str(int(number)) for number in FATAL))
    assert (done.returncode, done.stdout) == (0, "0.0\n"), done.stderr
    # Python's own handler, which was there before PoCL, sees four of these signals, sent in three ways.
    assert done.stderr.count("Fatal Python error: ") == 12 and "kernel" not in done.stderr


def test_a_handler_of_the_user_takes_a_signal_that_was_sent(tmp_path: Path) -> None:
    script = (
        "import signal, foundry_core.runtime.crash as crash; signal.signal(signal.SIGSEGV, lambda *_: print('mine'));"
    )
    script += "crash.install(); signal.raise_signal(signal.SIGSEGV); print('lives')"
    done = python("-c", script)
    assert (done.returncode, done.stdout, done.stderr) == (0, "mine\nlives\n", "")


def test_a_crash_outside_of_kernels_is_left_alone() -> None:
    script = "import ctypes, foundry_core.runtime.crash as crash; crash.install(); ctypes.string_at(0)"
    done = python("-c", script)
    assert (done.returncode, done.stderr) == (-signal.SIGSEGV, "")
