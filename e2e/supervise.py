"""Runs the cases of a script in worker processes, and owns what is reported of them.

A kernel may end or damage the process that it runs in. So this process runs none, and imports neither Triton nor a
device's library. A worker is the same script with --worker: it says which cases there are, then runs those that it is
told to, one at a time. If it dies, or a case takes too long, that case is an error and another worker goes on with the
next. Cases that need variables of the environment have workers with these, which work at the same time; a script may
also have several workers for the cases that need none.

With --records, standard output carries a line of JSON for each event, written when it happens: first the plan, at last
the end. Who reads that knows which case was running if nothing follows (toolchains/testing/verdict.py).
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import json
import os
import re
import secrets
import select
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar

WORKER = "--worker"
# Given to the one worker that is asked which cases there are.
LIST = "--list"
# The exit status when there was no case to run. As pytest has it; unlike 1 and 2, Python itself never exits with it.
NONE = 5
# Seconds for a case, and for a worker's start. The slowest case takes about a minute on two processors.
LIMIT = 600
# prctl(2): whether other processes of the same user may look into this one.
_PR_SET_DUMPABLE = 4
# Where the kernel counts what it killed for lack of memory, and the limit; cgroups of version 1 and 2.
_COUNTERS = ("/sys/fs/cgroup/memory/memory.oom_control", "/sys/fs/cgroup/memory.events")
_LIMITS = ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory.max")
_POLL = 0.2

# A case's suite and name.
Key = tuple[str, str]
Variables = tuple[tuple[str, str], ...]


class WorkerError(Exception):
    """A worker did not do what it was told to.

    Attributes:
        outcome: "crash", "time-out", or "error" for an answer that is none.
    """

    def __init__(self, text: str, outcome: str = "error") -> None:
        super().__init__(text)
        self.outcome = outcome


class Worker:
    """A process that knows the script's cases and runs them on request; it is ended with all that it started.

    Raises:
        WorkerError: it did not say which cases there are.
    """

    alive: ClassVar[set[Worker]] = set()

    def __init__(self, variables: Variables, limit: float, *, listing: bool = False) -> None:
        self._limit = limit
        self._rest = b""
        self._kills = _kills()
        self._process = subprocess.Popen(
            [sys.executable, sys.argv[0], WORKER, *([LIST] if listing else [])],
            env={**os.environ, **dict(variables)},
            start_new_session=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        self.alive.add(self)
        try:
            self.hello: dict[str, Any] = self._read(max(limit, LIMIT))
            if not isinstance(self.hello.get("cases"), list):
                raise WorkerError("the process did not say which cases there are")
        except BaseException:
            self.stop()
            raise

    def run(self, key: Key) -> dict[str, Any]:
        """Run a case; returns its result without its name.

        Raises:
            WorkerError: the process ended, took too long, or answered something else. It must not be used any more.
        """
        # Nobody can answer before the case was sent.
        token = secrets.token_hex(8)
        self._kills = _kills()
        with suppress(BrokenPipeError):
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps([token, *key]).encode() + b"\n")
        # What it loads for the case does not count: the limit is for the case itself.
        if self._read(max(self._limit, LIMIT)) != {"token": token, "ready": True}:
            raise WorkerError("something other than an answer to this case was written to the worker's results")
        answer = self._read(self._limit)
        if self._rest or answer.get("token") != token or not isinstance(answer.get("result"), dict):
            raise WorkerError("something other than the result of this case was written to the worker's results")
        result: dict[str, Any] = answer["result"]
        if result["failure"] is not None and _kills() > self._kills:
            result["failure"] += f"\n{_killed()}"
        return result

    def end(self) -> str:
        """Let the process end by itself; returns what went wrong in that, or nothing."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            status = self._process.wait(self._limit)
        except subprocess.TimeoutExpired:
            return f"the worker did not end within {self._limit:g} s after its last case"
        finally:
            self.stop()
        return f"the worker {_ended(status)} after its last case" if status else ""

    def stop(self) -> None:
        """End the process, and what it started."""
        self.alive.discard(self)
        self.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(OSError):
                pipe.close()

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _read(self, limit: float) -> dict[str, Any]:
        """The next line that the process writes, in at most `limit` seconds."""
        assert self._process.stdout is not None
        end = time.monotonic() + limit
        while b"\n" not in self._rest:
            if time.monotonic() > end:
                self.stop()
                raise WorkerError(f"it was ended: the limit on time is {limit:g} s", "time-out")
            # First, so that what it wrote before it ended is read. Its children may hold the pipe open.
            status = self._process.poll()
            chunk = b""
            if select.select([self._process.stdout], [], [], 0 if status is not None else _POLL)[0]:
                chunk = os.read(self._process.stdout.fileno(), 65536)
                self._rest += chunk
                if not chunk:
                    status = self._process.wait()
            if status is not None and not chunk:
                self.stop()
                why = f"the process {_ended(status)} before this case was done"
                raise WorkerError(f"{why}\n{_killed()}" if _kills() > self._kills else why, "crash")
        line, _, self._rest = self._rest.partition(b"\n")
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        return answer if isinstance(answer, dict) else {}


class Report:
    """What is said of the cases: a table for people, and records where they are asked for."""

    def __init__(self, title: str, records: bool) -> None:
        self._title = title
        self._records = records
        self._lock = Lock()
        self._start = time.monotonic()
        self.passed = self.failed = 0
        self.faults: list[str] = []

    def say(self, text: str) -> None:
        # Standard output is for the records, if there are any.
        print(text, file=sys.stderr if self._records else sys.stdout, flush=True)

    def record(self, **event: Any) -> None:
        if self._records:
            print(json.dumps(event), flush=True)

    def plan(self, chosen: Sequence[Key], hello: Mapping[str, Any]) -> None:
        self.record(plan=chosen, title=self._title, ran=hello["ran"])
        if chosen:
            self.say(f"{self._title} on Triton {hello['ran']['triton']}\nran on {hello['device']}\n")

    def began(self, key: Key) -> None:
        with self._lock:
            self.record(began=key)

    def result(self, key: Key, result: dict[str, Any]) -> None:
        with self._lock:
            result = {"suite": key[0], "name": key[1], **result}
            self.record(result=result)
            self.say(row(result))
            if result["failure"] is None:
                self.passed += 1
            else:
                self.failed += 1

    def fault(self, text: str) -> None:
        with self._lock:
            self.faults.append(text)

    def end(self, kind: str) -> None:
        self.record(end=self.passed + self.failed, faults=self.faults)
        seconds = time.monotonic() - self._start
        self.say(f"\n{self.passed} passed, {self.failed} failed in {seconds:.1f} s on {kind}")
        for fault in self.faults:
            self.say(f"FAILED: {fault}")


def main(title: str, *, exact: bool = False, limit: int = LIMIT, workers: int = 1) -> int:
    """Run the cases of this script, sys.argv[0], and report.

    Args:
        title: for people.
        exact: whether --only is the whole name of a case.
        limit: seconds for a case, if --limit does not say otherwise.
        workers: how many run the cases that need no variables.

    Returns:
        The exit status: 0 if all passed, 1 if any failed, NONE if there was none to run.
    """
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--only", default="", help="run the cases whose name contains this")
    parser.add_argument("--not-anywhere", action="store_true", help="leave out what says the same with every Triton")
    parser.add_argument("--limit", type=float, default=limit, help="seconds for a case")
    parser.add_argument("--records", action="store_true", help="write a line of JSON for each event; see supervise.py")
    options = parser.parse_args()
    # No worker may write to this process's output through /proc.
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    report = Report(title, options.records)
    try:
        first = Worker((), options.limit, listing=True)
    except WorkerError as error:
        report.say(f"FAILED: no case was run: {error}")
        return 1
    lanes: dict[Variables, list[Key]] = {(): []}
    left = 0
    for suite, name, variables, anywhere in first.hello["cases"]:
        if options.only == name if exact and options.only else options.only in f"{suite} {name}":
            if anywhere and options.not_anywhere:
                left += 1
            else:
                lanes.setdefault(tuple(map(tuple, variables)), []).append((suite, name))
    chosen = [key for keys in lanes.values() for key in keys]
    report.plan(chosen, first.hello)
    if not chosen:
        first.stop()
        names = (f"    {suite} {name}" for suite, name, *_ in first.hello["cases"])
        report.say("\n".join(["the cases are:", *names]))
        return NONE
    if len(set(chosen)) != len(chosen):
        first.stop()
        report.say("FAILED: two cases have the same name")
        return 1
    work = partial(_lane, limit=options.limit, report=report)
    shared = deque(lanes.pop(()))
    lots = [(shared, (), None if number else first) for number in range(max(1, min(workers, len(shared))))]
    lots += [(deque(keys), variables, None) for variables, keys in lanes.items()]
    with ThreadPoolExecutor(len(lots)) as pool:
        lanes_done = [pool.submit(work, *lot) for lot in lots]
        try:
            for done in lanes_done:
                done.result()
        except BaseException:
            # Interrupted. Workers have sessions of their own, which a terminal's keys do not reach.
            for worker in list(Worker.alive):
                worker.kill()
            os._exit(130)
    report.end(first.hello["ran"]["kind"])
    if left:
        report.say(f"{left} that say the same with every release of Triton were left to another one")
    return 1 if report.failed or report.faults else 0


def _lane(keys: deque[Key], variables: Variables, worker: Worker | None, *, limit: float, report: Report) -> None:
    """Run cases one after the other, in one worker as long as it lives; other lanes may take from the same cases."""
    key: Key | None = None
    while keys:
        try:
            key = keys.popleft()
        except IndexError:
            # Another lane took the last one.
            break
        report.began(key)
        start = time.monotonic()
        try:
            worker = worker or Worker(variables, limit)
            result = worker.run(key)
        except WorkerError as error:
            if worker:
                worker.stop()
            worker = None
            seconds = time.monotonic() - start
            result = {"seconds": seconds, "error": None, "modelled": None, "failure": str(error)}
            result["outcome"] = error.outcome
        report.result(key, result)
    if worker and (wrong := worker.end()):
        report.fault(f"{wrong}: {' '.join(key) if key else 'none was run'}")


def _ended(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    with suppress(ValueError):
        return f"was ended by {signal.Signals(-status).name}"
    return f"was ended by signal {-status}"


def _kills() -> int:
    """How many processes the kernel killed for lack of memory in this container."""
    counted = (re.findall(r"^oom_kill (\d+)$", text, re.MULTILINE) for text in _texts(_COUNTERS))
    return sum(map(int, itertools.chain.from_iterable(counted)))


def _killed() -> str:
    limits = [int(text) for text in _texts(_LIMITS) if text.strip().isdecimal()]
    of = f", which is limited to {min(limits) / 1e9:.1f} GB" if limits else ""
    return f"the kernel killed a process for lack of memory{of}"


def _texts(paths: Sequence[str]) -> list[str]:
    found = []
    for path in paths:
        with suppress(OSError):
            found.append(Path(path).read_text())
    return found


def row(result: Mapping[str, Any]) -> str:
    """A result as a row of the table."""
    if result.get("data"):
        return f"{result['data']['table']}\n"
    if result["failure"] is None:
        error, verdict = _error(result["error"]), result.get("outcome") or "passed"
    else:
        error, verdict = "", "FAILED"
    cost = f"modelled {result['modelled']['cycles']} cycles" if result["modelled"] else ""
    text = f"{result['suite']:<8} {result['name']:<60} {error:<27} {cost:<27} {result['seconds']:6.2f} s  {verdict}"
    if result["failure"] is not None:
        text += "\n    " + result["failure"].strip().replace("\n", "\n    ")
    return text


def _error(error: float | str | None) -> str:
    match error:
        case None:
            return ""
        case str():
            return error
        case 0:
            return "exact"
        case _:
            return f"{error:.1%} of the allowed error"
