"""Reads the object that PoCL compiled for a kernel: instructions by source line, as binutils' objdump prints them."""

from __future__ import annotations

import linecache
import re
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..runtime.crash import OBJECT

_FUNCTION = re.compile(r"^[0-9a-f]+ <(.*)>:$")
_PLACE = re.compile(r"^(/.*|\./.*):(\d+)(?: \(discriminator \d+\))?$")
_INSTRUCTION = re.compile(r"^ +([0-9a-f]+):\s+(\S+)\s*(.*)$")
_TARGET = re.compile(r" ([0-9a-f]+) <")
_PACKED = re.compile(r"(ps|pd|ph)$|%[yz]mm")
_SCALAR = re.compile(r"(ss|sd|sh)$")


@dataclass(frozen=True)
class Instruction:
    """An instruction of a kernel.

    Attributes:
        place: the file and line that it comes from; ("", 0) if that is not known.
        text: as objdump writes it.
        depth: in how many loops it is.
    """

    address: int
    place: tuple[str, int]
    text: str
    depth: int = 0

    @property
    def kind(self) -> str:
        """What it does: vector, scalar float, call, branch, or address and integer arithmetic."""
        name, _, operands = self.text.partition(" ")
        if name.startswith("call"):
            return "call"
        if name.startswith("j"):
            return "branch"
        if _PACKED.search(name) or _PACKED.search(operands):
            return "vector"
        return "scalar" if _SCALAR.search(name) else "integer"

    @property
    def reaches_memory(self) -> bool:
        return "(" in self.text.split("#")[0] and not self.text.startswith(("lea", "nop", "data16", "cs nop"))


@dataclass
class Line:
    """The instructions of a source line in the loops of one depth."""

    place: tuple[str, int]
    depth: int
    kinds: Counter[str] = field(default_factory=Counter)
    memory: int = 0

    @property
    def source(self) -> str:
        return linecache.getline(*self.place).strip()


def loaded_objects(kernel: str) -> list[str]:
    """Return the paths of the objects that PoCL has loaded for a kernel into this process."""
    paths = {line.split(maxsplit=5)[-1] for line in Path("/proc/self/maps").read_text().splitlines()}
    return sorted(path for path in paths if (found := OBJECT.search(path)) and found["kernel"] == kernel)


def program(path: str) -> str:
    """Return the folder in PoCL's cache of the program that an object is of. A program may have several objects."""
    return str(Path(path).parents[2])


def disassemble(path: str, kernel: str) -> list[Instruction]:
    """Disassemble a kernel's function.

    Raises:
        OSError: there is no objdump.
        subprocess.CalledProcessError: it cannot read the object.
    """
    command = ["objdump", "-dl", "--no-show-raw-insn", path]
    return parse_disassembly(subprocess.run(command, capture_output=True, text=True, check=True).stdout, kernel)


def parse_disassembly(text: str, kernel: str) -> list[Instruction]:
    """Return the instructions of a kernel's function, from what objdump printed."""
    found: list[Instruction] = []
    inside, place = False, ("", 0)
    for line in text.splitlines():
        if function := _FUNCTION.match(line):
            inside, place = function[1] == f"_pocl_kernel_{kernel}_workgroup", ("", 0)
        elif inside and (at := _PLACE.match(line)):
            place = at[1], int(at[2])
        elif inside and (read := _INSTRUCTION.match(line)):
            found.append(Instruction(int(read[1], 16), place, f"{read[2]} {read[3]}".strip()))
    depths = _depths(found)
    return [replace(each, depth=depth) for each, depth in zip(found, depths, strict=True)]


def _depths(instructions: Sequence[Instruction]) -> list[int]:
    """Return in how many loops each instruction is: natural loops, by the dominators of the flow graph."""
    place = {each.address: index for index, each in enumerate(instructions)}
    jumps: dict[int, int] = {}
    for index, each in enumerate(instructions):
        target = _TARGET.search(each.text) if each.text.startswith("j") else None
        if target and int(target[1], 16) in place:
            jumps[index] = place[int(target[1], 16)]
    ends = {index for index, each in enumerate(instructions) if each.text.startswith(("j", "ret"))}
    starts = sorted({0, *jumps.values(), *(index + 1 for index in ends if index + 1 < len(instructions))})
    block_of = {start: number for number, start in enumerate(starts)}
    bounds = list(zip(starts, [*starts[1:], len(instructions)], strict=True))
    before: list[set[int]] = [set() for _ in starts]
    for number, (_, end) in enumerate(bounds):
        last = instructions[end - 1].text
        if end - 1 in jumps:
            before[block_of[jumps[end - 1]]].add(number)
        if not last.startswith(("jmp", "ret")) and number + 1 < len(starts):
            before[number + 1].add(number)
    everything = set(range(len(starts)))
    dominators = [{0} if number == 0 else everything for number in range(len(starts))]
    changed = True
    while changed:
        changed = False
        for number in range(1, len(starts)):
            if before[number]:
                found = set.intersection(*(dominators[each] for each in before[number])) | {number}
                if found != dominators[number]:
                    dominators[number], changed = found, True
    loops: dict[int, set[int]] = {}
    for head in range(len(starts)):
        for tail in before[head]:
            if head in dominators[tail]:
                body, reached = loops.setdefault(head, {head}), [tail]
                while reached:
                    block = reached.pop()
                    if block not in body:
                        body.add(block)
                        reached += before[block]
    return [
        sum(number in body for body in loops.values())
        for number, (start, end) in enumerate(bounds)
        for _ in range(start, end)
    ]


def lines(instructions: Sequence[Instruction]) -> list[Line]:
    """Return the lines, the most deeply nested first, then those with most instructions."""
    found: dict[tuple[tuple[str, int], int], Line] = {}
    for each in instructions:
        line = found.setdefault((each.place, each.depth), Line(each.place, each.depth))
        line.kinds[each.kind] += 1
        line.memory += each.reaches_memory
    return sorted(found.values(), key=lambda line: (-line.depth, -line.kinds.total()))


def innermost(instructions: Sequence[Instruction]) -> list[Instruction]:
    """Return the instructions of the most deeply nested loop with most vector instructions; none without loops."""
    deepest = max((each.depth for each in instructions), default=0)
    if not deepest:
        return []
    runs: list[list[Instruction]] = [[]]
    for each in instructions:
        if each.depth == deepest:
            runs[-1].append(each)
        elif runs[-1]:
            runs.append([])
    return max(runs, key=lambda run: sum(each.kind == "vector" for each in run))
