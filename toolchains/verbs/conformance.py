"""The verb conformance: run tests of Triton's language in a target's image, and report the outcome of each.

The tests are the project's own, conformance/language, or a folder of the user's. Workers in a container run them, each
one test at a time; conformance/tests_worker.py determines the outcome of a test by the rules of conformance/rules.toml.
A worker that dies or takes too long loses one test. The records are judged on this machine, like those of e2e, so a
planned test without a result is detected.
"""

from __future__ import annotations

import json
import re
import secrets
import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from toolchains.assembly import ensure
from toolchains.assembly.request import Request
from toolchains.engine.sandbox import Sandbox
from toolchains.lockfile import lock
from toolchains.lockfile.lock import LockedTarget
from toolchains.system import document, durable, json_text, paths
from toolchains.system.console import Console
from toolchains.system.errors import FileError, ProofError, UsageError
from toolchains.system.terminal import make_console
from toolchains.testing import operations, plugin_in_image, proof
from toolchains.testing.verdict import BAD, FILES, NOT_RUN, OUTCOMES, PASS, Key, Ran, Verdict, outcome_of

SUITE = paths.ROOT / "conformance" / "language"
TABLE = paths.ROOT / "docs" / "operations.md"
# Default limit in seconds for a test.
LIMIT = 120
# Paths in the container.
_INSIDE = "/foundry/conformance"
_TESTS = "/foundry/suite"
_PYTEST = "/foundry/pytest"
# The largest limit for a test, and the limit for a run (seconds).
LONGEST = 3600
_SECONDS = 12 * 3600
# The Debian package of torch, and the lines of a test file that need it.
_TORCH = "python3-torch"
_NEEDS_TORCH = re.compile(r"^\s*(import torch\b|from torch\b|from triton\._internal_testing\b)", re.MULTILINE)
# Seconds between two lines about progress if there is no terminal.
_PERIOD = 30
# Maximum number of rows of a table on the terminal; results.json has all rows.
_ROWS = 40
_LAST = "outcomes.json"
# The folder for the results of the project's own suite. It is not called language, because upstream's suite is.
_OWN = "own"
# A seed that is drawn is below this number.
_SEEDS = 10**6


class Changes(msgspec.Struct, frozen=True):
    """The changes since the last run, each a list of tests.

    Attributes:
        newly_failing: now wrong, a crash, a time-out or an error, and before none of these.
        no_longer_passing: passed before, and now refused or not applicable.
        newly_passing: passes now, and did not before.
    """

    newly_failing: list[str]
    no_longer_passing: list[str]
    newly_passing: list[str]


class Conformance(Ran, kw_only=True, tag="conformance"):
    """The outcome of each test of Triton's language: `conformance`.

    Attributes:
        outcomes: number of tests by outcome.
        files: number of tests by outcome, of each file.
        groups: the same of each test function.
        refused: number of tests by the operation that the target refused.
        not_applicable: number of tests by the reason why they are not applicable.
        changes: what changed since the last run; null if there was none.
    """

    outcomes: dict[str, int]
    files: dict[str, dict[str, int]]
    groups: dict[str, dict[str, int]]
    refused: dict[str, int]
    not_applicable: dict[str, int]
    changes: Changes | None

    def render(self, console: Console) -> None:
        for name, value in self.ran.items():
            console.print(f"{name}: {value}")
        if self.partial:
            console.print(f"{self.partial} were to run")
        console.print(_table("file", self.files, footer=True))
        interesting = {
            name: counts
            for name, counts in self.groups.items()
            if set(counts) - {PASS, "not applicable", NOT_RUN} and len(self.files) < len(self.groups)
        }
        if interesting:
            console.print(_table("test function, where not all passed", interesting))
        for title, reasons in (("refused operation", self.refused), ("not applicable, because", self.not_applicable)):
            if reasons:
                table = Table(title, "tests")
                table.columns[1].justify = "right"
                for reason, count in list(reasons.items())[:_ROWS]:
                    table.add_row(reason, str(count))
                console.print(table)
        bad = Counter[tuple[str, str, str]]()
        for case in self.cases:
            if case.outcome in BAD and case.outcome != NOT_RUN:
                text = case.reason or next(iter(str(case.failure).strip().splitlines()), "it gives no reason")
                bad[case.outcome, group_of((case.suite, case.name)), text] += 1
        for (outcome, group, text), count in bad.most_common():
            console.print(f"{outcome}, {count} times: {group}\n    {text}")
        for fault in self.faults:
            console.print(f"failed: {fault}")
        _print_changes(console, self.changes)


def conformance(
    request: Request,
    *,
    suite: str = "",
    only: str = "",
    timeout: float = LIMIT,
    table: str = "",
    sample: int = 0,
    seed: int | None = None,
) -> Path:
    """Run tests of the language in a target's image; print and write the outcome of each.

    Returns:
        The folder with results.json and junit.xml.

    Raises:
        UsageError: there is no such folder, or no test in it; or a table of another suite, or of a part, is asked for.
        ProofError: a test is wrong, crashed, took too long, failed for another reason or was not run; or no test ran;
            or TABLE says something else than this run.
    """
    if table and (suite or only or sample):
        raise UsageError("--table is of the project's whole suite", next="leave --suite, --only and --sample out")
    if seed is not None and not sample:
        raise UsageError("--seed draws a sample", next=f"--sample=100 --seed={seed}, or leave --seed out")
    folder = Path(suite).resolve() if suite else SUITE
    if not folder.exists():
        raise UsageError(f"--suite={suite}: there is no such folder", next="name a folder with files test_*.py")
    request = _with_torch(request, folder)
    target = request.target
    last = proof.results_folder(request, f"{request.subject}/conformance") / (folder.stem if suite else _OWN) / _LAST
    results = last.parent / proof.PART if only or sample else last.parent
    if table:
        durable.require_writable(Path(table).parent, f"--table={table}")
    engine, image = ensure.ensure_image(request)
    results.mkdir(parents=True, exist_ok=True)
    # Whatever ends this run, nothing of an earlier one stays but the outcomes that it is compared with.
    for name in FILES:
        (results / name).unlink(missing_ok=True)
    # For a single file, copy the modules next to it, which it may import, but not the user's other files.
    copied = (
        {f"{_TESTS}/{folder.name}": folder}
        if folder.is_dir()
        else {f"{_TESTS}/{module.name}": module for module in folder.parent.glob("*.py")}
    )
    command = ["python", _INSIDE, "--records", "--only", only, "--limit", f"{timeout:g}"]
    if sample:
        seed = secrets.randbelow(_SEEDS) if seed is None else seed
        command += ["--sample", str(sample), "--seed", str(seed)]
        print(f"a sample of {sample} tests; for the same ones: --sample={sample} --seed={seed}", flush=True)
    env = plugin_in_image.environment(request.plugin, _INSIDE, _PYTEST)
    env["FOUNDRY_SUITE"] = f"{_TESTS}/{folder.name}"
    verdict = Verdict(ran=request.named)
    with (
        TemporaryDirectory(dir=paths.scratch()) as work,
        (results / "output.txt").open("w") as output,
        _progress(verdict) as advance,
    ):
        proof.copy_distribution("pytest", Path(work))
        files = {_PYTEST: Path(work), **copied}
        files |= {f"{_INSIDE}/{name}": paths.ROOT / "conformance" / name for name in _RUNNER}
        files |= {
            f"{_INSIDE}/{name}": paths.ROOT / "e2e" / name for name in ("supervise.py", "report.py", "guarded.py")
        }

        def prepare(container: Sandbox) -> None:
            for name, path in files.items():
                container.copy_into(path, name)
            plugin_in_image.install(container, request.plugin, target)

        def record(text: str) -> None:
            verdict.take(text)
            advance()

        try:
            proof.run_cases(
                engine,
                image,
                target,
                prepare,
                command,
                env,
                verdict,
                seconds=_SECONDS,
                line=lambda text: print(text, file=output, flush=True),
                record=record,
            )
        except BaseException as stopped:
            # Ctrl-C, or a signal: keep the results so far, and list the other tests as not run.
            verdict.conclude(f"the run was stopped: {type(stopped).__name__}", stopped=True)
            _report(verdict, request, results, last)
            raise
    if verdict.plan == ():
        raise UsageError(
            f"no test of {folder} has {only!r} in its name" if only else f"there is no test in {folder}",
            why=f"the tests that there are: {results / 'output.txt'}" if only else "pytest found none",
            next=f"./foundry conformance {target.name}, or name another folder by --suite",
        )
    _report(verdict, request, results, last)
    if not suite:
        verdict.faults += _operations(verdict, request, table)
    counts = Counter(outcome_of(result) for result in verdict.results.values())
    bad = sum(counts[outcome] for outcome in BAD)
    if bad or verdict.faults or not counts[PASS] + counts["refused"]:
        lines = [f"{bad} of {len(verdict.results)} tests are wrong, crashed, took too long or failed"] if bad else []
        if not bad and not verdict.faults:
            lines.append("no test was applicable")
        why = "\n".join(
            [
                *lines,
                *verdict.faults,
                f"what was found is in {results}, and what the workers printed in output.txt there",
            ]
        )
        next = f"{request.command('shell')} --with={shlex.quote(str(folder if folder.is_dir() else folder.parent))}"
        raise ProofError(f"{request.subject} does not conform", why=why, next=next)
    note = f"{verdict.partial} were run: this does not say that {request.subject} conforms; " if verdict.partial else ""
    print(f"{note}results in {results}")
    return results


def _operations(verdict: Verdict, request: Request, table: str) -> list[str]:
    """Write the target's section of a table, if one is asked for; else return what contradicts the committed one."""
    cells = operations.cells(verdict.results.values())
    release, suite = request.release.version, operations.digest(SUITE)
    if table:
        operations.write(
            Path(table), request.subject, operations.section(request.subject, release, suite, verdict.ran, cells)
        )
        print(f"the operations of {request.subject} are in {table}")
        return []
    return operations.contradictions(TABLE, request.subject, release, suite, cells) if TABLE.is_file() else []


# The files of conformance/ that the container needs.
_RUNNER = ("__main__.py", "tests_worker.py", "device_fixtures.py", "outcomes.py", "rules.toml")


def group_of(key: Key) -> str:
    """Return the test function of a test: its name without parameters."""
    return f"{key[0]}::{key[1].partition('[')[0]}"


def compare(before: Mapping[str, str], now: Mapping[str, str]) -> Changes:
    """Compare the outcomes of tests by name; tests that were not run in both are left out."""
    both = {name: (before[name], now[name]) for name in now if name in before and now[name] != NOT_RUN}
    return Changes(
        [name for name, (old, new) in both.items() if new in BAD and old not in BAD],
        [name for name, (old, new) in both.items() if old == PASS and new != PASS and new not in BAD],
        [name for name, (old, new) in both.items() if new == PASS and old != PASS],
    )


def _with_torch(request: Request, folder: Path) -> Request:
    """Return the request, or that of the target's variant with torch if the tests need it."""
    target = request.target
    if _has_torch(target):
        return request
    files = [folder] if folder.is_file() else sorted(folder.rglob("*.py"))
    needing = [file.name for file in files if _NEEDS_TORCH.search(file.read_text(errors="replace"))]
    if not needing:
        return request
    if having := variant_with_torch(target):
        print(f"{needing[0]} imports torch: the tests run in {having}", flush=True)
        return request.for_target(having)
    print(f"no image of {target.name} has torch: tests that import it are not applicable", flush=True)
    return request


def variant_with_torch(target: LockedTarget) -> str:
    """Return the target of the same backend whose image has torch and least beside it; "" if there is none."""
    having = [
        other
        for other in lock.load(platform=target.platform).targets.values()
        if other.backend == target.backend and _has_torch(other)
    ]
    return min(having, key=lambda other: sum(deb.size for deb in other.debs)).name if having else ""


def _has_torch(target: LockedTarget) -> bool:
    return any(deb.name == _TORCH for deb in target.debs)


@contextmanager
def _progress(verdict: Verdict) -> Iterator[Any]:
    """Show the progress of a run; yield the function to call after each record."""
    console = make_console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    last = time.monotonic()

    def text() -> str:
        counts = Counter(map(outcome_of, verdict.results.values()))
        return ", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES if counts[outcome]) or "starting"

    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("starting", total=None)

        def advance() -> None:
            nonlocal last
            planned = len(verdict.plan or ())
            progress.update(task, total=planned, completed=len(verdict.results), description=text())
            if not console.is_terminal and time.monotonic() - last > _PERIOD:
                last = time.monotonic()
                print(f"{len(verdict.results)} of {planned}: {text()}", file=sys.stderr, flush=True)

        yield advance


def _report(verdict: Verdict, request: Request, results: Path, last: Path) -> None:
    """Write the results, and show them.

    Args:
        results: the folder.
        last: the file with the last outcome of each test, if there were earlier runs.
    """
    now = {"::".join(key): outcome_of(result) for key, result in verdict.results.items()}
    before: dict[str, str] = {}
    if last.is_file():
        try:
            before = json_text.read(last, dict[str, str])
        except FileError as error:
            print(f"this run is compared with none: {error.what}: {error.why}")
    common = verdict.described(request.subject, request.release.version, results)
    reasons = {
        outcome: dict(Counter(case.reason for case in common["cases"] if case.outcome == outcome).most_common())
        for outcome in ("refused", "not applicable")
    }
    found = Conformance(
        **common,
        outcomes=dict(Counter(now.values())),
        files=_counts((key[0], result) for key, result in verdict.results.items()),
        groups=_counts((group_of(key), result) for key, result in verdict.results.items()),
        refused=reasons["refused"],
        not_applicable=reasons["not applicable"],
        changes=compare(before, now) if before else None,
    )
    verdict.write(
        results,
        outcomes=found.outcomes,
        files=found.files,
        groups=found.groups,
        refused=found.refused,
        not_applicable=found.not_applicable,
        changes=msgspec.to_builtins(compare(before, now)),
    )
    ran = {name: outcome for name, outcome in now.items() if outcome != NOT_RUN}
    # A test that is not among those of a whole run no longer exists; a test that did not run keeps its last outcome.
    kept = {name: outcome for name, outcome in before.items() if verdict.partial or name in now}
    durable.write(last, json.dumps(kept | ran, indent=1) + "\n")
    document.show(found)


def _print_changes(console: Console, changes: Changes | None) -> None:
    if changes is None:
        console.print("there is no earlier run to compare with")
        return
    lists: dict[str, list[str]] = msgspec.structs.asdict(changes)
    if not any(lists.values()):
        console.print("the outcomes are those of the last run")
    for title, names in lists.items():
        if names:
            console.print(f"{title.replace('_', ' ')}: {len(names)}")
            for name in names[:_ROWS]:
                console.print(f"    {name}")


def _counts(results: Iterator[tuple[str, Mapping[str, Any]]] | Any) -> dict[str, dict[str, int]]:
    """Return for each name how many tests have which outcome."""
    counts: dict[str, Counter[str]] = {}
    for name, result in results:
        counts.setdefault(name, Counter())[outcome_of(result)] += 1
    return {name: {outcome: count[outcome] for outcome in OUTCOMES if count[outcome]} for name, count in counts.items()}


def _table(title: str, rows: Mapping[str, Mapping[str, int]], *, footer: bool = False) -> Table:
    shown: Sequence[str] = [outcome for outcome in OUTCOMES if any(outcome in counts for counts in rows.values())]
    table = Table(title, *shown, show_footer=footer)
    for column, outcome in zip(table.columns[1:], shown, strict=True):
        column.justify = "right"
        column.footer = str(sum(counts.get(outcome, 0) for counts in rows.values()))
    table.columns[0].footer = "together"
    for name, counts in list(rows.items())[: None if footer else _ROWS]:
        table.add_row(name, *(str(counts.get(outcome, "")) for outcome in shown))
    if not footer and len(rows) > _ROWS:
        table.add_row(f"{len(rows) - _ROWS} others: see results.json")
    return table
