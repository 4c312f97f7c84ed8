"""Counts what a SPIR-V module does: accesses by their width, barriers, exchanges between lanes, products of matrices.

Each instruction is counted once, however often it is executed; those in loops are counted apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..spirv_numbers import NUMBERS, numbers
from .spirv import instructions, reading, words_of

_TYPE_INT, _TYPE_FLOAT, _TYPE_VECTOR, _TYPE_ARRAY, _TYPE_STRUCT, _TYPE_POINTER = numbers(
    "Op", "TypeInt TypeFloat TypeVector TypeArray TypeStruct TypePointer"
)
_CONSTANT, _VARIABLE, _LOAD, _STORE, _EXECUTION_MODE, _LABEL, _LOOP_MERGE, _BARRIER = numbers(
    "Op", "Constant Variable Load Store ExecutionMode Label LoopMerge ControlBarrier"
)
_SELECTION_MERGE, _BRANCH, _ENTRY_POINT, _FUNCTION = numbers(
    "Op", "SelectionMerge BranchConditional EntryPoint Function"
)
_MATRIX_LOAD, _MATRIX_STORE, _MATRIX_PRODUCT = numbers(
    "Op", "CooperativeMatrixLoad CooperativeMatrixStore CooperativeMatrixMulAdd"
)
_MATRICES = {
    _MATRIX_LOAD: "loads of matrices",
    _MATRIX_STORE: "stores of matrices",
    _MATRIX_PRODUCT: "products of matrices",
}
(_LOCAL_SIZE,) = numbers("ExecutionMode", "LocalSize")
_WORKGROUP, *_GLOBAL = numbers("StorageClass", "Workgroup PhysicalStorageBuffer CrossWorkgroup")
_EXCHANGES = {number for name, number in NUMBERS["Op"].items() if name.startswith("GroupNonUniform")}
_ATOMICS = {number for name, number in NUMBERS["Op"].items() if name.startswith("Atomic")}


@dataclass
class Counts:
    """What a module has.

    Attributes:
        words: of the module, of 32 bits.
        invocations: of a workgroup.
        workgroup_bytes: of memory that a workgroup's invocations share.
        everywhere, in_loops: how often there is what, by name; the loops themselves are `loops` and `loops with
            barriers`. An access of a width is of global memory, and one of `workgroup memory` has no width.
    """

    words: int
    invocations: int = 0
    workgroup_bytes: int = 0
    everywhere: Counter[str] = field(default_factory=Counter)
    in_loops: Counter[str] = field(default_factory=Counter)

    def as_dict(self) -> dict[str, int]:
        """Return all figures by name, for programs."""
        looped = {f"{name} in loops": count for name, count in self.in_loops.items()}
        sizes = {
            "words": self.words,
            "invocations": self.invocations,
            "bytes of workgroup memory": self.workgroup_bytes,
        }
        return {**sizes, **dict(sorted(self.everywhere.items())), **dict(sorted(looped.items()))}


class _Types:
    """The sizes of types in bytes, what pointers point to, and the types of pointers."""

    def __init__(self) -> None:
        self.sizes: dict[int, int] = {}
        self.constants: dict[int, int] = {}
        self.pointers: dict[int, tuple[int, int]] = {}
        self.type_of: dict[int, int] = {}

    def declare(self, opcode: int, operands: Sequence[int]) -> None:
        if opcode in (_TYPE_INT, _TYPE_FLOAT):
            self.sizes[operands[0]] = operands[1] // 8
        elif opcode == _TYPE_VECTOR:
            self.sizes[operands[0]] = self.sizes.get(operands[1], 0) * operands[2]
        elif opcode == _TYPE_ARRAY:
            self.sizes[operands[0]] = self.sizes.get(operands[1], 0) * self.constants.get(operands[2], 0)
        elif opcode == _TYPE_STRUCT:
            self.sizes[operands[0]] = sum(self.sizes.get(member, 0) for member in operands[1:])
        elif opcode == _TYPE_POINTER:
            self.pointers[operands[0]] = operands[1], operands[2]
        elif opcode == _CONSTANT:
            self.constants[operands[1]] = operands[2]
        elif len(operands) > 1 and operands[0] in self.pointers:
            self.type_of[operands[1]] = operands[0]

    def access(self, pointer: int) -> tuple[int, int]:
        """Return the storage class that a pointer is of, and the size of what it points to; zeros for other values."""
        storage, pointee = self.pointers.get(self.type_of.get(pointer, 0), (0, 0))
        return storage, self.sizes.get(pointee, 0)


@reading()
def count(module: bytes, variant: int | None = None) -> Counts:
    """Count what a module has.

    Args:
        variant: of the two paths of the first branch, which are variants of the kernel, the one that counts; None for
            both.

    Raises:
        ValueError: the module is damaged.
    """
    words = words_of(module)
    found, types = Counts(len(words)), _Types()
    ends = _loops(words)
    # The blocks behind the loops that the current block is in, and whether the loop has a barrier.
    within: list[tuple[int, list[bool]]] = []
    left_out = range(0) if variant is None else _path(words, 1 - variant)
    for at, opcode, end in instructions(words):
        if at in left_out:
            continue
        operands = words[at + 1 : end]
        types.declare(opcode, operands)
        if opcode == _LABEL:
            while within and within[-1][0] == operands[0]:
                found.everywhere["loops with barriers"] += any(within.pop()[1])
            if operands[0] in ends:
                within.append((ends[operands[0]], []))
                found.everywhere["loops"] += 1
        elif opcode == _EXECUTION_MODE and operands[1] == _LOCAL_SIZE:
            found.invocations = operands[2] * operands[3] * operands[4]
        elif opcode == _VARIABLE and operands[2] == _WORKGROUP:
            # Several variables may be views of the same memory.
            found.workgroup_bytes = max(found.workgroup_bytes, types.access(operands[1])[1])
        elif name := _name(opcode, operands, types):
            found.everywhere[name] += 1
            found.in_loops[name] += bool(within)
            if opcode == _BARRIER and within:
                within[-1][1].append(True)
    found.everywhere, found.in_loops = +found.everywhere, +found.in_loops
    return found


def _path(words: Sequence[int], number: int) -> range:
    """Return where one of the two paths of the entry point's first branch is."""
    entry, function, merge, ends = 0, 0, 0, list[int]()
    for at, opcode, _ in instructions(words):
        if opcode == _ENTRY_POINT:
            entry = words[at + 2]
        elif opcode == _FUNCTION:
            function = words[at + 2]
        elif opcode == _SELECTION_MERGE:
            merge = words[at + 1]
        elif opcode == _BRANCH and function == entry and not ends:
            ends = [words[at + 2], words[at + 3], merge]
        elif opcode == _LABEL and words[at + 1] in ends:
            ends[ends.index(words[at + 1])] = -at
    return range(-ends[number], -ends[number + 1])


def _loops(words: Sequence[int]) -> dict[int, int]:
    """Return the block behind each loop by the loop's first block."""
    ends, block = {}, 0
    for at, opcode, _ in instructions(words):
        if opcode == _LABEL:
            block = words[at + 1]
        elif opcode == _LOOP_MERGE:
            ends[block] = words[at + 1]
    return ends


def _name(opcode: int, operands: Sequence[int], types: _Types) -> str:
    """Return what an instruction counts as; "" for nothing."""
    if opcode in (_LOAD, _STORE):
        what, pointer = ("loads", operands[2]) if opcode == _LOAD else ("stores", operands[0])
        storage, size = types.access(pointer)
        if storage == _WORKGROUP:
            return f"{what} of workgroup memory"
        return f"{what} of {size} bytes" if storage in _GLOBAL else ""
    if opcode == _BARRIER:
        return "barriers"
    if opcode in _EXCHANGES:
        return "exchanges between lanes"
    if opcode in _ATOMICS:
        return "atomics"
    return _MATRICES.get(opcode, "")
