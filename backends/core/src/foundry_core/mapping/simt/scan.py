"""tt.scan along one axis, by Sklansky's network.

For each bit of an element's position along the axis, from the lowest: the elements whose bit is set are combined with
the last element of the half before theirs. It does not matter whether a bit belongs to registers, lanes or warps; that
decides only how the other element is reached. The order of the operands is that of the axis, so the function need not
commute.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...emit.mlir import Reg
from ...ir import tt
from .exchange import along_axis, combine, convert_layout, shuffle
from .layouts import Layout
from .program import SimtProgram, invocation_statement
from .rows import through_memory


@invocation_statement(tt.ScanOp)
def _scan(program: SimtProgram, op: tt.ScanOp) -> None:
    layout, values, bits = along_axis(program, op, op.axis.value.data, ordered=True)
    for number, basis in enumerate(bits):
        values = [*_Step(program, op, layout, basis, bits[:number]).write(values)]
    for result, regs in zip(op.res, values, strict=True):
        program.values[result] = convert_layout(program, op, regs, layout, program.layout(result))


class _Step:
    """One bit of the positions along the axis.

    Args:
        basis: the bit, as the distance that it makes in row-major order.
        lower: the bits below it.
    """

    def __init__(self, program: SimtProgram, op: tt.ScanOp, layout: Layout, basis: int, lower: Sequence[int]) -> None:
        self._program, self._op, self._layout = program, op, layout
        reverse = bool(op.reverse.value.data)
        # Where the other element is: its bit, and those below.
        self._bit = (basis, reverse)
        self._wanted = {basis: reverse} | dict.fromkeys(lower, not reverse)

    def _number(self, bases: Sequence[int], number: int) -> int:
        """Return the number of the register that has the other element."""
        for place, basis in enumerate(bases):
            if basis in self._wanted:
                number = number | 1 << place if self._wanted[basis] else number & ~(1 << place)
        return number

    def _moved(self, bases: Sequence[int], number: Reg) -> Reg:
        """Return the number of the lane or warp that has the other element."""
        t = self._program.code
        ones = sum(1 << place for place, basis in enumerate(bases) if self._wanted.get(basis) is True)
        zeros = sum(1 << place for place, basis in enumerate(bases) if self._wanted.get(basis) is False)
        if zeros:
            number = t.binary("arith.andi", number, t.integer(~zeros, "i32"))
        return t.binary("arith.ori", number, t.integer(ones, "i32")) if ones else number

    def write(self, values: Sequence[Sequence[Reg]]) -> list[list[Reg]]:
        layout, basis, reverse = self._layout, *self._bit
        others = self._others(values)
        condition = self._condition()
        found = [list(regs) for regs in values]
        for register in range(layout.size):
            if basis in layout.registers:
                is_set = bool(register >> layout.registers.index(basis) & 1)
                if is_set == reverse:
                    continue
            mine = [regs[register] for regs in values]
            new = combine(self._program, self._op, [other[register] for other in others], mine)
            for regs, old, reg in zip(found, mine, new, strict=True):
                regs[register] = reg if condition is None else self._program.code.select(condition, reg, old)
        return found

    def _condition(self) -> Reg | None:
        """Return whether this invocation's elements change; None if the registers tell."""
        t, layout, (basis, reverse) = self._program.code, self._layout, self._bit
        for bases, number in ((layout.lanes, self._program.group.lane()), (layout.warps, self._program.group.warp())):
            if basis in bases:
                bit = t.binary("arith.andi", number, t.integer(1 << bases.index(basis), "i32"))
                return t.compare("eq" if reverse else "ne", bit, t.integer(0, "i32"))
        return None

    def _others(self, values: Sequence[Sequence[Reg]]) -> list[list[Reg]]:
        """Return, for each register, the element that it is combined with."""
        layout, group = self._layout, self._program.group
        sources = [self._number(layout.registers, register) for register in range(layout.size)]
        if any(basis in self._wanted for basis in layout.warps):
            return [self._through_memory(regs) for regs in values]
        if any(basis in self._wanted for basis in layout.lanes):
            lane = self._moved(layout.lanes, group.lane())
            moved = [
                {k: shuffle(self._program, self._op, regs[k], lane) for k in sorted(set(sources))} for regs in values
            ]
            return [[regs[k] for k in sources] for regs in moved]
        return [[regs[k] for k in sources] for regs in values]

    def _through_memory(self, regs: Sequence[Reg]) -> list[Reg]:
        return through_memory(self._program, self._op, regs, self._layout, self._layout, bits=self._wanted)
