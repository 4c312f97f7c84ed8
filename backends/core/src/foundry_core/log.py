"""The log of a launch: records that a kernel writes for a person, read by the launcher when the kernel has finished.

A kernel that prints or asserts takes one more pointer, after all other parameters, to memory of this layout. All words
have 64 bits.

    word 0    number of values that the kernel printed; those beyond the capacity have no record
    word 1    number of failures, likewise
    word 2    capacity for values
    word 3    capacity for failures, FAILURES
    word 8    records of failures, 4 words each, in the order in which they were written
    ...       records of printed values

    record    site | index << 32, x | y << 32, z, value

`site` is a number in the kernel's table of sites, which is in its metadata. `index` is the row-major index of the
element, `x`, `y` and `z` are the program's ids. `value` has the element's bits: a float of up to 32 bits as an f32, an
f64 as it is, an integer or a pointer zero-extended.

Printed values are lines of the form that Triton has on CUDA. They are written to sys.stdout after the launch, ordered
by program; the lines of a program are in the order in which it printed them. This module imports neither Triton nor
what lowers kernels.
"""

from __future__ import annotations

import math
import os
import struct
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from .failure import Failure

# NumPy is imported where a log is made or read. The lowering, which a compiler starts with, uses the layout only.
if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Words: TypeAlias = "npt.NDArray[np.uint64]"

# The layout, in words.
PRINTED, FAILED, CAPACITY, FAILURE_CAPACITY, FIRST_FAILURE = 0, 1, 2, 3, 8
RECORD = 4
# Failures with a record. The count of all is exact.
FAILURES = 64
FIRST_PRINTED = FIRST_FAILURE + FAILURES * RECORD
# How many values a log has room for, and the variable that sets another number. 4 MiB.
LINES = 1 << 17
LINES_VARIABLE = "FOUNDRY_PRINT_LINES"
# Failures that an exception lists.
_SHOWN = 8
_WORD = 8


# The kind of a site that writes nothing: a note to the user on what the checked mode does not check.
NOTE = "note"
# The kind of a site that looks for poison with a map of it: a finding of the kind "unwritten".
MAPPED = "unwritten by its map"
# The kinds of sites that look for an earlier access to the same element: findings of the kind "unordered".
AFTER_LOAD, AFTER_STORE = "unordered after a load", "unordered after a store"
# What a record of a conflict has as its value: the number of the other program, from 1 and modulo 2^24 - 1, above the
# lower bits of the index.
PROGRAM_BITS, INDEX_BITS = 24, 40
# The bits that the number of a program has in a word of a shadow (checked/instrument.py), in grids of fewer programs
# than that; PROGRAM_BITS in larger ones. The other bits of 32 are a hash of the value.
FEWER_PROGRAM_BITS = (20, 16)


def hash_bits(programs: int) -> int:
    """Return how many bits of a word in a shadow are a hash of the value, in a grid of this many programs."""
    return 32 - min((bits for bits in FEWER_PROGRAM_BITS if programs < 1 << bits), default=PROGRAM_BITS)


class LogError(Failure):
    """The environment asks for a log that cannot be."""


class DeviceAssertionError(Failure, RuntimeError, AssertionError):
    """An assertion of a kernel failed (tl.device_assert, or Python's assert in a kernel).

    Attributes:
        kernel: the kernel's name.
        message: of the assertion.
        file, line: where the assertion is.
        program: the program's ids along x, y and z.
        index: of the element, one number for each dimension; empty for a scalar.
        count: how many elements failed in this launch, in all programs and assertions.
    """

    def __init__(self, kernel: str, failures: Sequence[Record], count: int) -> None:
        first = failures[0]
        self.kernel, self.program, self.message, self.count = kernel, first.program, first.site.text, count
        self.file, self.line = first.site.places[0] if first.site.places else ("", 0)
        self.index = first.site.index(first.element)
        lines = []
        for site, program, element, _ in failures[:_SHOWN]:
            index = f" index {tuple_text(site.index(element))}" if site.shape else ""
            text = f" `{site.text}`" if site.text else ""
            lines.append(f"{site.location()}: program {tuple_text(program)}{index}: assertion{text} failed")
        if count > len(lines):
            lines.append(f"and {count - len(lines)} more")
        super().__init__(
            f"device-side assertion failed in kernel {kernel}{f': {self.message}' if self.message else ''}",
            why="\n".join(lines),
        )


@dataclass(frozen=True)
class Site:
    """A place in a kernel that writes records.

    Attributes:
        kind: "print", "assert", or what a check looks for (foundry_core.checked.findings.Finding).
        text: the prefix that is printed, or the assertion's message.
        places: (file, line) of the place; if it is in a function that a kernel calls, those of the calls follow.
        type: of the value: i1, i8, i16, i32, i64, f32 (also for narrower floats), f64, ptr; "" if there is none.
        shape: of the tile; empty for a scalar.
        signed: whether an integer is printed as a signed one.
        hex: whether the value is printed in hexadecimal notation.
        operand: the number of the printed operand; None if there is only one.
        arguments: of a check, the numbers of the kernel's arguments that it is about.
    """

    kind: str
    text: str
    places: tuple[tuple[str, int], ...]
    type: str = ""
    shape: tuple[int, ...] = ()
    signed: bool = False
    hex: bool = False
    operand: int | None = None
    arguments: tuple[int, ...] = ()

    @staticmethod
    def read(fields: Mapping[str, Any]) -> Site:
        """Return the site of which these are the fields; lists, as JSON has them, become tuples."""
        places = tuple((str(file), int(line)) for file, line in fields["places"])
        tuples = {name: tuple(fields[name]) for name in ("shape", "arguments") if name in fields}
        return Site(**{**fields, "places": places, **tuples})

    def index(self, linear: int) -> tuple[int, ...]:
        """Return the index of an element in each dimension."""
        found: list[int] = []
        for extent in reversed(self.shape):
            linear, here = divmod(linear, extent)
            found.insert(0, here)
        return tuple(found)

    def location(self) -> str:
        """Return the place as text, with the calls that lead to it."""
        return ", called at ".join(f"{file}:{line}" for file, line in self.places) or "unknown place"


class Record(NamedTuple):
    """A record: its place in the kernel, the program's ids, the row-major index of the element, and 64 bits."""

    site: Site
    program: tuple[int, int, int]
    element: int
    value: int

    @property
    def signed_value(self) -> int:
        """The value as a signed number."""
        return self.value - (1 << 64) if self.value >> 63 else self.value


class FoundRecords(Exception):
    """What the checks of a kernel found in a launch, before it is text; launches.py handles it.

    Attributes:
        records: those that the log has room for, ordered by program.
        count: how many there are.
    """

    def __init__(self, records: Sequence[Record], count: int) -> None:
        super().__init__()
        self.records, self.count = records, count


def tuple_text(numbers: Sequence[int]) -> str:
    return f"({', '.join(map(str, numbers))})"


class Log:
    """The log of one compiled kernel's launches.

    Args:
        kernel: the kernel's name.
        sites: the fields of each Site, by number.

    Attributes:
        sites: each Site, by number.

    Raises:
        LogError: FOUNDRY_PRINT_LINES is not a number of lines.
    """

    def __init__(self, kernel: str, sites: Sequence[Mapping[str, Any]]) -> None:
        self._kernel = kernel
        self.sites = [Site.read(fields) for fields in sites]
        text = os.environ.get(LINES_VARIABLE, "") or str(LINES)
        if not text.isascii() or not text.isdecimal() or int(text) >= 1 << 26:
            raise LogError(
                f"{LINES_VARIABLE}={text} is not possible",
                why=f"it is the number of printed values that a launch keeps, 0 to {(1 << 26) - 1}",
            )
        self._lines = int(text)

    @property
    def notes(self) -> list[str]:
        """What the checked mode does not check in this kernel, with the places."""
        return [f"{site.location()}: {site.text}" for site in self.sites if site.kind == NOTE]

    @property
    def bytes(self) -> int:
        """Size of the log."""
        return _WORD * (FIRST_PRINTED + self._lines * RECORD)

    def header(self) -> Words:
        """Return the first words of an empty log; the others need no value."""
        import numpy as np

        words = np.zeros(FIRST_FAILURE, np.uint64)
        words[CAPACITY], words[FAILURE_CAPACITY] = self._lines, FAILURES
        return words

    def used_bytes(self, header: Words) -> int:
        """Return how many bytes of a log have contents, from its header; always those up to the first printed value."""
        return _WORD * (FIRST_PRINTED + min(int(header[PRINTED]), self._lines) * RECORD)

    def report(self, logs: Sequence[Words]) -> None:
        """Print what the kernel printed.

        Args:
            logs: the filled part of each log of the launch. On DPUs there is one for each DPU and round.

        Raises:
            DeviceAssertionError: an assertion failed.
            FoundRecords: a check of the checked mode failed.
        """
        printed = self._ordered([(log, FIRST_PRINTED, min(int(log[PRINTED]), self._lines)) for log in logs])
        if printed.size:
            sys.stdout.write("".join(map(self._line, printed.tolist())))
            sys.stdout.flush()
        count = sum(int(log[PRINTED]) for log in logs)
        if count > len(printed):
            print(
                f"kernel {self._kernel} printed {count} values, of which {count - len(printed)} are lost: the log has "
                f"room for {self._lines}; set {LINES_VARIABLE} to a larger number, or print in fewer programs",
                file=sys.stderr,
            )
        failed = self._ordered([(log, FIRST_FAILURE, min(int(log[FAILED]), FAILURES)) for log in logs])
        if failed.size:
            records, count = list(map(self._read, failed.tolist())), sum(int(log[FAILED]) for log in logs)
            if any(record.site.kind != "assert" for record in records):
                raise FoundRecords(records, count)
            raise DeviceAssertionError(self._kernel, records, count)

    @staticmethod
    def _ordered(parts: Sequence[tuple[Words, int, int]]) -> npt.NDArray[np.uint64]:
        """Return records, ordered by program and, within a program, as they were written.

        Args:
            parts: logs, with the first word and the number of the records.
        """
        import numpy as np

        records = np.concatenate(
            [log[first : first + count * RECORD].reshape(-1, RECORD) for log, first, count in parts]
        )
        low = np.uint64((1 << 32) - 1)
        return records[np.lexsort((records[:, 1] & low, records[:, 1] >> np.uint64(32), records[:, 2] & low))]

    def _read(self, words: Sequence[int]) -> Record:
        first, xy, z, value = words
        low = (1 << 32) - 1
        return Record(self.sites[first & low], (xy & low, xy >> 32, z & low), first >> 32, value)

    def _line(self, record: Sequence[int]) -> str:
        site, program, linear, value = self._read(record)
        if not site.type:
            return f"pid {tuple_text(program)}{site.text}\n"
        # As many digits as the extent needs, by Triton's formula.
        index = ", ".join(
            f"{i:{math.ceil(math.log10(extent))}}" for i, extent in zip(site.index(linear), site.shape, strict=True)
        )
        operand = f"(operand {site.operand}) " if site.operand is not None else ""
        return f"pid {tuple_text(program)} idx ({index}){site.text}{operand}{_value(site, value)}\n"


def _value(site: Site, bits: int) -> str:
    """Return a value as C's printf would write it: %f or %a, %i or %u or %x, %p."""
    if site.type == "ptr":
        return f"{bits:#x}"
    if site.type[0] == "f":
        code = ("<I", "<f") if site.type == "f32" else ("<Q", "<d")
        (number,) = struct.unpack(code[1], struct.pack(code[0], bits))
        if not site.hex or not math.isfinite(number):
            return f"{number:f}"
        # C's %a has no zeros at the end, which Python writes.
        digits, exponent = number.hex().split("p")
        return f"{digits.rstrip('0').rstrip('.') if '.' in digits else digits}p{exponent}"
    width = int(site.type[1:])
    if site.hex:
        return f"{bits:#0{2 + width // 4}x}"
    return str(bits - (1 << width) if site.signed and width > 1 and bits >> (width - 1) else bits)
