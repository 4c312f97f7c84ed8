"""Run the cases of a script in worker processes, and own their results.

A kernel may end or damage the process that it runs in. So this process runs no kernel, and imports neither Triton nor a
device's library. A worker is the same script with --worker: it lists the cases, then runs those that it is told to run,
one at a time. If a worker dies, or a case takes too long, that case is an error, and another worker continues with the
next case. Cases that need environment variables have workers with these variables, which run at the same time. A script
may also have several workers for the cases that need none.

With --records, standard output has one line of JSON per event, written when the event happens: first the plan, at last
the end. If the output stops, its reader knows which case was running (toolchains/testing/verdict.py).
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import json
import os
import random
import re
import secrets
import select
import signal
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar

WORKER = "--worker"
# Passed to the one worker that is asked for the list of cases, followed by the seconds between two of its answers.
LIST = "--list"
# The exit status if there was no case to run. pytest uses the same; Python itself never exits with it, unlike 1 and 2.
NONE = 5
# Seconds for a case, and for starting a worker. The slowest case takes about a minute on two processors.
LIMIT = 600
# prctl(2): whether other processes of the same user may read and write this process's memory and files.
_PR_SET_DUMPABLE = 4
# Files in which the kernel counts the processes that it killed for lack of memory, and the limit; cgroups v1 and v2.
_COUNTERS = ("/sys/fs/cgroup/memory/memory.oom_control", "/sys/fs/cgroup/memory.events")
_LIMITS = ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory.max")
_POLL = 0.2
PASSED, FAILED = "passed", "FAILED"

# A case's suite and name.
Key = tuple[str, str]
Variables = tuple[tuple[str, str], ...]


class WorkerError(Exception):
    """A worker failed to do what it was told.

    Attributes:
        outcome: "crash", "time-out", or "error" for an invalid answer.
    """

    def __init__(self, text: str, outcome: str = "error") -> None:
        super().__init__(text)
        self.outcome = outcome


class Worker:
    """A process that lists the script's cases and runs them on request; stop() also ends what it started.

    Raises:
        WorkerError: it did not list the cases.
    """

    alive: ClassVar[set[Worker]] = set()

    def __init__(self, variables: Variables, limit: float, *, listing: bool = False) -> None:
        self._limit = limit
        self._rest = b""
        self._kills = _kills()
        self._process = subprocess.Popen(
            [sys.executable, *_script(), WORKER, *([LIST, f"{max(limit, LIMIT):g}"] if listing else [])],
            env={**os.environ, **dict(variables)},
            start_new_session=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        self.alive.add(self)
        try:
            # A worker that lists many files says which one it comes to; the limit is for each.
            file = ""
            try:
                while "lists" in (hello := self._read(max(limit, LIMIT))):
                    file = hello["lists"]
            except WorkerError as error:
                raise WorkerError(
                    f"{error}; it listed the cases of {file}" if file else str(error), error.outcome
                ) from None
            self.hello: dict[str, Any] = hello
            if not isinstance(self.hello.get("cases"), list):
                raise WorkerError("the process did not say which cases there are")
        except BaseException:
            self.stop()
            raise

    def run(self, key: Key) -> dict[str, Any]:
        """Run a case, and return its result without its name.

        Raises:
            WorkerError: the process ended, took too long, or gave another answer. The worker must not be used any more.
        """
        # The token is new, so nobody can answer before the request was sent.
        token = secrets.token_hex(8)
        self._kills = _kills()
        with suppress(BrokenPipeError):
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps([token, *key]).encode() + b"\n")
        # Loading does not count: the limit is for the case itself.
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
        """Let the process end by itself; return the error that it ended with, or an empty text."""
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
        """Kill the process and the processes that it started."""
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
        """Return the next line that the process writes within `limit` seconds."""
        assert self._process.stdout is not None
        end = time.monotonic() + limit
        while b"\n" not in self._rest:
            if time.monotonic() > end:
                self.stop()
                raise WorkerError(f"it was ended: the limit on time is {limit:g} s", "time-out")
            # Check this first, so that output before the exit is still read. Children of the process may hold the pipe
            # open.
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


def _script() -> list[str]:
    """Return the words after `python` that started this script: a file or a folder, or `-m` and a package."""
    spec = sys.modules["__main__"].__spec__
    return ["-m", spec.parent] if spec is not None and spec.parent else [sys.argv[0]]


class Report:
    """The report of the cases: a table for people, and records if they were requested."""

    def __init__(self, title: str, records: bool) -> None:
        self._title = title
        self._records = records
        self._lock = Lock()
        self._start = time.monotonic()
        # The share of the cases that run, for people; empty if all run.
        self._of = ""
        self._counts = Counter[str]()
        self.faults: list[str] = []

    def say(self, text: str) -> None:
        # With records, standard output is only for them.
        print(text, file=sys.stderr if self._records else sys.stdout, flush=True)

    def record(self, **event: Any) -> None:
        if self._records:
            print(json.dumps(event), flush=True)

    def plan(self, chosen: Sequence[Key], of: int, hello: Mapping[str, Any]) -> None:
        self._of = f"{len(chosen)} of {of} cases" if len(chosen) < of else ""
        self.record(plan=chosen, of=of, title=self._title, ran=hello["ran"])
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
            self._counts[_verdict(result)] += 1

    @property
    def failed(self) -> bool:
        return bool(self._counts[FAILED] or self.faults)

    def fault(self, text: str) -> None:
        with self._lock:
            self.faults.append(text)

    def end(self, kind: str) -> None:
        self.record(end=self._counts.total(), faults=self.faults)
        seconds = time.monotonic() - self._start
        part = f" (only {self._of})" if self._of else ""
        counts = {PASSED: 0, **self._counts, FAILED: self._counts[FAILED]}
        said = ", ".join(f"{count} {verdict}" for verdict, count in counts.items()).lower()
        self.say(f"\n{said} in {seconds:.1f} s on {kind}{part}")
        for fault in self.faults:
            self.say(f"FAILED: {fault}")


def main(title: str, *, exact: bool = False, limit: int = LIMIT, workers: int = 1, always: Collection[str] = ()) -> int:
    """Run the cases of this script, sys.argv[0], and report the results.

    Args:
        title: for people.
        exact: whether --only is the whole name of a suite or of a case, or several of them, separated by commas.
        limit: seconds for a case, unless --limit is given.
        workers: number of workers for the cases that need no variables.
        always: names of cases that a sample has in addition to those that are drawn.

    Returns:
        The exit status: 0 if all passed, 1 if any failed, NONE if there was none to run.
    """
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--only", default="", help="run the cases whose suite and name contain this")
    parser.add_argument("--sample", type=int, default=0, help="run only this many of them, drawn at random; 0 for all")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--not-anywhere", action="store_true", help="leave out what says the same with every Triton")
    parser.add_argument("--limit", type=float, default=limit, help="seconds for a case")
    parser.add_argument("--records", action="store_true", help="write a line of JSON for each event; see supervise.py")
    options = parser.parse_args()
    # Workers must not write to this process's output through /proc.
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    report = Report(title, options.records)
    try:
        first = Worker((), options.limit, listing=True)
    except WorkerError as error:
        report.fault(f"no case was run: {error}")
        report.end("no device")
        return 1
    lanes: dict[Variables, list[Key]] = {(): []}
    cases = [case for case in first.hello["cases"] if not (case[-1] and options.not_anywhere)]
    left = len(first.hello["cases"]) - len(cases)
    only = " ".join(options.only.split())
    for suite, name, variables, _ in cases:
        if {suite, name} & {*options.only.split(",")} if exact and options.only else only in f"{suite} {name}":
            lanes.setdefault(tuple(map(tuple, variables)), []).append((suite, name))
    chosen = [key for keys in lanes.values() for key in keys]
    drawable = [key for key in chosen if key[1] not in always]
    if 0 < options.sample < len(drawable):
        drawn = set(random.Random(options.seed).sample(drawable, options.sample)) | {*chosen} - {*drawable}
        lanes = {variables: [key for key in keys if key in drawn] for variables, keys in lanes.items()}
        chosen = [key for key in chosen if key in drawn]
    report.plan(chosen, len(cases), first.hello)
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
    lots: list[tuple[deque[tuple[str, str]], Variables, Worker | None]]
    lots = [(shared, (), None if number else first) for number in range(max(1, min(workers, len(shared))))]
    lots += [(deque(keys), variables, None) for variables, keys in lanes.items()]
    with ThreadPoolExecutor(len(lots)) as pool:
        lanes_done = [pool.submit(work, *lot) for lot in lots]
        try:
            for done in lanes_done:
                done.result()
        except BaseException:
            # Interrupted. Workers have their own sessions, so keys of the terminal do not reach them.
            for worker in list(Worker.alive):
                worker.kill()
            os._exit(130)
    report.end(first.hello["ran"]["kind"])
    if left:
        report.say(f"{left} that say the same with every release of Triton were left to another image")
    return 1 if report.failed else 0


def _lane(keys: deque[Key], variables: Variables, worker: Worker | None, *, limit: float, report: Report) -> None:
    """Run cases in turn, in one worker as long as it lives; other lanes may take cases from the same queue."""
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
    """Return how many processes the kernel killed in this container for lack of memory."""
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
    if result.get("data"):
        return f"{result['data']['table']}\n"
    error = _error(result["error"]) if result["failure"] is None else ""
    cost = f"modelled {result['modelled']['cycles']} cycles" if result["modelled"] else ""
    seconds = f"{result['seconds']:6.2f} s"
    text = f"{result['suite']:<8} {result['name']:<60} {error:<27} {cost:<27} {seconds}  {_verdict(result)}"
    if result["failure"] is not None:
        text += "\n    " + result["failure"].strip().replace("\n", "\n    ")
    return text


def _verdict(result: Mapping[str, Any]) -> str:
    """Return how a result is counted and shown. A refusal or a test that is not applicable did not pass."""
    outcome = result.get("outcome")
    return FAILED if result["failure"] is not None else PASSED if outcome in (None, "pass") else str(outcome)


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
