"""The verb doctor: all findings about a machine, or about a file that something on it loads."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from rich.table import Table
from rich.text import Text

from toolchains.engine import client, host
from toolchains.fetch.store import Store
from toolchains.health import environment, extension, machine
from toolchains.health.machine import Problem
from toolchains.lockfile import lock
from toolchains.sdk import supplied
from toolchains.sdk.selection import Given
from toolchains.system import paths
from toolchains.system.errors import EngineError, HealthError, UsageError
from toolchains.system.terminal import make_console

_console = make_console()


def doctor(what: str, *, python: str, target: str, check_store: bool, fix: bool) -> None:
    """Print all findings; with `fix`, repair those that can be repaired.

    Raises:
        UsageError: the words do not go together.
        MissingToolError, EngineError: a program is missing, or the engine does not work.
        HealthError: something was found that will fail.
    """
    if target and not what:
        raise UsageError("--target goes with an SDK", next="./foundry doctor SDK.tar.gz --target=TARGET")
    if not what:
        missing = _programs()
        findings = [*_machine(), *_python(python), *(machine.check_store(Store(paths.cache())) if check_store else ())]
    else:
        missing = []
        findings = list(_sdk(Path(what), target) if target else _file(Path(what), python))
    remaining = []
    for problem in findings:
        if fix and problem.fix:
            _console.print(f"{problem.what}: {problem.fix()}")
            continue
        remaining.append(problem)
        kind = Text("will fail" if problem.fatal else "notice", "red" if problem.fatal else "yellow")
        _console.print(Text.assemble(kind, f": {problem.what}"))
        for line in filter(None, (*problem.why.splitlines(), f"next: {problem.next}" if problem.next else "")):
            _console.print(f"  {line}")
    if missing:
        raise host.error(missing)
    if fatal := [problem for problem in remaining if problem.fatal]:
        raise HealthError(
            f"{what or 'this machine'}: {len(fatal)} findings that will fail",
            why="\n".join(problem.what for problem in fatal),
            next="do what next: says above" + ("; or ./foundry doctor --fix" if any(e.fix for e in fatal) else ""),
        )
    _console.print(f"{what or 'this machine'}: {'nothing that will fail' if remaining else 'nothing is wrong'}")


def _programs() -> list[host.Requirement]:
    """Print what programs this machine has; return those that are missing."""
    missing = host.provide()
    table = Table("what", "found", "what for")
    for program in host.requirements():
        table.add_row(program.name, program.describe() or Text("missing", "red"), program.purpose)
    _console.print(table)
    return missing


def _machine() -> Iterator[Problem]:
    try:
        engine = client.connect()
    except EngineError:
        # _programs names it.
        engine = None
    yield from machine.check(engine)


def _python(python: str) -> Iterator[Problem]:
    """Yield what is wrong with the Triton of a Python, by default of the active virtual environment's."""
    active = os.environ.get("VIRTUAL_ENV")
    program = python or (f"{active}/bin/python" if active and Path(active) != paths.ROOT / ".venv" else "")
    if program:
        yield from environment.check(shutil.which(program) or program, os.environ)


def _file(path: Path, python: str) -> Iterator[Problem]:
    if not path.is_file():
        raise UsageError(f"there is no file {path}", next="./foundry doctor PLUGIN.whl")
    loading = environment.loading_of(shutil.which(python) or python, os.environ) if python else extension.Loading()
    yield from extension.check(path, loading)


def _sdk(path: Path, target: str) -> Iterator[Problem]:
    locked = lock.load().targets
    if target not in locked:
        raise UsageError(f"there is no target {target}", next=f"targets: {', '.join(locked)}")
    for finding in supplied.find(locked[target], Given(path), Store(paths.cache())):
        yield Problem(str(finding), fatal=finding.fatal)
