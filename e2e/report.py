"""Runs cases one after the other and reports them: a table as they finish, JUnit XML and JSON, an exit status.

The device that ran stands in all three, as the active driver describes it: a result without it means nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import triton
from elsewhere import WORKER, serve, workers

# As pytest has it; unlike 1 and 2, Python itself never exits with it.
NONE = 5


@dataclass(frozen=True)
class Case:
    """One check: a kernel, its parameters, and what runs it.

    Attributes:
        suite: the kernel's name.
        name: the parameters, as `n=7 block=64 f32`.
        run: launches and checks; returns the largest error as a share of what is allowed (0 for an exact result),
            None where nothing was computed, or in words what happened instead and is right as well; raises
            AssertionError with an explanation if the result is wrong.
        variables: of the environment that it needs; a case with any runs in a process of its own kind, beside others.
        anywhere: it says the same with every release of Triton; --not-anywhere leaves it out.
    """

    suite: str
    name: str
    run: Callable[[], float | str | None]
    variables: Mapping[str, str] = field(default_factory=dict)
    anywhere: bool = False


@dataclass(frozen=True)
class Result:
    """What became of a case.

    Attributes:
        seconds: of wall time, with compiling the kernel, the reference and the comparison. error: what the case's `run`
        returned. modelled: what its launches cost, where the device is an emulator that has a model of that: cycles of
        the slowest
            DPU, bytes moved by DMA. Never measured.
    """

    suite: str
    name: str
    seconds: float
    error: float | str | None
    modelled: dict[str, int] | None
    failure: str | None


def main(title: str, cases: Iterable[Case]) -> int:
    """Run all cases and report.

    Returns:
        The exit status: 0 if all passed, 1 if any failed, NONE if there was none to run.
    """
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--results", type=Path, help="folder for junit.xml and results.json")
    parser.add_argument("--only", default="", help="run the cases whose name contains this")
    parser.add_argument("--not-anywhere", action="store_true", help="leave out what says the same with every Triton")
    parser.add_argument(WORKER, action="store_true", help="see elsewhere.py")
    options = parser.parse_args()
    cases = list(cases)
    if options.worker:
        known = {(case.suite, case.name): case for case in cases}
        serve(lambda key: _without_names(_run(known[key])))
        return 0
    chosen = [case for case in cases if options.only in f"{case.suite} {case.name}"]
    left = [case for case in chosen if case.anywhere] if options.not_anywhere else []
    chosen = [case for case in chosen if case not in left]
    if not chosen:
        print("\n".join(["the cases are:", *(f"    {case.suite} {case.name}" for case in cases)]))
        return NONE
    ran = {"triton": triton.__version__, **triton.runtime.driver.active.ran().as_dict()}
    print(f"{title} on Triton {ran['triton']}\nran on {triton.runtime.driver.active.ran()}\n", flush=True)
    results = []
    for result in _results(chosen):
        results.append(result)
        print(_row(result), flush=True)
    failed = [result for result in results if result.failure is not None]
    seconds = sum(result.seconds for result in results)
    print(f"\n{len(results) - len(failed)} passed, {len(failed)} failed in {seconds:.1f} s on {ran['kind']}")
    if left:
        print(f"{len(left)} that say the same with every release of Triton were left to another one")
    if options.results:
        options.results.mkdir(parents=True, exist_ok=True)
        _junit(options.results / "junit.xml", title, ran, results)
        _json(options.results / "results.json", title, ran, results)
    return 1 if failed else 0


def _results(cases: Sequence[Case]) -> Iterator[Result]:
    """Of all cases, as they finish: those of this process first, while the others' processes are at work."""
    groups: dict[tuple[tuple[str, str], ...], list[tuple[str, str]]] = {}
    for case in cases:
        if case.variables:
            groups.setdefault(tuple(case.variables.items()), []).append((case.suite, case.name))
    with workers(groups) as started:
        for case in cases:
            if not case.variables:
                yield _run(case)
        for worker in started:
            for (suite, name), outcome in worker.results():
                yield Result(suite, name, **outcome)


def _without_names(result: Result) -> dict[str, Any]:
    return {name: value for name, value in asdict(result).items() if name not in ("suite", "name")}


def _run(case: Case) -> Result:
    start = time.perf_counter()
    error = failure = None
    with _launches() as launches:
        try:
            error = case.run()
        except AssertionError as wrong:
            failure = str(wrong)
        except Exception:  # whatever a kernel raises is this case's result, and the next case still runs
            failure = traceback.format_exc()
    return Result(case.suite, case.name, time.perf_counter() - start, error, _modelled(launches), failure)


def _launches() -> AbstractContextManager[list[Any]]:
    """What the driver tells of each launch, if it can tell anything."""
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


def _row(result: Result) -> str:
    if result.failure is None:
        error, verdict = _error(result.error), "passed"
    else:
        error, verdict = "", "FAILED"
    cost = f"modelled {result.modelled['cycles']} cycles" if result.modelled else ""
    row = f"{result.suite:<8} {result.name:<60} {error:<27} {cost:<27} {result.seconds:6.2f} s  {verdict}"
    if result.failure is not None:
        row += "\n    " + result.failure.strip().replace("\n", "\n    ")
    return row


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


def _junit(path: Path, title: str, ran: dict[str, str], results: list[Result]) -> None:
    failures = sum(result.failure is not None for result in results)
    suite = ElementTree.Element(
        "testsuite", name=title, tests=str(len(results)), failures=str(failures), errors="0",
        time=f"{sum(result.seconds for result in results):.3f}",
    )  # fmt: skip
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in ran.items():
        ElementTree.SubElement(properties, "property", name=name, value=value)
    for result in results:
        case = ElementTree.SubElement(
            suite, "testcase", classname=result.suite, name=result.name, time=f"{result.seconds:.3f}"
        )
        modelled = ElementTree.SubElement(case, "properties") if result.modelled else None
        for name, count in (result.modelled or {}).items():
            ElementTree.SubElement(modelled, "property", name=f"modelled_{name}", value=str(count))
        if result.failure is not None:
            failure = ElementTree.SubElement(case, "failure", message=result.failure.strip().splitlines()[-1])
            failure.text = result.failure
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _json(path: Path, title: str, ran: dict[str, str], results: list[Result]) -> None:
    document: dict[str, Any] = {
        "title": title,
        "ran": ran,
        "passed": sum(result.failure is None for result in results),
        "failed": sum(result.failure is not None for result in results),
        "cases": [asdict(result) for result in results],
    }
    path.write_text(json.dumps(document, indent=1) + "\n")


def run_script(title: str, cases: Callable[[], Iterable[Case]]) -> None:
    """The last line of a script: report, then exit with the status."""
    sys.exit(main(title, cases()))
