"""tt.dot_scaled: operands and scales are in workgroup memory; their elements are converted to f32 as they are read.

Numbers of 4 to 16 bits and their products with a power of two are exact in f32, except beyond f32's range, as on the
other mappings (front/scaled.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from xdsl.ir import SSAValue

from ....emit.mlir import Reg
from ....errors import unsupported
from ....front.scaled import FORMATS
from ....ir import tt
from ....ops.conversions import FUNCTIONS
from ....ops.numeric import element_name
from ....scalars import LAYOUTS
from ..program import SimtProgram, invocation_statement
from ..tiles import Rows


def _bits(extent: int) -> int:
    return extent.bit_length() - 1


class _Tile:
    """A tile in workgroup memory."""

    def __init__(self, program: SimtProgram, op: tt.DotScaledOp, value: SSAValue, stack: ExitStack) -> None:
        self._program = program
        self.layout = program.layout(value)
        self.elem = element_name(value.type, op)
        self._value = value
        self._rows = Rows(self.layout.shape, self.elem)
        self._start = self._rows.start(program, stack.enter_context(program.arena.borrow(op, self._rows.bytes)))

    def write(self) -> None:
        self._rows.write(self._program, self.layout, self._start, self._program.values[self._value])

    def read(self, index: Reg) -> Reg:
        """Return the element with an index in row-major order."""
        (found,) = self._rows.read_at(self._program, [index], self._start)
        return found


class _Factor:
    """An operand of a product: a with its rows (side 0), or b with its columns (side 1).

    Attributes:
        tiles: the operand's tile, and that of its scales if it has any.
        depth: the extent along K.
    """

    def __init__(self, program: SimtProgram, op: tt.DotScaledOp, side: int, stack: ExitStack) -> None:
        self._program, self._side = program, side
        self._format = op.formats.data[side].data
        if self._format != "e2m1" and self._format not in FORMATS:
            raise unsupported(op, f"on elements of format {self._format}")
        values = [op.b, op.b_scale] if side else [op.a, op.a_scale]
        self.tiles = [_Tile(program, op, value, stack) for value in values if value is not None]
        *_, rows, columns = self.tiles[0].layout.shape
        halves = self._format == "e2m1"
        self._along_k = halves and bool(op.packed_along_k.data[side].value.data)
        self._across = halves and not self._along_k
        self._stored = rows if side else columns
        self.depth = self._stored << self._along_k
        self._lines = columns << self._across if side else 0

    def at(self, line: Reg, step: Reg) -> Reg:
        """Return an element times its scale, as an f32.

        Args:
            line: which row of a, or which column of b, counted through all batches.
            step: the place along K.
        """
        t = self._program.code
        k = self._half(step) if self._along_k else step
        if not self._side:
            index = t.binary("arith.addi", self._times(self._half(line) if self._across else line, self._stored), k)
        else:
            batch = t.binary("arith.shrui", line, t.integer(_bits(self._lines), "i32"))
            column = t.binary("arith.andi", line, t.integer(self._lines - 1, "i32"))
            column = self._half(column) if self._across else column
            row = t.binary("arith.addi", self._times(batch, self._stored), k)
            index = t.binary("arith.addi", self._times(row, self._lines >> self._across), column)
        number = self._number(self.tiles[0].read(index), step if self._along_k else line)
        return t.binary("arith.mulf", number, self._scale(line, step)) if len(self.tiles) == 2 else number

    def _times(self, x: Reg, extent: int) -> Reg:
        return self._program.code.binary("arith.muli", x, self._program.code.integer(extent, "i32"))

    def _half(self, x: Reg) -> Reg:
        return self._program.code.binary("arith.shrui", x, self._program.code.integer(1, "i32"))

    def _number(self, x: Reg, place: Reg) -> Reg:
        """Return an element as an f32; of the two e2m1 of a byte, the lower one is at even places."""
        t, numeric = self._program.code, self._program.numeric
        if self._format != "e2m1":
            # Other operands than floats are their bits.
            return x if x.is_float else numeric.unpack(x, LAYOUTS[FORMATS[self._format].name])
        odd = t.binary("arith.andi", place, t.integer(1, "i32"))
        by = t.cast("arith.trunci", t.binary("arith.muli", odd, t.integer(4, "i32")), "i8")
        return FUNCTIONS["__foundry_e2m1_to_fp32"](
            numeric, t.binary("arith.andi", t.binary("arith.shrui", x, by), t.integer(15, "i8"))
        )

    def _scale(self, line: Reg, step: Reg) -> Reg:
        """Return the scale of an element: bytes are e8m0, floats are e4m3 (NVIDIA's nvfp4)."""
        t, scales = self._program.code, self.tiles[1]
        groups = scales.layout.shape[-1]
        group = t.binary("arith.shrui", step, t.integer(_bits(self.depth // groups), "i32"))
        found = scales.read(t.binary("arith.addi", self._times(line, groups), group))
        return found if found.is_float else FUNCTIONS["__foundry_e8m0_to_fp32"](self._program.numeric, found)


@invocation_statement(tt.DotScaledOp)
def _dot_scaled(program: SimtProgram, op: tt.DotScaledOp) -> None:
    t, layout = program.code, program.layout(op.c)
    *_, rows, columns = layout.shape
    with ExitStack() as stack:
        a, b = (_Factor(program, op, side, stack) for side in (0, 1))
        program.group.barrier()
        for factor in (a, b):
            for each in factor.tiles:
                each.write()
        program.group.barrier()
        first = program.first_index(layout)
        # The bits of an index are those of its batch, row and column, so each is found from the first one's.
        line = t.binary("arith.shrui", first, t.integer(_bits(columns), "i32"))
        batch = t.binary("arith.shrui", line, t.integer(_bits(rows), "i32"))
        column = t.binary("arith.andi", first, t.integer(columns - 1, "i32"))
        column = t.binary("arith.addi", t.binary("arith.muli", batch, t.integer(columns, "i32")), column)
        lines = [_moved(program, line, offset // columns) for offset in layout.offsets]
        across = [
            _moved(program, column, offset // (rows * columns) * columns + offset % columns)
            for offset in layout.offsets
        ]

        def turn(regs: Sequence[Reg]) -> Sequence[Reg]:
            step, *totals = regs
            lefts, rights = ({reg: f.at(reg, step) for reg in each} for f, each in ((a, lines), (b, across)))
            totals = [
                t.binary("arith.addf", t.binary("arith.mulf", lefts[x], rights[y]), total)
                for x, y, total in zip(lines, across, totals, strict=True)
            ]
            return [t.binary("arith.addi", step, t.integer(1, "i32")), *totals]

        found = t.repeat(t.integer(a.depth, "i32"), [t.integer(0, "i32"), *program.values[op.c]], turn)
    elem = element_name(op.c.type, op)
    program.values[op.result] = [program.numeric.round_float(total, elem) for total in found[1:]]


def _moved(program: SimtProgram, x: Reg, offset: int) -> Reg:
    return program.code.binary("arith.xori", x, program.code.integer(offset, "i32")) if offset else x
