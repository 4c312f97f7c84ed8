"""Write a report as one HTML file, and read it back from there.

The file has everything in it: no script, no font and no other file is loaded. The report itself is in it as JSON, in an
element that browsers do not show, so that another report can be compared with it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec
from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from toolchains.lockfile.lock import Lock
from toolchains.report import charts
from toolchains.report.results import FORMAT, OWN_PARTS, Figure, Point, ProfiledKernel, Report, Run, differences
from toolchains.report.roofline import rooflines
from toolchains.system import foreign
from toolchains.system.errors import FileError, UsageError

_ID = "foundry-report"
_DATA = re.compile(rf'<script type="application/json" id="{_ID}">(.*?)</script>', re.DOTALL)
# Packages of an image that have a row of their own.
_PACKAGES = 15
# Below this share of the nearest roof, something else bounds a kernel (foundry_core.profile.report).
_LOW = 0.3


@dataclass(frozen=True)
class Line:
    """A row of the matrix: what should run or did run, here and in the report to compare with."""

    target: str
    release: str
    mode: str
    kind: str
    run: Run | None
    other: Run | None


@cache
def _template() -> Template:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["seconds"] = _seconds
    environment.filters["si"] = charts.si
    return environment.from_string(Path(__file__).with_name("page.html").read_text(encoding="utf-8"))


def render(report: Report, lock: Lock, other: Report | None = None) -> str:
    """Return the page of a report, beside another one if given."""
    other_measurements = {measurement.key: measurement for measurement in other.measurements} if other else {}
    by_source: dict[str, list[ProfiledKernel]] = {}
    for kernel in report.profiles:
        by_source.setdefault(kernel.key, []).append(kernel)
    # The share of its roof that each kernel reaches, if it is known, by what is the same in both reports.
    theirs = other.profiles if other else []
    shares = {(kernel.key, kernel.kernel, str(kernel.grid)): kernel.share for kernel in theirs if kernel.bound}
    # "<" is written so that no text in the data ends the element.
    data = Markup(msgspec.json.encode(report).decode().replace("<", "\\u003c"))
    return _template().render(
        report=report,
        other=other,
        matrix=_matrix(report, lock, other),
        measured=[(measurement, other_measurements.get(measurement.key)) for measurement in report.measurements],
        changed=differences(other.locked, report.locked) if other else report.changed,
        profiles=by_source,
        profiled=shares,
        style=charts.STYLE,
        trend=charts.trend,
        passed=_passed,
        rooflines=rooflines,
        shown=_PACKAGES,
        low=_LOW,
        id=_ID,
        data=data,
    )


def read(path: Path) -> Report:
    """Read the report in a page.

    Raises:
        FileError: the file is missing, too large or no plain file, or is no report of this format.
    """
    try:
        text = foreign.read_file(path).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{path} cannot be read", why=str(error), next="./foundry report") from error
    data = _DATA.search(text)
    if data is None:
        raise UsageError(f"{path} is no report", next="name a page that the verb report wrote")
    try:
        if msgspec.json.decode(data[1])["format"] != FORMAT:
            raise UsageError(
                f"{path} has another format than this Foundry's reports", next="write it again with this Foundry"
            )
        return msgspec.json.decode(data[1], type=Report)
    except (msgspec.MsgspecError, KeyError, TypeError, RecursionError) as error:
        raise FileError(f"the report in {path} is damaged", why=str(error), next="write it again") from error


def _matrix(report: Report, lock: Lock, other: Report | None) -> list[Line]:
    """Return a row for e2e of each proven target and release, which may not have run, and for each run."""
    here = {(run.target, run.release, run.mode, run.kind): run for run in report.runs}
    others = {(run.target, run.release, run.mode, run.kind): run for run in other.runs} if other else {}
    if not here and not others:
        return []
    planned = {(target.label, release, OWN_PARTS, "e2e") for target in lock.proven() for release in target.tritons}
    return [Line(*key, here.get(key), others.get(key)) for key in sorted(planned | here.keys() | others.keys())]


def _passed(points: list[Point]) -> list[Figure]:
    """Return the share of passed cases of each run in percent."""
    return [Figure(point.taken, 100 * point.passed / max(point.applicable, 1)) for point in points]


def _seconds(value: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-6:.3g} us"
