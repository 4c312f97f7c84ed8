"""The environment of a user's script in a container: variables of this machine, and advice where a script fails."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache

from toolchains.config import components
from toolchains.system.errors import UsageError

CHECK = "FOUNDRY_CHECK"
# Variables that authors of kernels set, and that a container gets: these, and what the targets' files name.
_PASSED = ("FOUNDRY_*", "TRITON_*")
# It does not get those of them that are for this machine: of ./foundry itself, of measurements and tests, with paths of
# this machine, and those that choose the backend, which the target does.
KEPT = (
    *("FOUNDRY_CACHE", "FOUNDRY_YES", "FOUNDRY_DEBIAN_*", "FOUNDRY_BENCH_*", "FOUNDRY_MEASUREMENTS", "FOUNDRY_SUITE"),
    *("*_DIR", "*_DIRS", "*_PATH", "*_PATHS", "*_BIN", "*_LIBRARY", "*_HOME", "TRITON_PY", "TRITON_SRC"),
    *("TRITON_BUILD_*", "TRITON_OFFLINE_BUILD", "TRITON_BACKENDS_*", "TRITON_*_BACKEND"),
)
_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
# Signals with which a process ends whose memory a kernel damaged: glibc aborts if it finds its heap damaged.
_CRASHES = (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS)
# What an engine adds to the number of a signal that ended a process.
_SIGNALLED = 128
# Runs in the container at the start of each Python of the environment: adds a line to the traceback of a script that
# imports what is not there. A finder of modules that raised the error itself would break importlib.util.find_spec.
MISSING = """
import sys
def _hook(kind, error, trace, before=sys.excepthook, torch={torch!r}):
    before(kind, error, trace)
    if isinstance(error, ModuleNotFoundError) and error.name:
        name = error.name.partition(".")[0]
        advice = f"download the wheel that has {{name}}, and what it needs, and name its folder: --wheels=DIR"
        print("  next:", torch if name == "torch" and torch else advice, file=sys.stderr)
sys.excepthook = _hook
"""


def read(given: Sequence[str], *, check: bool = False, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables that a script gets: those of this machine that are for it, and those of options.

    Args:
        given: each --env: NAME=VALUE, or NAME for the value on this machine.
        check: --check, the checked mode.
        environ: this machine's variables.

    Raises:
        UsageError: a word names no variable, or one that this machine does not have.
    """
    found = {name: value for name, value in sorted(environ.items()) if is_passed(name)}
    found |= {CHECK: "1"} if check else {}
    for word in given:
        name, sign, value = word.partition("=")
        if not _NAME.fullmatch(name):
            raise UsageError(f"--env={word} names no variable", next="--env=NAME=VALUE, or --env=NAME")
        if not sign and name not in environ:
            raise UsageError(f"--env={word}: this machine has no such variable", next=f"--env={name}=VALUE")
        found[name] = value if sign else environ[name]
    return found


@cache
def passed() -> tuple[str, ...]:
    """Return the patterns of the variables that a container gets without --env, except for those in KEPT."""
    of_targets = {pattern for name in components.names() for pattern in components.target(name).variables}
    return *_PASSED, *sorted(of_targets)


def is_passed(name: str) -> bool:
    """Return whether a container gets a variable of this machine without --env."""
    return any(fnmatchcase(name, each) for each in passed()) and not any(fnmatchcase(name, each) for each in KEPT)


def crash(status: int) -> str:
    """Return the name of the signal by which a script crashed; "" if it ended otherwise."""
    return next((each.name for each in _CRASHES if status == _SIGNALLED + each), "")
