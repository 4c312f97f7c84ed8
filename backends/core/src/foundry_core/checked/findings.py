"""What the checks of a kernel found, for people: the text of a finding, and the exception of a launch with findings."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..failure import Failure
from ..log import Record, Site, tuple_text

# Findings that a message lists.
_SHOWN = 8


@dataclass(frozen=True)
class Finding:
    """One finding: the first element of a tile that did what it must not.

    Attributes:
        kind: "outside" for an access outside of its array.
        operation: what was done: "load", "store", "atomic add", ...
        file, line: where; of inlined functions the innermost place. `where` has the calls, too.
        where: the place as text.
        program: the program's ids along x, y and z.
        lane: the index of the element in the tile, one number for each dimension; empty for a scalar.
        index: the index in the array, in elements from the pointer that was passed.
        argument: the parameter's name; of an access that may be to several, their names with commas.
        shape, dtype: of the array; () and "" if the argument does not say.
        size: elements of the array, counted from its first to its last in memory.
        masked: whether the access has a mask.
    """

    kind: str
    operation: str
    file: str
    line: int
    where: str
    program: tuple[int, int, int]
    lane: tuple[int, ...]
    index: int
    argument: str
    shape: tuple[int, ...]
    dtype: str
    size: int
    masked: bool

    def __str__(self) -> str:
        lane = f", element {tuple_text(self.lane)} of the tile" if self.lane else ""
        names = self.argument.split(", ")
        if len(names) > 1:
            array = f"none of {self.argument} is there"
        else:
            spread = " from its first to its last in memory" if math.prod(self.shape) != self.size else ""
            array = f"{self.argument} has {self.size} elements{spread} (shape {self.shape}, {self.dtype})"
        return (
            f"{self.where}: program {tuple_text(self.program)}{lane}: "
            f"{self.operation} at {names[0]}[{self.index}], but {array}"
        )

    @property
    def remedy(self) -> str:
        """What to change in the kernel, or in the launch."""
        if self.masked:
            return "the mask lets this element through: compare offsets with the array's size, as in mask=offsets < n"
        if not self.lane or self.operation == "atomic cas":
            return "execute it only if the offset is inside of the array, as in if offset < n:"
        return "mask it: mask=offsets < n, where n is the number of elements"


class CheckError(Failure, RuntimeError):
    """A kernel in the checked mode did what it must not. The element was not accessed, and the kernel went on.

    Attributes:
        kernel: the kernel's name.
        findings: all findings that the log has room for, ordered by program.
        count: the number of all tiles with a finding.
        kind, operation, file, line, program, lane, index, argument, shape, dtype, size: of the first finding.
    """

    def __init__(self, kernel: str, findings: Sequence[Finding], count: int) -> None:
        first = findings[0]
        self.kernel, self.findings, self.count = kernel, list(findings), count
        self.kind, self.operation = first.kind, first.operation
        self.file, self.line, self.program, self.lane = first.file, first.line, first.program, first.lane
        self.index, self.argument, self.shape = first.index, first.argument, first.shape
        self.dtype, self.size = first.dtype, first.size
        lines = [str(finding) for finding in findings[:_SHOWN]]
        if count > len(lines):
            lines.append(f"and {count - len(lines)} more")
        super().__init__(
            f"kernel {kernel} accesses memory outside of its arrays",
            why="\n".join(lines),
            next=first.remedy,
        )


def handle(
    kernel: str, records: Sequence[Record], count: int, names: Sequence[str], arguments: Sequence[Any], mode: str
) -> None:
    """Do with the findings of a launch what the mode says.

    Args:
        records: at least one.
        count: how many there are, also without a record.
        names: of the parameters, by the number of the argument.
        arguments: those that were passed to the kernel.
        mode: "raise" or "report".

    Raises:
        CheckError: the mode is "raise".
    """
    error = CheckError(kernel, [_finding(record, names, arguments) for record in records], count)
    if mode == "raise":
        raise error
    print(error, file=sys.stderr, flush=True)


def _finding(record: Record, names: Sequence[str], arguments: Sequence[Any]) -> Finding:
    from .extents import extent

    site: Site = record.site
    numbers = site.arguments
    array = getattr(arguments[numbers[0]], "base", arguments[numbers[0]])
    shape = tuple(getattr(array, "shape", ()))
    dtype = str(getattr(array, "dtype", ""))
    _, bytes = extent(array)
    element = array.element_size() if hasattr(array, "element_size") else 1
    masked, _, operation = site.text.partition(" ")
    return Finding(
        kind=site.kind,
        operation=operation,
        file=site.places[0][0] if site.places else "",
        line=site.places[0][1] if site.places else 0,
        where=site.where(),
        program=record.program,
        lane=site.index(record.element),
        index=record.signed,
        argument=", ".join(names[number] for number in numbers),
        shape=shape,
        dtype=dtype,
        size=math.ceil(bytes / element),
        masked=masked == "masked",
    )
