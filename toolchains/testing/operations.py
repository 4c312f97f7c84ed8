"""The tables of docs/operations.md: what each target makes of each operation on each type.

The file has a section for each target, which `./foundry conformance TARGET --table=docs/operations.md` rewrites from a
run of the whole suite, conformance/language. A section names the digest of the suite and the release of Triton that it
was made from.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolchains.system import durable
from toolchains.testing.verdict import NOT_RUN, PASS

# The order of columns. A test that no type matters to has none; its column is the last.
_TYPES = ("f16", "bf16", "f32", "f64", "e5m2", "e4m3", "i1", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
_ANY = "any"
_COLUMNS = {kind: number for number, kind in enumerate(_TYPES)} | {_ANY: len(_TYPES) + 1}
_REFUSED, _NOT_APPLICABLE = "refused", "not applicable"
WORKS, PARTLY, NO, WRONG, ABSENT = "works", "in part", "no", "wrong", "n/a"
_FRAME = """# Operations

What each target makes of the operations of Triton's language, by type. The tables are written by
`./foundry conformance TARGET --table=docs/operations.md`, from the tests in `conformance/language`; do not edit them.

| cell | meaning |
|---|---|
| works | all tests of the operation on this type pass: integers are compared exactly, sums by a bound in the test |
| 3.5 ulp | they pass; results are within this many units in the last place of the exact ones. 0.5 ulp is one rounding |
| no [1] | refused; the note below the target's tables has the reason |
| in part [1] | some tests pass, others are refused |
| wrong | a test failed, crashed or took too long: a defect |
| n/a | the release of Triton does not have it |

The column `any` is for tests in which the type does not matter.
"""
_SECTION = re.compile(r"^## (?P<target>\S+)\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_MADE_OF = re.compile(r"^Triton (?P<release>\S+), suite (?P<digest>[0-9a-f]{16})", re.MULTILINE)
_NOTE = re.compile(r" \[\d+\]$")

Place = tuple[str, str, str]  # the group (a test file), the operation, the type


@dataclass(frozen=True)
class Cell:
    """What the tests of an operation on a type say.

    Attributes:
        status: WORKS, PARTLY, NO, WRONG or ABSENT.
        ulp: the largest error that these tests allow, in units in the last place; None if they do not count in these.
        reasons: why tests were refused.
    """

    status: str
    ulp: float | None = None
    reasons: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return f"{self.ulp:g} ulp" if self.status == WORKS and self.ulp is not None else self.status


def digest(suite: Path) -> str:
    """Return the identity of a suite: 16 digits of a sha256 over its files' names and contents."""
    sha256 = hashlib.sha256()
    for path in sorted(suite.glob("*.py")):
        sha256.update(f"{path.name}\0".encode() + path.read_bytes())
    return sha256.hexdigest()[:16]


def cells(results: Iterable[Mapping[str, Any]]) -> dict[Place, Cell]:
    """Return the cells of a run, in the order of its tests.

    Args:
        results: those of a Verdict. Tests that did not run, and tests that do not say their operation, have no cell.
    """
    tests: dict[Place, list[Mapping[str, Any]]] = {}
    for result in results:
        about = result.get("properties") or {}
        if "operation" in about and result.get("outcome") != NOT_RUN:
            group = Path(result["suite"]).stem.removeprefix("test_").replace("_", " ")
            tests.setdefault((group, about["operation"], about.get("type") or _ANY), []).append(result)
    return {place: _cell(group_results) for place, group_results in tests.items()}


def _cell(results: list[Mapping[str, Any]]) -> Cell:
    outcomes = Counter(result["outcome"] for result in results)
    bounds = [result["properties"]["ulp"] for result in results if "ulp" in result["properties"]]
    reasons = dict.fromkeys(
        f"{result['reason']}: {result['why']}" if result.get("why") else str(result["reason"])
        for result in results
        if result["outcome"] == _REFUSED
    )
    if set(outcomes) - {PASS, _REFUSED, _NOT_APPLICABLE}:
        return Cell(WRONG)
    if outcomes[_REFUSED]:
        return Cell(PARTLY if outcomes[PASS] else NO, reasons=tuple(reasons))
    return Cell(WORKS, max(bounds, default=None)) if outcomes[PASS] else Cell(ABSENT)


def section(target: str, release: str, suite: str, ran: Mapping[str, str], by_place: Mapping[Place, Cell]) -> str:
    """Return the section of a target as Markdown.

    Args:
        suite: the digest of the suite.
        ran: what the tests ran on, from the run's records.
    """
    notes: dict[tuple[str, ...], int] = {}
    lines = [
        f"## {target}",
        "",
        f"Triton {release}, suite {suite}; {'; '.join(ran[key] for key in ('device', 'driver') if key in ran)}.",
        "",
    ]
    groups = dict.fromkeys(group for group, _, _ in by_place)
    for group in groups:
        own = {(operation, kind): cell for (name, operation, kind), cell in by_place.items() if name == group}
        types = sorted({kind for _, kind in own}, key=lambda kind: (_COLUMNS.get(kind, len(_TYPES)), kind))
        lines += [f"### {group}: {target}", "", f"| operation | {' | '.join(types)} |", f"|---{'|---' * len(types)}|"]
        for operation in dict.fromkeys(operation for operation, _ in own):
            row = [_shown(own.get((operation, kind)), notes) for kind in types]
            is_code = re.search(r"[^\w ,-]|_| - ", operation)
            name = f"`{operation}`".replace("|", "\\|") if is_code else operation
            lines.append(f"| {name} | {' | '.join(row)} |")
        lines.append("")
    lines += [f"{number}. {'; '.join(reasons)}" for reasons, number in notes.items()]
    return "\n".join(lines).rstrip() + "\n"


def _shown(cell: Cell | None, notes: dict[tuple[str, ...], int]) -> str:
    if cell is None:
        return ""
    return f"{cell.text} [{notes.setdefault(cell.reasons, len(notes) + 1)}]" if cell.reasons else cell.text


def write(path: Path, target: str, text: str) -> None:
    """Put a target's section into the file, in place of its old one; other targets' sections stay."""
    old = path.read_text() if path.is_file() else ""
    sections = {match["target"]: match[0].strip() for match in _SECTION.finditer(old)}
    sections[target] = text.strip()
    durable.write(path, "\n\n".join([_FRAME.strip(), *(sections[name] for name in sorted(sections))]) + "\n")


def contradictions(path: Path, target: str, release: str, suite: str, by_place: Mapping[Place, Cell]) -> list[str]:
    """Return in which cells a run says something else than the file does; also a partial run may.

    A section for another release or of another suite is not compared.
    """
    text = next((s[0] for s in _SECTION.finditer(path.read_text()) if s["target"] == target), "")
    made_of = _MADE_OF.search(text)
    if made_of is None or (made_of["release"], made_of["digest"]) != (release, suite):
        return []
    written = _read(text)
    wrong = []
    for place, cell in by_place.items():
        stated = written.get(place)
        if stated is None or _may_be(stated, cell):
            continue
        wrong.append(f"{' '.join(place)}: {path.name} says {stated}, this run {cell.text}")
    return wrong


def _may_be(stated: str, cell: Cell) -> bool:
    """Return whether some of the tests of a cell of the file can have this result."""
    if stated in (NO, ABSENT):
        return cell.status in (stated, ABSENT)
    if stated in (PARTLY, WRONG):
        return cell.status != WRONG or stated == WRONG
    return cell.status in (WORKS, ABSENT) and (
        cell.ulp is None or (stated.endswith(" ulp") and cell.ulp <= float(stated[:-4]))
    )


def _read(text: str) -> dict[Place, str]:
    """Return the cells of a section of the file, without the numbers of notes."""
    by_place: dict[Place, str] = {}
    group, types = "", [""]
    for line in text.splitlines():
        if line.startswith("### "):
            group = line[4:].rpartition(": ")[0]
        elif line.startswith("| operation |"):
            types = [cell.strip() for cell in line.strip("|").split("|")][1:]
        elif line.startswith("| ") and not line.startswith("|---"):
            operation, *row = (cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip()[1:-1]))
            operation = operation.strip("`").replace("\\|", "|")
            by_place |= {
                (group, operation, kind): _NOTE.sub("", cell) for kind, cell in zip(types, row, strict=True) if cell
            }
    return by_place
