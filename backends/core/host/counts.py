"""Counts of a SPIR-V module: what its loops have, and how many registers are live at once.

Live registers are those of the module as it is written. A driver's compiler moves instructions and computes some twice,
so the count compares two modules and predicts nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from foundry_core.spirv_numbers import numbers

from .spirv import WORKGROUP, Instruction, Module, Type, successors

_SUBGROUP, _WORKGROUP_SCOPE = numbers("Scope", "Subgroup Workgroup")
# How many operands are results of others, where numbers follow them.
_RESULTS = {
    "Load": 1,
    "Store": 2,
    "CompositeExtract": 1,
    "VectorShuffle": 2,
    "CooperativeMatrixLoad": 3,
    "CooperativeMatrixStore": 4,
    "CooperativeMatrixMulAdd": 3,
}


class Loop(NamedTuple):
    """What a loop has, with the loops inside.

    Attributes:
        instructions: how many there are, by name; "Workgroup Load" and "Workgroup Store" are those of its memory.
        barriers, own: how many barriers there are of the workgroup, and of a subgroup.
    """

    instructions: Counter[str]
    barriers: int
    own: int


class _Made(NamedTuple):
    """A result, 0 if there is none, and the results that it is made from."""

    result: int
    used: Sequence[int]


def loops(binary: bytes) -> list[Loop]:
    """Return the loops of a kernel in the order of their heads."""
    module = Module(binary)
    blocks = module.functions[module.entry].blocks
    places = {name: at for at, (name, _) in enumerate(blocks)}
    ends: dict[int, int] = {}
    for at, (_, made) in enumerate(blocks):
        ends |= {places[name]: at for name in successors(made) if places[name] <= at}
    return [_loop(module, [each for _, made in blocks[at : ends[at] + 1] for each in made]) for at in sorted(ends)]


def _loop(module: Module, made: Sequence[Instruction]) -> Loop:
    found: Counter[str] = Counter()
    scopes: Counter[int] = Counter()
    for name, operands in made:
        pointer = {"Load": operands[2:3], "Store": operands[:1]}.get(name)
        shared = pointer and module.types[module.type_of[pointer[0]]].parts[0] == WORKGROUP
        found["Workgroup " * bool(shared) + name] += 1
        if name == "ControlBarrier":
            scopes[int(module.constants[operands[0]])] += 1
    return Loop(found, scopes[_WORKGROUP_SCOPE], scopes[_SUBGROUP])


def live_registers(binary: bytes, lanes: int) -> int:
    """Return the most registers of 32 bits that an invocation has live at once.

    Args:
        lanes: the invocations of a subgroup, which share a matrix.
    """
    module = Module(binary)
    blocks = dict(module.functions[module.entry].blocks)
    made = {name: list(_made(module, block)) for name, block in blocks.items()}
    sizes = {
        result: _size(module.types[module.type_of[result]], lanes)
        for block in made.values()
        for result, _ in block
        if result
    }
    phis = {name: _phis(block) for name, block in blocks.items()}
    before: dict[int, set[int]] = {name: set() for name in blocks}
    most, changed = 0, True
    while changed:
        changed = False
        for name, block in reversed(blocks.items()):
            live: set[int] = set()
            for each in successors(block):
                live |= before[each] - phis[each].keys() | {taken[name] for taken in phis[each].values()} & sizes.keys()
            count = sum(sizes[each] for each in live)
            for result, used in reversed(made[name]):
                most = max(most, count)
                count -= sizes[result] if result in live else 0
                live.discard(result)
                count += sum(sizes[each] for each in (sizes.keys() & used) - live)
                live |= sizes.keys() & used
            most = max(most, count)
            changed |= live != before[name]
            before[name] = live
    return most


def _made(module: Module, block: Sequence[Instruction]) -> Iterator[_Made]:
    for name, operands in block:
        result = operands[1] if len(operands) > 1 and operands[0] in module.types else 0
        used = operands[2:] if result else operands
        yield _Made(result, () if name == "Phi" else used[: _RESULTS.get(name)])


def _phis(block: Sequence[Instruction]) -> Mapping[int, Mapping[int, int]]:
    """Return the phis of a block: what each takes, by the block that comes before."""
    return {words[1]: dict(zip(words[3::2], words[2::2], strict=True)) for name, words in block if name == "Phi"}


def _size(type: Type, lanes: int) -> int:
    """Return the registers of a value; those of a condition do not count."""
    if type.kind == "Pointer":
        return 1 if type.parts[0] == WORKGROUP else 2
    if type.kind == "CooperativeMatrix":
        return type.lanes * type.size // (4 * lanes)
    return 0 if type.kind == "Bool" else -(-type.size // 4)
