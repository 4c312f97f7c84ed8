"""Judge a run of cases in a container, on this machine, by the records that e2e/supervise.py sends.

The first record is the plan: the cases to run, and how many there are. A run succeeds only if each planned case has
exactly one result, if none failed, and if the last record arrived. A case that was running when the records stopped is
an error, and so is a case that was not run. A run of some of the cases only is marked as partial, and is no proof.

A result has `failure`, a text, or None if nothing is wrong. It may have `outcome`, one word about the case, and
`reason`. Without a failure, an outcome other than "pass" says why the case was not completed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NotRequired, TypedDict
from xml.etree import ElementTree

import msgspec

from toolchains.system import json_text
from toolchains.system.document import ShownDocument

# A case's suite and name.
Key = tuple[str, str]
# Outcomes of a case without its own result: its process ended, it took too long, or it was never started.
CRASH, TIME_OUT, NOT_RUN = "crash", "time-out", "not run"
_BROKEN = (CRASH, TIME_OUT, NOT_RUN, "error")
PASS, REFUSED = "pass", "refused"
# The files that Verdict.write writes.
FILES = ("results.json", "junit.xml")
# All outcomes, in the order of the tables; and those of a case that failed.
OUTCOMES = (PASS, REFUSED, "not applicable", "wrong", CRASH, TIME_OUT, "error", NOT_RUN)
BAD = ("wrong", CRASH, TIME_OUT, "error", NOT_RUN)


class _Measured(TypedDict):
    measurements: NotRequired[list[dict[str, Any]]]
    kernels: NotRequired[list[dict[str, Any]]]


class Result(TypedDict):
    """A case's result, as far as this machine reads it; see e2e/report.py and conformance/tests_worker.py."""

    suite: str
    name: str
    seconds: float
    failure: str | None
    modelled: dict[str, float] | None
    error: NotRequired[float | str | None]
    outcome: NotRequired[str | None]
    reason: NotRequired[str]
    why: NotRequired[str]
    properties: NotRequired[dict[str, Any]]
    data: NotRequired[_Measured | None]


class Case(msgspec.Struct, frozen=True):
    """A case that was to run.

    Attributes:
        suite: the kernel, or the file of the test.
        name: the parameters, or the test.
        outcome: "pass", "refused", "not applicable", "wrong", "crash", "time-out", "error" or "not run".
        seconds: wall time.
        failure: what went wrong; null if nothing did.
        reason: why it was refused or was not applicable, or the first line of an error; may be "".
        error: the largest error as a share of the allowed one, or a text that describes another correct outcome; null
            if nothing was compared.
        modelled: what an emulator with a cost model counted, such as cycles; null if the device is none.
    """

    suite: str
    name: str
    outcome: str
    seconds: float
    failure: str | None
    reason: str
    error: float | str | None
    modelled: dict[str, float] | None


class Ran(ShownDocument, kw_only=True, tag="ran"):
    """What every run of cases in an image says.

    Attributes:
        target: the target; with --plugin, PLUGIN-in-TARGET.
        triton: the release of Triton.
        ran: what the kernels ran on, and with --plugin the wheel or the sources; empty if no case ran.
        partial: which share of the cases was to run, for people; "" if it was all of them.
        faults: errors of the run as a whole.
        results: the folder with the results of this run.
        cases: the cases, in the order in which they ended.
    """

    target: str
    triton: str
    ran: dict[str, str]
    partial: str
    faults: list[str]
    results: str
    cases: list[Case]

    @property
    def succeeded(self) -> bool:
        return bool(self.cases) and not self.faults and all(case.failure is None for case in self.cases)


def outcome_of(result: Mapping[str, Any]) -> str:
    """Return the outcome of a result of a Verdict, one of OUTCOMES."""
    return result.get("outcome") or (PASS if result["failure"] is None else "error")


@dataclass
class Verdict:
    """The records so far.

    Attributes:
        plan: the cases to run; None before the plan arrives.
        of: number of cases that could have been planned.
        title, ran: what ran, and on which devices. Of `ran`, values given at first are kept.
        results: by case, in order of arrival.
        faults: errors of the run as a whole.
    """

    plan: tuple[Key, ...] | None = None
    of: int = 0
    title: str = ""
    ran: Mapping[str, str] = field(default_factory=dict)
    results: dict[Key, dict[str, Any]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    _began: dict[Key, None] = field(default_factory=dict)
    _ended: bool = False

    def take(self, line: str) -> None:
        """Add a record. A malformed record is a fault."""
        try:
            record = json_text.parse(line, dict[str, Any])
            if self._ended:
                raise ValueError("it came after the last one")
            match record:
                case {"plan": plan, "of": int(of), "title": str(title), "ran": ran} if self.plan is None:
                    self.plan = tuple(msgspec.convert(plan, list[Key]))
                    self.of, self.title, self.ran = of, title, msgspec.convert(ran, dict[str, str]) | dict(self.ran)
                case {"began": began}:
                    key = msgspec.convert(began, Key)
                    if key not in (self.plan or ()) or key in self._began:
                        raise ValueError("the case is not planned, or began before")
                    self._began[key] = None
                case {"result": dict(result)}:
                    # Only checked: results.json gets all that the record has.
                    msgspec.convert(result, Result)
                    key, outcome = (result["suite"], result["name"]), outcome_of(result)
                    if outcome not in OUTCOMES or (outcome in BAD) != (result["failure"] is not None):
                        raise ValueError(f"its outcome is {outcome}, and its failure {result['failure']}")
                    if key not in self._began or key in self.results:
                        raise ValueError("the case did not begin, or has a result")
                    self.results[key] = result
                case {"end": int(count), "faults": faults}:
                    self._ended = True
                    self.faults += msgspec.convert(faults, list[str])
                    if count != len(self.results):
                        raise ValueError(f"{count} results were sent, {len(self.results)} came")
                case _:
                    raise ValueError("it is of no known kind")
        except ValueError as error:
            self.faults.append(f"a record cannot be used: {error}: {line[:200]}")

    def conclude(self, why: str, *, stopped: bool = False) -> None:
        """Conclude the run, after which no record comes: a case without a result is an error.

        Args:
            why: what ended the run, for people.
            stopped: whether the user ended it, and not an error.
        """
        if self.plan is None:
            self.faults.append(f"it broke off before it said which cases there are: {why}")
            return
        if not self._ended:
            self.faults.append(f"it broke off: {why}")
        for key in self.plan:
            if key not in self.results:
                blank = {"suite": key[0], "name": key[1], "seconds": 0.0, "error": None, "modelled": None}
                if key in self._began:
                    end = {"failure": f"it was running when the run broke off: {why}", "outcome": CRASH}
                    if stopped:
                        end["outcome"] = NOT_RUN
                else:
                    end = {"failure": f"not run: {why}", "outcome": NOT_RUN}
                self.results[key] = blank | end

    def described(self, target: str, triton: str, results: Path) -> dict[str, Any]:
        """Return the fields of Ran."""
        cases = [
            Case(
                suite=result["suite"],
                name=result["name"],
                outcome=outcome_of(result),
                seconds=result["seconds"],
                failure=result["failure"],
                reason=result.get("reason") or "",
                error=result.get("error"),
                modelled=result["modelled"],
            )
            for result in self.results.values()
        ]
        return {
            "target": target,
            "triton": triton,
            "ran": dict(self.ran),
            "partial": self.partial,
            "faults": self.faults,
            "results": str(results),
            "cases": cases,
        }

    @property
    def failed(self) -> list[dict[str, Any]]:
        return [result for result in self.results.values() if result["failure"] is not None]

    @property
    def succeeded(self) -> bool:
        """Return whether at least one case was planned, and all planned cases completed with correct results."""
        planned = self.plan or ()
        return bool(planned) and set(planned) == set(self.results) and not (self.failed or self.faults) and self._ended

    @property
    def proven(self) -> bool:
        """Return whether the run succeeded, and was of all cases."""
        return self.succeeded and not self.partial

    @property
    def partial(self) -> str:
        """Return which share of the cases was planned, for people; empty if it is all of them."""
        planned = len(self.plan or ())
        return f"only {planned} of {self.of} cases" if planned < self.of else ""

    def write(self, folder: Path, **more: object) -> None:
        """Write junit.xml and results.json; results.json also gets the additional values."""
        folder.mkdir(parents=True, exist_ok=True)
        document = {
            "title": self.title,
            "ran": self.ran,
            "planned": len(self.plan or ()),
            "partial": self.partial,
            "passed": sum(r["failure"] is None and _skipped(r) is None for r in self.results.values()),
            "failed": len(self.failed),
            "faults": self.faults,
            **more,
            "cases": list(self.results.values()),
        }
        document_file, junit = (folder / name for name in FILES)
        document_file.write_text(json.dumps(document, indent=1) + "\n")
        self._junit(junit)

    def _junit(self, path: Path) -> None:
        broken = sum(result.get("outcome") in _BROKEN for result in self.failed)
        skipped = sum(_skipped(result) is not None for result in self.results.values())
        suite = ElementTree.Element(
            "testsuite",
            name=_printable(f"{self.title}, {self.partial}" if self.partial else self.title),
            tests=str(len(self.results) + len(self.faults)),
            failures=str(len(self.failed) - broken),
            errors=str(broken + len(self.faults)),
            skipped=str(skipped),
            time=f"{sum(result['seconds'] for result in self.results.values()):.3f}",
        )
        properties = ElementTree.SubElement(suite, "properties")
        for name, value in self.ran.items():
            ElementTree.SubElement(properties, "property", name=_printable(name), value=_printable(value))
        for result in self.results.values():
            case = ElementTree.SubElement(
                suite,
                "testcase",
                classname=_printable(result["suite"]),
                name=_printable(result["name"]),
                time=f"{result['seconds']:.3f}",
            )
            if result["modelled"]:
                costs = ElementTree.SubElement(case, "properties")
                for name, count in result["modelled"].items():
                    ElementTree.SubElement(costs, "property", name=f"modelled_{name}", value=str(count))
            if result["failure"] is not None:
                _add_failure(case, "error" if result.get("outcome") in _BROKEN else "failure", result["failure"])
            elif (why := _skipped(result)) is not None:
                ElementTree.SubElement(case, "skipped", message=_printable(why))
        for fault in self.faults:
            _add_failure(ElementTree.SubElement(suite, "testcase", classname="run", name="the whole"), "error", fault)
        root = ElementTree.Element("testsuites")
        root.append(suite)
        ElementTree.indent(root)
        ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _skipped(result: Mapping[str, Any]) -> str | None:
    """Return why a case that did not fail was not completed; None if it passed."""
    outcome = result.get("outcome") or PASS
    if result["failure"] is not None or outcome == PASS:
        return None
    return f"{outcome}: {result.get('reason', '')}"


def _add_failure(case: ElementTree.Element, kind: str, text: str) -> None:
    text = _printable(text)
    last = (text.strip().splitlines() or ["no reason was given"])[-1]
    ElementTree.SubElement(case, kind, message=last).text = text


def _printable(text: str) -> str:
    # XML cannot represent most control characters.
    return "".join(char if char.isprintable() or char in "\n\t" else repr(char)[1:-1] for char in text)
