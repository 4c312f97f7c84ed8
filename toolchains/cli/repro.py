"""The verb repro: build a target's image twice from nothing in different surroundings, and print what differs."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from toolchains.assembly.request import Request
from toolchains.repro import twice
from toolchains.repro.twice import Surroundings
from toolchains.system import durable, paths
from toolchains.system.terminal import make_console

_console = make_console()
# Differences that are printed; the file has all.
_SHOWN = 20


def repro(request: Request, *, engine: str) -> int:
    """Build and compare; return 1 if anything differs, else 0. The verb's help says more."""
    result = twice.repro(
        request, engine=engine, line=lambda text: _console.print(Text(f"    {text}", "dim")), begins=_begins, ends=_ends
    )
    for text in result.compared:
        _console.print(text)
    if not result.differences:
        _console.print(Text("all is equal", "bold green"))
        return 0
    place = paths.RESULTS / request.target.name / request.release.version / "repro.txt"
    durable.write(place, "\n\n".join(map(str, result.differences)) + "\n")
    for each in result.differences[:_SHOWN]:
        _console.print(f"\n{each}")
    _console.print(Text(f"\n{len(result.differences)} differences; all of them are in {place}", "bold red"))
    return 1


def _begins(first: Surroundings, second: Surroundings) -> None:
    table = Table("what", "first build", "second build")
    for (name, one), other in zip(first.described().items(), second.described().values(), strict=True):
        table.add_row(name, one, other)
    _console.print(table)


def _ends(same: Sequence[str]) -> None:
    _console.print("not varied:")
    for each in same:
        _console.print(f"  {each}")
