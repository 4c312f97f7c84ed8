"""What the checks of a kernel found, for people: the text of a finding, and the exception of a launch with findings."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..failure import Failure
from ..log import AFTER_LOAD, AFTER_STORE, INDEX_BITS, MAPPED, PROGRAM_BITS, Record, tuple_text

# Findings that a message lists.
_SHOWN = 8


class _Kind(NamedTuple):
    """How a kind of findings is reported: what the kernel did, one finding (see Finding._text), and what to change."""

    title: str
    text: str
    remedy: str


_KINDS = {
    "outside": _Kind("accesses memory outside of its arrays", "", ""),
    "overflow": _Kind(
        "computes an offset that does not fit its type",
        "{operation} at {element}, an offset that wraps around in its type",
        "convert a factor or a summand to 64 bits: tl.program_id(0).to(tl.int64) * BLOCK",
    ),
    "stray": _Kind(
        "accesses memory of none of its arrays",
        "{operation} at address {index:#x}, which is in no array that the launch reaches",
        "compare the index with the array's size; of an array that is no argument and no Tensor, get the address by "
        "foundry_core.checked.extents.reach(array)",
    ),
    "assert": _Kind("fails an assertion", "assertion{assertion} failed", ""),
    "unwritten": _Kind(
        "reads memory that nobody has written",
        "{operation} of {place}, which has the poison of memory that is not written",
        "write the array before the launch, such as by numpy.zeros, or mask the load",
    ),
    "division": _Kind(
        "divides by zero",
        "{operation} by {index}{smallest}",
        "divide where the divisor is not zero: x // tl.where(y != 0, y, 1), or assert it before the launch",
    ),
    "undefined": _Kind(
        "uses elements that a mask leaves undefined",
        "the mask leaves {either} undefined in this load, and {use} uses it",
        "give the load a value for these elements: other=0.0 for a sum, other=-float('inf') for a maximum",
    ),
    "conflict": _Kind(
        "writes different values to one place in several programs",
        "{operation} to {element}, where {other} stored another value",
        "let each program write its own elements, or use an atomic operation such as tl.atomic_add",
    ),
    "unordered": _Kind(
        "needs an order of accesses that CUDA does not keep",
        "{access} at {element}, which another element of {earlier} reached, without a barrier between",
        "write tl.debug_barrier() between the two lines. Foundry's targets keep the order of the lines; Triton's own "
        "backends do not",
    ),
}


@dataclass(frozen=True)
class Finding:
    """One finding: the first element of a tile that did what it must not.

    Attributes:
        kind: "outside" for an access outside of its array, "stray" for one at an address of no array, "overflow" for
            an offset that does not fit its type, "unwritten" for a load of memory that nobody has written, "division"
            for a division of integers by zero, or of the smallest number by -1, "conflict" for a store of another value
            than the one of another program, "undefined" for an element that a mask leaves undefined and that is
            combined with others or stored, "unordered" for an access to an element that another element of an earlier
            tile of the program reached, "assert" for a failed assertion among other findings.
        operation: what was done: "load", "store", "atomic add", "division", "remainder", ...
        file, line: where; of inlined functions the innermost place.
        where: the place as text, with the calls that lead to it.
        program: the program's ids along x, y and z.
        lane: the index of the element in the tile, one number for each dimension; empty for a scalar.
        index: the index in the array, in elements from the pointer that was passed; of an offset that does not fit its
            type the one that was meant, of a division the divisor, and of "stray" the address.
        argument: the parameter's name, "" for a division; of an access that may be to several, their names with commas.
        shape, dtype: of the array; () and "" if the argument does not say.
        size: elements of the array, counted from its first to its last in memory.
        masked: whether the access has a mask.
        around: whether the array is a view of one that has the index.
        other: of a conflict, the ids of the program that stored before.
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
    around: bool
    other: tuple[int, int, int] | None = None

    def __str__(self) -> str:
        lane = f", element {tuple_text(self.lane)} of the tile" if self.lane else ""
        return f"{self.where}: program {tuple_text(self.program)}{lane}: {self._text()}"

    def _text(self) -> str:
        names = self.argument.split(", ")
        element = f"{names[0]}[{self.index}]"
        if self.kind == "outside":
            if len(names) > 1:
                return f"{self.operation} at {self.index} elements from {names[0]}, which is in none of {self.argument}"
            spread = " from its first to its last in memory" if math.prod(self.shape) != self.size else ""
            array = f"{self.argument} has {self.size} elements{spread} (shape {self.shape}, {self.dtype})"
            return f"{self.operation} at {element}, but {array}"
        access, _, earlier = self.operation.partition(" after ")
        return _KINDS[self.kind].text.format(
            operation=self.operation,
            access=access,
            earlier=earlier,
            use=self.operation.rpartition(" for ")[2],
            assertion=f" `{self.operation}`" if self.operation else "",
            index=self.index,
            element=element,
            place=element if self.argument else f"address {self.index:#x}",
            either=element if len(names) == 1 else f"an element of {' or '.join(names)}",
            smallest=" of the smallest number of its type" if self.index else "",
            other="another program" if self.other is None else f"program {tuple_text(self.other)}",
        )

    @property
    def remedy(self) -> str:
        """What to change in the kernel, or in the launch."""
        if self.kind != "outside":
            return _KINDS[self.kind].remedy
        view = "; or pass the array that this is a view of, if the kernel may reach it" * self.around
        if self.masked:
            what = "the mask lets this element through: compare offsets with the array's size, as in mask=offsets < n"
        elif not self.lane or self.operation == "atomic cas":
            what = "execute it only if the offset is inside of the array, as in if offset < n:"
        else:
            what = "mask it: mask=offsets < n, where n is the number of elements"
        return what + view


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
        super().__init__(f"kernel {kernel} {_KINDS[first.kind].title}", why="\n".join(lines), next=first.remedy)


def handle(
    kernel: str,
    records: Sequence[Record],
    count: int,
    names: Sequence[str],
    arguments: Sequence[Any],
    grid: tuple[int, int, int],
    mode: str,
) -> None:
    """Do with the findings of a launch what the mode says.

    Args:
        records: at least one.
        count: how many there are, also without a record.
        names: of the parameters, by the number of the argument.
        arguments: those that were passed to the kernel.
        grid: programs along x, y and z.
        mode: "raise" or "report".

    Raises:
        CheckError: the mode is "raise".
    """
    error = CheckError(kernel, [_finding(record, names, arguments, grid) for record in records], count)
    if mode == "raise":
        raise error
    print(error, file=sys.stderr, flush=True)


def _finding(record: Record, names: Sequence[str], arguments: Sequence[Any], grid: tuple[int, int, int]) -> Finding:
    site, index, other = record.site, record.signed_value, None
    if site.kind == "conflict":
        number, half = (record.value >> INDEX_BITS) - 1, 1 << INDEX_BITS - 1
        index = (record.value + half) % (2 * half) - half
        # In larger grids several programs have the same number.
        if math.prod(grid) < 1 << PROGRAM_BITS:
            other = number % grid[0], number // grid[0] % grid[1], number // (grid[0] * grid[1])
    masked, text = site.text.split(" ", 1) if site.kind in ("outside", "stray") else ("", site.text)
    shape, dtype, size, around = _array([arguments[number] for number in site.arguments[:1]], index)
    return Finding(
        kind={MAPPED: "unwritten", AFTER_LOAD: "unordered", AFTER_STORE: "unordered"}.get(site.kind, site.kind),
        operation=text,
        file=site.places[0][0] if site.places else "",
        line=site.places[0][1] if site.places else 0,
        where=site.location(),
        program=record.program,
        lane=site.index(record.element),
        index=index,
        argument=", ".join(names[number] for number in site.arguments),
        shape=shape,
        dtype=dtype,
        size=size,
        masked=masked == "masked",
        around=around,
        other=other,
    )


def _array(found: Sequence[Any], index: int) -> tuple[tuple[int, ...], str, int, bool]:
    """Return an array's shape, type and number of elements, and whether it is a view of one that has an index."""
    from .extents import extent

    if not found:
        return (), "", 0, False
    (argument,) = found
    array = getattr(argument, "base", argument)
    element = array.element_size() if hasattr(array, "element_size") else 1
    around = False
    if hasattr(array, "untyped_storage"):
        storage = array.untyped_storage()
        place = array.data_ptr() + index * element - storage.data_ptr()
        around = 0 <= place < storage.nbytes()
    shape = tuple(getattr(array, "shape", ()))
    return shape, str(getattr(array, "dtype", "")), extent(array)[1] // element, around
