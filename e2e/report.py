"""Defines a case, and the process that runs cases: a worker of supervise.py, which reports them.

Every report names the device that ran, as the active driver describes it, because a result without it means nothing.
"""

from __future__ import annotations

import faulthandler
import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from supervise import LIMIT, WORKER, main

# What a case returns; see Case.run.
Outcome: TypeAlias = float | str | Mapping[str, Any] | None


class Refusal(str):
    """What a case returns if the device must refuse it, and did so with the right error: the reason."""


@dataclass(frozen=True)
class Case:
    """One check: a kernel, its parameters, and the function that runs it.

    Attributes:
        suite: the kernel's name.
        name: the parameters, like `n=7 block=64 f32`.
        run: launches and checks. Returns the largest error as a share of the allowed one (0 for an exact result), None
            if nothing was computed, a text that describes another correct outcome, a Refusal, or the measured numbers
            with their table, and as "failure" what was not measured. Raises AssertionError with an explanation if the
            result is wrong.
        variables: environment variables that the case needs; such a case runs in another process, at the same time.
        anywhere: the case gives the same result with every release of Triton, and in each image with the same
            mapping and device; --not-anywhere leaves it out.
    """

    suite: str
    name: str
    run: Callable[[], Outcome]
    variables: Mapping[str, str] = field(default_factory=dict)
    anywhere: bool = False


@dataclass(frozen=True)
class Result:
    """The result of a case.

    Attributes:
        seconds: wall time, including compiling the kernel, the reference and the comparison.
        error: what the case's `run` returned.
        modelled: the cost of its launches if the device is an emulator with a cost model: cycles of the slowest DPU,
            bytes moved by DMA. Never measured.
        failure: the reason of the failure; None if the case passed.
        data: the measured numbers, with their table.
        outcome, reason: "refused", and why; None for every other result.
    """

    seconds: float
    error: float | str | None
    modelled: dict[str, int] | None
    failure: str | None
    data: Mapping[str, Any] | None = None
    outcome: str | None = None
    reason: str = ""


def run_script(
    title: str, cases: Callable[[], Iterable[Case]], *, exact: bool = False, limit: int = LIMIT, workers: int = 1
) -> None:
    """Supervise a script's cases, or run them as a worker, then exit with the status. It is the last line of a script.

    Args:
        title: for people.
        cases: called in workers only.
        exact, limit, workers: see supervise.main.
    """
    if WORKER in sys.argv[1:]:
        # A library that ends the process says why, and not for which of Python's lines.
        faulthandler.enable()
        serve(cases)
        sys.exit(0)
    sys.exit(main(title, exact=exact, limit=limit, workers=workers))


class Channel:
    """A worker's side of supervise.Worker: lists the cases, and answers for those that it is told to run.

    It must be created before anything prints. From then on, output of kernels, compilers and libraries is not taken for
    a result, and they cannot read the requests.
    """

    def __init__(self) -> None:
        self._results = os.fdopen(os.dup(sys.stdout.fileno()), "w")
        self._requests = os.fdopen(os.dup(sys.stdin.fileno()))
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        with Path(os.devnull).open() as nothing:
            os.dup2(nothing.fileno(), sys.stdin.fileno())
        # If memory runs out, the kernel must kill a worker, and not the process that reports it.
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000")

    def serve(self, listed: Sequence[Case], find: Callable[[str, str], Callable[[], Mapping[str, Any]]]) -> None:
        """Answer until there are no more requests.

        Args:
            listed: all cases; empty if this worker was not asked for them.
            find: returns a function that runs the case of this suite and name, and returns its result. The time of
                loading the case is not counted.
        """
        import triton

        ran = triton.runtime.driver.active.device_report()
        cases = [[case.suite, case.name, list(case.variables.items()), case.anywhere] for case in listed]
        self._say(cases=cases, ran={"triton": triton.__version__, **ran.as_dict()}, device=str(ran))
        for line in self._requests:
            token, suite, name = json.loads(line)
            case = find(suite, name)
            self._say(token=token, ready=True)
            self._say(token=token, result=case())

    def say_listing(self, file: str) -> None:
        """Say whose cases are being listed, so that a listing of many files may take its time."""
        self._say(lists=file)

    def _say(self, **answer: object) -> None:
        print(json.dumps(answer), file=self._results, flush=True)


def serve(cases: Callable[[], Iterable[Case]]) -> None:
    """List the cases, then run those that standard input names."""
    channel = Channel()
    listed = list(cases())
    known = {(case.suite, case.name): case for case in listed}
    channel.serve(listed, lambda suite, name: lambda: asdict(run(known[suite, name])))


def run(case: Case) -> Result:
    """Run a case in this process."""
    start = time.perf_counter()
    found: Outcome = None
    failure = None
    with _launches() as launches:
        try:
            found = case.run()
        except AssertionError as wrong:
            failure = str(wrong) or traceback.format_exc()
        except BaseException:  # any exception is this case's result, also that of sys.exit(0)
            failure = traceback.format_exc()
    seconds = time.perf_counter() - start
    if isinstance(found, float | int) and not 0 <= found <= 1:
        failure = f"the error is {found} of what is allowed"
    if isinstance(found, Mapping):
        return Result(seconds, None, _modelled(launches), failure or found.get("failure"), found)
    if isinstance(found, Refusal):
        return Result(seconds, found, _modelled(launches), failure, outcome="refused", reason=found)
    return Result(seconds, found, _modelled(launches), failure)


def _launches() -> AbstractContextManager[list[Any]]:
    """Return a context that yields what the driver reports of each launch; an empty list if it reports nothing."""
    import triton

    profile: Callable[[], AbstractContextManager[list[Any]]] | None
    profile = getattr(triton.runtime.driver.active, "profile", None)
    return nullcontext([]) if profile is None else profile()


def _modelled(launches: Sequence[Any]) -> dict[str, int] | None:
    if not launches or any(launch.cycles is None for launch in launches):
        return None
    return {
        "cycles": sum(launch.cycles for launch in launches),
        "dma_bytes": sum(launch.dma_read_bytes + launch.dma_write_bytes for launch in launches),
    }


def run_command(
    *command: str | Path, variables: Mapping[str, str | None] | None = None, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command, which must succeed; return what it printed.

    Args:
        variables: environment variables to set; None removes one.
    """
    env = {name: value for name, value in {**os.environ, **(variables or {})}.items() if value is not None}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, (
        f"{' '.join(map(str, command))}\nended with status {done.returncode}:\n{done.stdout}{done.stderr}"
    )
    return done
