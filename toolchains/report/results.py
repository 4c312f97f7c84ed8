"""Read build/results: what ran, on what, and what came out.

The verbs e2e, test, conformance, bench and build --sizes each write their files there. This module only reads them, so
a report says nothing that no run has found. A missing file is a run that was not made.

Nothing here measures. When a run was made is the date of its file.
"""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar
from xml.etree import ElementTree

import msgspec

from toolchains.lockfile.lock import Lock
from toolchains.resolve import age
from toolchains.resolve.age import Newer
from toolchains.system import foreign, json_text, paths
from toolchains.system.children import run
from toolchains.system.errors import FileError, MissingToolError
from toolchains.testing.junit import DAMAGED
from toolchains.testing.proof import PART
from toolchains.testing.verdict import PASS

# Raised when a field changes its meaning; another format cannot be compared.
FORMAT = 1
OWN_PARTS = "our own parts"
# By the suffix of a folder's name; the longest one comes first.
_MODES = {"-sdk-source": "the vendor's SDK, from source", "-sdk": "the vendor's SDK", "-source": "from source"}
_BENCH = "-bench"
# What a test's element in a JUnit file means.
_TESTS_BAD = ("error", "failed")
_TESTS = {"error": "error", "failure": "failed", "skipped": "not applicable"}
# Failures of one run that the page shows; it gives the number of all.
_SHOWN = 20
# Runs of one kind that a history keeps, the last ones.
_KEPT = 50


# A number that the page can divide.
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
# A number that is not finite is a fault of the run that wrote it. Counts may be floats, too.
_Number = Annotated[float, msgspec.Meta(ge=-1e300, le=1e300)]


class Run(msgspec.Struct, frozen=True):
    """One run of checks.

    Attributes:
        target, release, mode: the image; `mode` says whose parts it has.
        kind: "e2e", "tests" or "conformance: SUITE".
        ran: on what kernels ran, by what they are; {} if the run does not say.
        outcomes: number of cases by outcome.
        modelled: number of cases with modelled figures.
        failures: a case's name and the first line of its failure, the first ones.
        faults: errors of the run as a whole.
        taken: when, in ISO format.
        partial: which share of the cases was to run; "" if all of them.
    """

    target: str
    release: str
    mode: str
    kind: str
    ran: dict[str, str]
    outcomes: dict[str, int]
    modelled: int
    failures: list[tuple[str, str]]
    faults: list[str]
    taken: str
    partial: str = ""

    @property
    def key(self) -> str:
        return f"{self.target}, Triton {self.release}, {self.mode}: {self.kind}"

    @property
    def passed(self) -> int:
        return self.outcomes.get(PASS, 0)

    @property
    def bad(self) -> int:
        """Number of cases that passed neither nor were refused or skipped with a reason."""
        return sum(count for name, count in self.outcomes.items() if name not in (PASS, "refused", "not applicable"))

    @property
    def succeeded(self) -> bool:
        return self.passed > 0 and not self.bad and not self.faults


class Row(msgspec.Struct, frozen=True):
    """A candidate of a measurement: `seconds` are a median by the clock, `cycles` modelled; `detail` is its launch."""

    label: str
    seconds: float | None = None
    cycles: int | None = None
    rate: float | None = None
    detail: str = ""


class Measurement(msgspec.Struct, frozen=True):
    """Candidates that took turns in one run; see bench/measurement.py."""

    target: str
    release: str
    title: str
    unit: str
    rows: list[Row]
    ratios: dict[str, float]
    beyond: dict[str, float]
    aim: str
    ran: dict[str, str]
    taken: str

    @property
    def key(self) -> str:
        return f"{self.target}, Triton {self.release}: {self.title}"

    def trend_key(self, ratio: str) -> str:
        """Return the key of a ratio in Report.trends; each device has a trend of its own."""
        return f"{self.key}, on {self.ran.get('device', '')}: {ratio}"

    @property
    def shares(self) -> list[float | None]:
        """The share of the fastest candidate's speed that each reaches; None for all if fewer than two are comparable.

        They are compared by rates, or else by times, or else by modelled cycles.
        """
        speeds = (
            [row.rate for row in self.rows],
            [1 / row.seconds if row.seconds else None for row in self.rows],
            [1 / row.cycles if row.cycles else None for row in self.rows],
        )
        for each in speeds:
            known = [speed for speed in each if speed is not None]
            if len(known) > 1 and min(known) >= 0 < max(known):
                return [None if speed is None else speed / max(known) for speed in each]
        return [None] * len(self.rows)


class ProfiledKernel(msgspec.Struct, frozen=True):
    """What bounds a kernel, with one grid and one set of arguments; see docs/profiling.md.

    Attributes:
        source: the measurement or the script that launched it.
        seconds: of the fastest launch, measured; for a modelled one, 0.
        cycles: of the last launch, modelled; None where kernels are measured.
        roofs: what the device could do, as measured in the same run: seconds of a launch that does nothing, bytes of
            memory a second, and operations a second in f32, in f64 or by cooperative matrices. For DPUs, the shares of
            the modelled cycles in which the DMA engine and the pipeline are busy.
        bound: the nearest roof; "" if the work of the kernel is not known, for the reason in `unknown`.
        share: of that roof; None if the kernel is faster than it, so that the roof was measured too low.
    """

    target: str
    release: str
    source: str
    kernel: str
    grid: list[int]
    launches: int
    seconds: float
    cycles: float | None
    bytes: float
    operations: float
    functions: float
    roofs: dict[str, float]
    bound: str
    share: float | None
    unknown: str
    ran: dict[str, str]
    taken: str

    @property
    def key(self) -> str:
        return f"{self.target}, Triton {self.release}: {self.source}"


class Content(msgspec.Struct, frozen=True):
    """What takes the space in an image: bytes by package."""

    target: str
    release: str
    image: str
    packages: dict[str, _Count]
    taken: str

    @property
    def key(self) -> str:
        return f"{self.target}, Triton {self.release}"


class Point(msgspec.Struct, frozen=True):
    """How a conformance run came out: cases that passed, and cases that the target could pass."""

    taken: str
    passed: _Count
    applicable: _Count


class Figure(msgspec.Struct, frozen=True):
    """A figure of a run."""

    taken: str
    value: _Number


class Report(msgspec.Struct, frozen=True):
    """Everything that the page shows.

    Attributes:
        machine: processor, number of processors, and system of the machine that wrote the report.
        commit: this checkout's; "" without git. It ends with "+" if files differ from it.
        locked: version and hash of each locked file, with the systems that have it, by kind and name.
        changed: what differs in `locked` from the report before: (file, before, after).
        history: the conformance runs of this report and of those before, by Run.key.
        trends: the ratios of the measurements of this report and of those before, by trend_key().
        newer: what of the lock was behind the archives when they were asked; None if they were not.
    """

    format: int
    made: str
    machine: str
    commit: str
    lock: str
    locked: dict[str, str]
    changed: list[tuple[str, str, str]]
    runs: list[Run]
    measurements: list[Measurement]
    contents: list[Content]
    history: dict[str, list[Point]]
    profiles: list[ProfiledKernel] = []
    newer: tuple[Newer, ...] | None = None
    trends: dict[str, list[Figure]] = {}


def collect(folder: Path, lock: Lock, before: Report | None = None) -> Report:
    """Read a folder of results.

    Args:
        folder: as build/results.
        before: the last report, for what changed since then.

    Raises:
        FileError: a file of results is damaged.
    """
    runs = sorted([*_verdicts(folder), *_tests(folder / "test")], key=lambda each: each.key)
    locked, measurements = _locked(lock), list(_measurements(folder))
    return Report(
        FORMAT,
        datetime.now(UTC).isoformat(timespec="seconds"),
        f"{_processor()}, {os.cpu_count()} processors, {platform.system()} {platform.release()}",
        _commit(),
        lock.digest,
        locked,
        differences(before.locked, locked) if before else [],
        runs,
        measurements,
        list(_contents(folder)),
        _history(before.history if before else {}, _conformance(runs)),
        list(_profiles(folder)),
        trends=_history(before.trends if before else {}, _ratios(measurements)),
        newer=behind.newer if (behind := age.last(lock, folder / age.NAME)) else None,
    )


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return (name, before, after) for each name whose text differs; "" where it is missing."""
    names = sorted({*before, *after})
    return [(name, before.get(name, ""), after.get(name, "")) for name in names if before.get(name) != after.get(name)]


class _Case(msgspec.Struct):
    suite: str
    name: str
    failure: str | None
    outcome: str | None = None
    modelled: Any = None


class _Verdict(msgspec.Struct):
    ran: dict[str, str]
    cases: list[_Case]
    faults: list[str]
    partial: str = ""


class _Times(msgspec.Struct):
    median: _Number


class _Candidate(msgspec.Struct):
    label: str
    times: _Times | None
    rate: _Number | None
    cycles: _Number | None
    detail: str = ""


class _Measured(msgspec.Struct):
    title: str
    unit: str
    rows: list[_Candidate]
    ratios: dict[str, _Number]
    beyond: dict[str, _Number]
    aim: str
    on: dict[str, str] = {}


class _Modelled(msgspec.Struct):
    cycles: _Number
    dma: _Number
    pipeline: _Number


class _Kernel(msgspec.Struct):
    kernel: str
    grid: list[int]
    launches: int
    seconds: _Number
    modelled: _Modelled | None = None
    bytes: _Number = 0
    operations: _Number = 0
    functions: _Number = 0
    launch: _Number | None = None
    memory_roof: _Number | None = None
    arithmetic_roofs: dict[str, _Number] = {}
    bound: str = ""
    share: _Number | None = 0
    unknown: str = ""
    ran: dict[str, str] | None = None
    configuration: str = ""


class _Profile(msgspec.Struct):
    name: str
    kernels: list[_Kernel]


class _Bench(msgspec.Struct):
    ran: dict[str, str]
    measurements: list[_Measured]
    profiles: list[_Profile] = []


class _ScriptProfile(msgspec.Struct):
    ran: dict[str, str]
    script: str
    kernels: list[_Kernel]


class _Sizes(msgspec.Struct):
    image: str
    packages: dict[str, _Count]


def _verdicts(folder: Path) -> Iterator[Run]:
    for file in _files(folder, "*/*", "results.json"):
        target, release = file.relative_to(folder).parts[:2]
        if not target.endswith(_BENCH):
            yield _verdict(file, target, release, "e2e")
    for file in _files(folder, "*/conformance/*/*", "results.json"):
        target, _, release, suite = file.relative_to(folder).parts[:4]
        yield _verdict(file, target, release, f"conformance: {suite}")


def _files(folder: Path, runs: str, name: str) -> list[Path]:
    """Return the files of a name in the folders of runs, and in those for their parts."""
    return sorted([*folder.glob(f"{runs}/{name}"), *folder.glob(f"{runs}/{PART}/{name}")])


def _verdict(file: Path, name: str, release: str, kind: str) -> Run:
    document = json_text.read(file, _Verdict)
    # Such as dpu-sdk; see proof.results_folder.
    suffix = next((suffix for suffix in _MODES if name.endswith(suffix)), "")
    bad = [
        (f"{case.suite}: {case.name}", _first_line(case.failure)) for case in document.cases if case.failure is not None
    ]
    partial = document.partial
    return Run(
        name.removesuffix(suffix),
        _release(release),
        _MODES.get(suffix, OWN_PARTS),
        f"{kind}, {partial}" if partial else kind,
        document.ran,
        dict(Counter(case.outcome or (PASS if case.failure is None else "failed") for case in document.cases)),
        sum(case.modelled is not None for case in document.cases),
        bad[:_SHOWN],
        document.faults,
        _date(file),
        partial,
    )


def _tests(folder: Path) -> Iterator[Run]:
    """Read the JUnit files of the verb test, without those of e2e, which has its own results."""
    for file in sorted(folder.glob("*.xml")):
        kind, _, rest = file.stem.partition("-")
        if kind == "e2e":
            continue
        name, _, release = rest.rpartition("-")
        try:
            with foreign.open_file(file, foreign.TEXT) as text:
                cases = list(ElementTree.parse(text).getroot().iter("testcase"))
        except DAMAGED as error:
            raise FileError(f"{file} is damaged", why=str(error), next="./foundry test") from error
        outcomes, bad = Counter[str](), []
        for case in cases:
            children = {child.tag for child in case}
            outcome = next((outcome for tag, outcome in _TESTS.items() if tag in children), PASS)
            outcomes[outcome] += 1
            if outcome in _TESTS_BAD:
                messages = (str(child.get("message")) for child in case if _TESTS.get(child.tag) in _TESTS_BAD)
                bad.append((f"{case.get('classname')}: {case.get('name')}", _first_line(next(messages))))
        yield Run(
            name or "this machine",
            release,
            OWN_PARTS,
            "tests",
            {},
            dict(outcomes),
            0,
            bad[:_SHOWN],
            [],
            _date(file),
        )


def _measurements(folder: Path) -> Iterator[Measurement]:
    for file, home, bench, measured in _benched(folder, lambda bench: bench.measurements, lambda entry: entry.title):
        yield Measurement(
            home.parent.name.removesuffix(_BENCH),
            _release(home.name),
            measured.title,
            measured.unit,
            [
                Row(
                    row.label,
                    row.times.median if row.times else None,
                    None if row.cycles is None else round(row.cycles),
                    row.rate,
                    row.detail,
                )
                for row in measured.rows
            ],
            measured.ratios,
            measured.beyond,
            measured.aim,
            bench.ran | measured.on,
            _date(file),
        )


_Found = TypeVar("_Found", _Measured, _Profile)


def _benched(
    folder: Path, entries: Callable[[_Bench], list[_Found]], name: Callable[[_Found], str]
) -> Iterator[tuple[Path, Path, _Bench, _Found]]:
    """Yield (file, folder of its run, its document, entry) for what bench found; of one name, what was found last."""
    last = {}
    for file in sorted(_files(folder, f"*{_BENCH}/*", "bench.json"), key=lambda file: file.stat().st_mtime):
        bench, run = json_text.read(file, _Bench), folder.joinpath(*file.relative_to(folder).parts[:2])
        for entry in entries(bench):
            last[run, name(entry)] = (file, run, bench, entry)
    yield from sorted(last.values(), key=lambda each: each[1])


def _profiles(folder: Path) -> Iterator[ProfiledKernel]:
    """Read the profiles of measurements, then those of users' scripts."""
    for file, home, bench, profile in _benched(folder, lambda document: document.profiles, lambda each: each.name):
        for kernel in profile.kernels:
            yield _profile(file, home, profile.name, kernel, bench.ran)
    for file in sorted(folder.glob("*/*/profiles/*.json")):
        yield from profiled(file)


def profiled(file: Path) -> list[ProfiledKernel]:
    """Return the kernels in a file that bench or `run --profile-kernels` wrote to its place in a folder of results.

    Raises:
        FileError: it is damaged.
    """
    if file.name == "bench.json":
        home, bench = (file.parents[1] if file.parent.name == PART else file.parent), json_text.read(file, _Bench)
        return [
            _profile(file, home, each.name, kernel, bench.ran) for each in bench.profiles for kernel in each.kernels
        ]
    script = json_text.read(file, _ScriptProfile)
    return [_profile(file, file.parents[1], script.script, kernel, script.ran) for kernel in script.kernels]


def _profile(file: Path, folder: Path, source: str, kernel: _Kernel, ran: dict[str, str]) -> ProfiledKernel:
    modelled = kernel.modelled
    if modelled:
        roofs = {"dma": modelled.dma, "pipeline": modelled.pipeline}
    else:
        own = {"launch": kernel.launch, "memory": kernel.memory_roof}
        roofs = {name: rate for name, rate in own.items() if rate is not None}
        roofs |= kernel.arithmetic_roofs
    return ProfiledKernel(
        folder.parent.name.removesuffix(_BENCH),
        _release(folder.name),
        source,
        ", ".join(filter(None, [kernel.kernel, kernel.configuration])),
        kernel.grid,
        kernel.launches,
        0 if modelled else kernel.seconds,
        modelled.cycles if modelled else None,
        kernel.bytes,
        kernel.operations,
        kernel.functions,
        roofs,
        kernel.bound,
        kernel.share,
        _first_line(kernel.unknown),
        ran if kernel.ran is None else kernel.ran,
        _date(file),
    )


def _contents(folder: Path) -> Iterator[Content]:
    for file in sorted(folder.glob("*/*/sizes.json")):
        sizes = json_text.read(file, _Sizes)
        release = _release(file.parent.name)
        yield Content(file.parent.parent.name, release, sizes.image, sizes.packages, _date(file))


_Taken = TypeVar("_Taken", Point, Figure)


def _history(before: Mapping[str, list[_Taken]], recent: Iterator[tuple[str, _Taken]]) -> dict[str, list[_Taken]]:
    """Add what was found to that of earlier reports, by its key; a run is added once."""
    history = {key: list(points) for key, points in before.items()}
    for key, point in recent:
        points = history.setdefault(key, [])
        if point not in points:
            points.append(point)
            del points[:-_KEPT]
    return history


def _conformance(runs: list[Run]) -> Iterator[tuple[str, Point]]:
    for each in runs:
        if each.kind.startswith("conformance") and not each.partial:
            applicable = sum(each.outcomes.values()) - each.outcomes.get("not applicable", 0)
            yield each.key, Point(each.taken, each.passed, applicable)


def _ratios(measurements: list[Measurement]) -> Iterator[tuple[str, Figure]]:
    for measurement in measurements:
        for label, ratio in measurement.ratios.items():
            yield measurement.trend_key(label), Figure(measurement.taken, ratio)


def _release(folder: str) -> str:
    """Return Triton's release in the name of a folder; the name also has the revision of our patches."""
    return folder.partition("+")[0]


def _locked(lock: Lock) -> dict[str, str]:
    """Return for each locked file "VERSION (HASH): SYSTEMS", by "KIND NAME"; several versions are joined."""
    having: dict[str, dict[str, list[str]]] = {}
    for system in lock.systems():
        for artifact in system.own():
            versions = having.setdefault(f"{artifact.kind} {artifact.name}", {})
            versions.setdefault(f"{artifact.version} ({artifact.sha256[:12]})", []).append(system.label)
    for name, source in lock.sources.items():
        having[f"source {name}"] = {source.commit or source.version: []}
    return {
        name: "; ".join(f"{version}: {', '.join(dict.fromkeys(systems))}" for version, systems in versions.items())
        for name, versions in having.items()
    }


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _date(file: Path) -> str:
    return datetime.fromtimestamp(file.stat().st_mtime, UTC).isoformat(timespec="seconds")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _commit() -> str:
    """Return what git calls this checkout; "" if it is none, or if there is no git."""
    options = ("--always", "--abbrev=12", "--dirty=+", "--exclude=*")
    try:
        done = run(["git", "-C", paths.ROOT, "describe", *options], log="git-describe", check=False)
    except MissingToolError:
        return ""
    return done.stdout.strip() if done.status == 0 else ""
