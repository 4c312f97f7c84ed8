"""One invocation: its instructions, its workgroup's memory, where its elements are, and loops that it executes.

Loops carry neighbouring addresses as one. The addresses of a tile of pointers are sums of a few registers and
constants, and a loop usually adds the same number to all of them. Then it carries the registers only, and what is known
of them (their distance from each other, and a power of two that divides them) is still known inside. Elements that were
read as words are carried as words, with fewer registers. Whether that holds is seen when the loop has been written: so
it is assumed first, and the loop is written again with less where it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...emit.mlir import Reg
from ...ops.numeric import in_memory
from . import layouts
from .spirv.arithmetic import SimtNumeric
from .spirv.opencl import KernelWorkgroup
from .spirv.shared_memory import Arena
from .spirv.vulkan import ShaderWorkgroup
from .spirv.workgroup import Workgroup
from .target import SimtTarget

_FLAVOURS: dict[str, Callable[[SimtTarget], Workgroup]] = {"shader": ShaderWorkgroup, "kernel": KernelWorkgroup}


class Invocation:
    """One invocation of a kernel.

    Attributes:
        group: the workgroup, and the SPIR-V written so far.
        code: the same as group.code.
        arena: workgroup memory.
    """

    def __init__(self, target: SimtTarget) -> None:
        self.target = target
        self.group = _FLAVOURS[target.flavour](target)
        self.code = self.group.code
        self.numeric = SimtNumeric(self.code, target)
        self.arena = Arena(target.workgroup_bytes)

    def combine_bases(self, bases: Sequence[int], number: Reg) -> Reg:
        """Return the exclusive or of the bases whose bits are set in a lane's or warp's number, an i32."""
        t = self.code
        total = t.integer(0, "i32")
        bit = 0
        while bit < len(bases):
            # A run of bits that move together by doubling distances is shifted as a whole. Distances of several bits
            # would overlap, and their exclusive or is no product.
            run, single = 1, bases[bit] & bases[bit] - 1 == 0
            while single and bit + run < len(bases) and bases[bit + run] == bases[bit + run - 1] * 2:
                run += 1
            if bases[bit]:
                part = number
                if bit:
                    part = t.binary("arith.shrui", part, t.integer(bit, "i32"))
                if bit + run < len(bases):
                    part = t.binary("arith.andi", part, t.integer((1 << run) - 1, "i32"))
                part = t.binary("arith.muli", part, t.integer(bases[bit], "i32"))
                total = self.exclusive_or(total, part, bases[:bit], bases[bit : bit + run])
            bit += run
        return total

    def exclusive_or(self, x: Reg, y: Reg, xs: Sequence[int], ys: Sequence[int]) -> Reg:
        """Return the exclusive or of two numbers, as a sum if they have no bit in common."""
        common = layouts.union_bits(xs) & layouts.union_bits(ys)
        return self.code.binary("arith.xori" if common else "arith.addi", x, y)

    def first_index(self, layout: layouts.Layout) -> Reg:
        """Return the row-major index of this invocation's element in register 0, an i32."""
        lanes = self.combine_bases(layout.lanes, self.group.lane())
        warps = self.combine_bases(layout.warps, self.group.warp())
        return self.exclusive_or(lanes, warps, layout.lanes, layout.warps)

    def indices(self, layout: layouts.Layout, registers: Sequence[int] | None = None) -> list[Reg]:
        """Return the row-major index of the elements of some registers, an i32. Default: of all."""
        t, first = self.code, self.first_index(layout)
        shared = layouts.union_bits(layout.registers) & layout.invocation_bits
        name = "arith.xori" if shared else "arith.addi"
        offsets = layout.offsets if registers is None else [layout.offsets[number] for number in registers]
        return [t.binary(name, first, t.integer(offset, "i32")) for offset in offsets]


Test = Callable[[Sequence[Reg]], tuple[Reg, Sequence[Reg]]]
Body = Callable[[Sequence[Reg]], Sequence[Reg]]


class _Carried:
    """The registers that a loop carries, in groups with the same base; each member is the base and a constant.

    Attributes:
        groups: the numbers of the members of each group.
        multiples: for each group, a number that divides its base in every iteration.
    """

    def __init__(self, invocation: Invocation, initial: Sequence[Reg]) -> None:
        self._code = invocation.code
        self._parts = [invocation.code.parts(reg) for reg in initial]
        by_base: dict[str, list[int]] = {}
        for number, (base, _) in enumerate(self._parts):
            # A base that is a constant has no register to carry, and equal floats need not stay equal.
            alone = base.elem[0] != "i" or base.elem == "i1" or invocation.code.value(base) is not None
            by_base.setdefault(f"{number}" if alone else base.name, []).append(number)
        self.groups = list(by_base.values())
        self.multiples = [self._multiple(self._parts[group[0]][0]) for group in self.groups]

    def _multiple(self, reg: Reg) -> int:
        return self._code.multiple(reg) if reg.elem[0] == "i" and reg.elem != "i1" else 1

    def initial(self) -> list[Reg]:
        """Return what the loop carries into its first iteration: the bases."""
        return [self._parts[group[0]][0] for group in self.groups]

    def members(self, bases: Sequence[Reg]) -> list[Reg]:
        """Return all registers, from the bases."""
        found = {}
        for group, base in zip(self.groups, bases, strict=True):
            for number in group:
                found[number] = self._moved(base, self._parts[number][1])
        return [found[number] for number in range(len(self._parts))]

    def _moved(self, reg: Reg, step: int) -> Reg:
        return self._code.binary("arith.addi", reg, self._code.integer(step, reg.elem)) if step else reg

    def bases(self, results: Sequence[Reg]) -> list[Reg]:
        """Return the bases for the next iteration, from the registers for it."""
        return [self._moved(results[group[0]], -self._parts[group[0]][1]) for group in self.groups]

    def weaken(self, results: Sequence[Reg]) -> bool:
        """Assume less where the registers for the next iteration contradict; return whether they do."""
        groups: list[list[int]] = []
        multiples = []
        for group, base, multiple in zip(self.groups, self.bases(results), self.multiples, strict=True):
            expected = [self._moved(base, self._parts[number][1]) for number in group]
            if expected != [results[number] for number in group]:
                groups += [[number] for number in group]
                multiples += [1] * len(group)
            else:
                groups.append(group)
                multiples.append(min(multiple, self._multiple(base)))
        changed = (groups, multiples) != (self.groups, self.multiples)
        # What is split starts again from its own divisors.
        if groups != self.groups:
            multiples = [self._multiple(self._parts[group[0]][0]) for group in groups]
        self.groups, self.multiples = groups, multiples
        return changed


class _Words:
    """The words that a loop carries in place of their elements.

    An element that is at several places is carried once. If its register holds a float of a narrow type, the word has
    its bits.
    """

    def __init__(self, invocation: Invocation, initial: Sequence[Reg]) -> None:
        self._group, self._numeric = invocation.group, invocation.numeric
        self._initial = initial
        # For each word: the type of its elements, and for each element, where registers of it are.
        self._sets: list[tuple[str, list[list[int]]]] = []
        self._failed: list[int] = []
        places: dict[tuple[tuple[str, ...], str], dict[str, list[int]]] = {}
        for number, reg in enumerate(initial):
            bits, elem = self._numeric.bits(reg)
            if names := self._group.neighbours(bits):
                places.setdefault((names, elem), {}).setdefault(bits.name, []).append(number)
        for (names, elem), numbers in places.items():
            if len(numbers) == len(names):
                self._sets.append((elem, [numbers[name] for name in names]))

    def fold(self, regs: Sequence[Reg]) -> list[Reg]:
        """Return registers with words in place of their elements."""
        found = []
        for number, (elem, places) in enumerate(self._sets):
            word = self._word(regs, elem, places)
            if word is None:
                self._failed.append(number)
                word = self._word(self._initial, elem, places)
            assert word is not None
            found.append(word)
        kept = self._kept()
        return [*found, *(reg for number, reg in enumerate(regs) if number in kept)]

    def _word(self, regs: Sequence[Reg], elem: str, places: list[list[int]]) -> Reg | None:
        names = []
        for numbers in places:
            (bits, of), *others = {self._numeric.bits(regs[number]) for number in numbers}
            if others or of != elem:
                return None
            names.append(bits.name)
        return self._group.word(names)

    def _kept(self) -> list[int]:
        gone = {number for _, places in self._sets for numbers in places for number in numbers}
        return [number for number in range(len(self._initial)) if number not in gone]

    def unfold(self, regs: Sequence[Reg]) -> list[Reg]:
        """Return the registers that `fold` was given, for others."""
        words, others = regs[: len(self._sets)], regs[len(self._sets) :]
        found = dict(zip(self._kept(), others, strict=True))
        for word, (elem, places) in zip(words, self._sets, strict=True):
            for bits, numbers in zip(self._group.divide_word(word, in_memory(elem)), places, strict=True):
                found.update(dict.fromkeys(numbers, self._numeric.from_memory(bits, elem)))
        return [found[number] for number in range(len(self._initial))]

    def weaken(self) -> bool:
        """Carry elements where `fold` found no word for the next iteration; return whether there are some."""
        failed, self._failed = self._failed, []
        self._sets = [each for number, each in enumerate(self._sets) if number not in failed]
        return bool(failed)


def write_loop(
    invocation: Invocation, initial: Sequence[Reg], test: Test, body: Body, *, rolled: bool = False
) -> list[Reg]:
    """Write a loop: while test(carried): carried = body(passed). Return what the test passes when it fails.

    Args:
        rolled: see Code.loop.
    """
    code, words = invocation.code, _Words(invocation, initial)
    carried = _Carried(invocation, words.fold(initial))
    while True:
        saved, arena = code.save(), invocation.arena.save()
        results: list[Reg] = []
        known = carried

        def of_bases(bases: Sequence[Reg], known: _Carried = known) -> tuple[Reg, Sequence[Reg]]:
            return test(words.unfold(known.members(bases)))

        def to_bases(passed: Sequence[Reg], known: _Carried = known, results: list[Reg] = results) -> Sequence[Reg]:
            results[:] = words.fold(body(passed))
            return known.bases(results)

        found = code.loop(carried.initial(), of_bases, to_bases, carried.multiples, rolled=rolled)
        if words.weaken():
            carried = _Carried(invocation, words.fold(initial))
        elif not carried.weaken(results):
            return list(found)
        code.restore(saved)
        invocation.arena.restore(arena)
