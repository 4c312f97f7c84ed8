"""Cases in processes of their own: what an environment decides at the start of a process, each process has its own of.

The processes work beside each other and beside the one that reports. Each runs the same script with --worker, reads on
its standard input which cases are its own, and writes a line of JSON for each when it is done.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

WORKER = "--worker"

# A case's suite and name.
Key = tuple[str, str]


class Worker:
    """A process that runs cases.

    Args:
        keys: the cases, in order.
        variables: what its environment has beside this process's.
    """

    def __init__(self, keys: Sequence[Key], variables: Mapping[str, str]) -> None:
        self._keys = keys
        self._named = " ".join(f"{name}={value}" for name, value in variables.items())
        self._process = subprocess.Popen(
            [sys.executable, sys.argv[0], WORKER], env={**os.environ, **variables}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(keys))
        self._process.stdin.close()

    def results(self) -> Iterator[tuple[Key, dict[str, Any]]]:
        """Each case with what `serve` made of it, as it finishes; if the process dies, the rest say so as a failure."""
        assert self._process.stdout is not None
        missing = dict.fromkeys(self._keys)
        for line in self._process.stdout:
            suite, name, result = json.loads(line)
            del missing[suite, name]
            yield (suite, name), result
        status = self._process.wait()
        for key in missing:
            said = f"the process with {self._named} ended with status {status} before this case was done"
            yield key, {"seconds": 0.0, "error": None, "modelled": None, "failure": said}

    def stop(self) -> None:
        """End the process if it still runs."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


@contextmanager
def workers(groups: Mapping[tuple[tuple[str, str], ...], Sequence[Key]]) -> Iterator[list[Worker]]:
    """A process for each environment, with its cases; none of them is left when the `with` ends."""
    started: list[Worker] = []
    try:
        for variables, keys in groups.items():
            started.append(Worker(keys, dict(variables)))
        yield started
    finally:
        for worker in started:
            worker.stop()


def serve(run: Callable[[Key], dict[str, Any]]) -> None:
    """The other side of `Worker`: run the cases that standard input names."""
    keys = [(suite, name) for suite, name in json.load(sys.stdin)]
    # What kernels, compilers and libraries print is no result.
    results = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    for key in keys:
        print(json.dumps([*key, run(key)]), file=results, flush=True)
