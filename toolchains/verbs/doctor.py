"""The verb doctor: all findings about a machine, or about a file that something on it loads."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
from rich.table import Table
from rich.text import Text

from toolchains.engine import client, host
from toolchains.fetch.store import Store
from toolchains.health import environment, extension, machine
from toolchains.health.machine import Problem
from toolchains.lockfile import lock
from toolchains.sdk import supplied
from toolchains.sdk.selection import Given
from toolchains.system import document, paths
from toolchains.system.console import Console
from toolchains.system.document import ShownDocument
from toolchains.system.errors import EngineError, HealthError, UsageError


class Program(msgspec.Struct, frozen=True):
    """Something that this machine must have.

    Attributes:
        name: the program or the service.
        found: its version, or what was found; "" if it is missing.
        purpose: what it is for.
    """

    name: str
    found: str
    purpose: str


class HealthFinding(msgspec.Struct, frozen=True):
    """Something that is wrong.

    Attributes:
        what: what is wrong.
        why: how it shows, or what follows from it.
        next: the command or the action that fixes it.
        fatal: whether something will fail; other findings are notices.
        fixed: what --fix did about it; "" if it is as it was.
    """

    what: str
    why: str
    next: str
    fatal: bool
    fixed: str = ""


class Health(ShownDocument, kw_only=True, tag="doctor"):
    """What was found: `doctor`.

    Attributes:
        of: the file that was looked at, or "this machine".
        programs: what this machine must have; none if a file was looked at.
        findings: what is wrong.
    """

    of: str
    programs: list[Program]
    findings: list[HealthFinding]

    def render(self, console: Console) -> None:
        if self.programs:
            table = Table("what", "found", "what for")
            for program in self.programs:
                table.add_row(program.name, program.found or Text("missing", "red"), program.purpose)
            console.print(table)
        for finding in self.findings:
            if finding.fixed:
                console.print(f"{finding.what}: {finding.fixed}")
                continue
            kind = Text("will fail" if finding.fatal else "notice", "red" if finding.fatal else "yellow")
            console.print(Text.assemble(kind, f": {finding.what}"))
            for line in filter(None, (*finding.why.splitlines(), f"next: {finding.next}" if finding.next else "")):
                console.print(f"  {line}")
        remaining = [finding for finding in self.findings if not finding.fixed]
        if not any(finding.fatal for finding in remaining) and all(program.found for program in self.programs):
            console.print(f"{self.of}: {'nothing that will fail' if remaining else 'nothing is wrong'}")


def doctor(what: str, *, python: str, target: str, check_store: bool, fix: bool, triton: str = "") -> None:
    """Print all findings; with `fix`, repair those that can be repaired.

    Raises:
        UsageError: the words do not go together.
        MissingToolError, EngineError: a program is missing, or the engine does not work.
        HealthError: something was found that will fail.
    """
    if target and not what:
        raise UsageError("--target goes with an SDK", next="./foundry doctor SDK.tar.gz --target=TARGET")
    if triton and not what.endswith(".whl"):
        raise UsageError("--triton goes with a plugin's wheel", next=f"./foundry doctor PLUGIN.whl --triton={triton}")
    if not what:
        missing = host.provide()
        programs = [Program(each.name, each.describe() or "", each.purpose) for each in host.requirements()]
        problems = [*_machine(), *_python(python), *(machine.check_store(Store(paths.cache())) if check_store else ())]
    else:
        missing, programs = [], []
        problems = list(_sdk(Path(what), target) if target else _file(Path(what), python, triton))
    findings = [
        HealthFinding(each.what, each.why, each.next, each.fatal, each.fix() if fix and each.fix else "")
        for each in problems
    ]
    document.show(Health(of=what or "this machine", programs=programs, findings=findings))
    if missing:
        raise host.error(missing)
    if fatal := [each for each, finding in zip(problems, findings, strict=True) if each.fatal and not finding.fixed]:
        raise HealthError(
            f"{what or 'this machine'}: {len(fatal)} findings that will fail",
            why="\n".join(problem.what for problem in fatal),
            next="do what next: says above" + ("; or ./foundry doctor --fix" if any(e.fix for e in fatal) else ""),
        )


def _machine() -> Iterator[Problem]:
    try:
        engine = client.connect()
    except EngineError:
        # The table of programs names it.
        engine = None
    yield from machine.check(engine)


def _python(python: str) -> Iterator[Problem]:
    """Yield what is wrong with the Triton of a Python, by default of the active virtual environment's."""
    active = os.environ.get("VIRTUAL_ENV")
    program = python or (f"{active}/bin/python" if active and Path(active) != paths.ROOT / ".venv" else "")
    if program:
        yield from environment.check(shutil.which(program) or program, os.environ)


def _file(path: Path, python: str, triton: str) -> Iterator[Problem]:
    if not path.is_file():
        raise UsageError(f"there is no file {path}", next="./foundry doctor PLUGIN.whl")
    loading = environment.loading_of(shutil.which(python) or python, os.environ) if python else extension.Loading()
    yield from extension.check(path, loading, triton=triton)


def _sdk(path: Path, target: str) -> Iterator[Problem]:
    locked = lock.load().targets
    if target not in locked:
        raise UsageError(f"there is no target {target}", next=f"targets: {', '.join(locked)}")
    for finding in supplied.find(locked[target], Given(path), Store(paths.cache())):
        yield Problem(str(finding), fatal=finding.fatal)
