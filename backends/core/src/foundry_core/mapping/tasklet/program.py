"""Lowers one kernel in structured form to MLIR text for a DPU. Each tasklet executes one program at a time.

The kernel's arguments are those of the Triton kernel: pointers are pointers to MRAM, i1 is passed as i8, f16 and bf16
as their bits in i16. Two unused pointers follow, because TritonPIM's kernels have them. A program gets its ids by
calling __triton_program_id(axis) and __triton_num_programs(axis), which dpu-legalize replaces by loads.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from ...emit.mlir import WIDTHS, Conventions, Reg
from ...errors import LoweringError, unsupported
from ...front.structured import kernel
from ...ir import tile, tt
from ...ir.effects import is_sink
from ...ir.elements import extents, finds, selected_operands
from ...ir.facts import combined_axis
from ...ops.numeric import element_name, in_memory, in_register
from ..base.buffers import Buffer
from ..base.mapping import Part
from ..base.operations import products
from ..base.operations.reductions import Reduction, write_reduction
from ..base.plan import BufferPlan, is_unit, stored_across
from ..base.program import Program
from ..base.space import Point
from ..base.target import DMA_ALIGNMENT, DMA_BYTES, Target, TaskletTarget
from ..base.tiles import Tiles
from .memory import StagedMemory
from .numeric import TaskletNumeric
from .split import SplitKernel
from .wram import TaskletText

_CONVENTIONS = Conventions(
    index="i32",
    global_space=255,
    call="",
    kernel="",
    attributes="",
    split_addresses=True,
    private_alignment=DMA_ALIGNMENT,
)
_SHORTEST_PIECE = 64
# Bytes of a piece whose DMA takes 3 cycles for an element of 4 bytes, where an operation on floats takes 66.
_EFFICIENT_PIECE = 256
# The most elements per iteration in a kernel that computes with floats: longer loops gain little there, and take stack,
# of which such a kernel needs most.
_UNROLLED_COMPUTING = 8
# Returns the number of the slice (triton_dpu_backend.artifact.arguments).
_SLICE = "__triton_slice"
# Bytes of tiles kept in WRAM because they are read in rows and written in columns. 4096 leaves room for 11 tasklets.
_TURNED = 4096


@dataclass(frozen=True)
class _Shape:
    """What makes code longer and faster.

    Attributes:
        accumulators, dot_steps: the register tile of tl.dot.
        unrolled: the most elements per iteration of a loop over a row.
        inlines: whether products that take many instructions are computed in place, not in a function.
    """

    accumulators: int
    dot_steps: int
    unrolled: int
    inlines: bool = True


# The first is fast: 2 x 4 sums, 2 + 4 factors and the addresses fit the 24 registers of a tasklet. The last is short.
_SHAPES = (
    _Shape(accumulators=8, dot_steps=4, unrolled=16),
    _Shape(accumulators=8, dot_steps=4, unrolled=4),
    _Shape(accumulators=4, dot_steps=1, unrolled=1),
    _Shape(accumulators=4, dot_steps=1, unrolled=1, inlines=False),
)
# The shape at which the estimate stops, because it counts lines, and those of the next one are hardly fewer.
_ROLLED = 2
# Estimate of a DPU program's instructions from its kernel's MLIR: a fixed part, and instructions per line. For 19
# kernels of the tests, the emulator's compiler generated 0.6 to 1.1 times this estimate; more where it unrolls loops
# itself, and where a line is a product of 64 bits, which takes up to 64 instructions.
_PROGRAM, _LINE = 300, 1.2


@dataclass(frozen=True)
class TaskletKernel:
    """A kernel in MLIR.

    Attributes:
        num_tasklets: tasklets of a DPU that can run the kernel at a time.
        stack_bytes: stack of each of them.
        parts: slices of a program, each of which one tasklet runs at a time; a power of 2.
        most_parts: the largest number of slices that `lower_tasklet` can make of the kernel.
        computes: whether it computes with floats, which takes a DPU 20 to 1000 instructions for an operation.
        shape: which of the lowering's shapes the program has; the next one is shorter.
        is_shortest: whether there is no next one.
    """

    text: str
    num_tasklets: int
    stack_bytes: int
    parts: int = 1
    most_parts: int = 1
    computes: bool = False
    shape: int = 0

    @property
    def is_shortest(self) -> bool:
        return self.shape == len(_SHAPES) - 1


def lower_tasklet(module: ModuleOp, target: TaskletTarget) -> TaskletKernel:
    """Return the MLIR of a kernel for a DPU; does not change the module.

    Rows are copied in pieces of at most 2048 bytes. Shorter pieces take longer, because each DMA takes 77 cycles to
    start, but they leave room for more tasklets. 11 tasklets fill the pipeline. We take the longest pieces that leave
    room for that many tasklets, or for as many as possible. If the estimate says that a program would be too long for
    IRAM, its loops are unrolled less, or not at all. Only the compiler counts exactly: if its program does not fit, the
    caller asks for the next shape.

    If the tiles leave room for too few tasklets, each program is split into slices, if the kernel allows it (split.py).

    Raises:
        UnsupportedOperation: an operation, or a type in it, that this mapping does not support.
        LoweringError: the kernel's tiles need more WRAM than a DPU has.
    """
    function = kernel(module)
    for op in function.walk():
        if isinstance(op, tt.IntToPtrOp | tt.PtrToIntOp):
            why = "an address in the host's memory means nothing on a DPU, which has copies in its MRAM"
            raise unsupported(op, why)
    shape = target.shape
    lowered = _split(module, target, _SHAPES[shape])
    while shape < _ROLLED and _instructions(lowered.text) > target.iram_instructions:
        shape += 1
        lowered = _split(module, target, _SHAPES[shape])
    return replace(lowered, shape=shape)


def _split(module: ModuleOp, target: TaskletTarget, shape: _Shape) -> TaskletKernel:
    """Lower the kernel with the fewest slices that leave room for enough tasklets, or with those that are asked for."""
    most = SplitKernel(module).most_parts

    def sliced(parts: int) -> tt.FuncOp:
        return kernel(module if parts == 1 else SplitKernel(module).split(parts))

    def noted(lowered: TaskletKernel, parts: int) -> TaskletKernel:
        return replace(lowered, parts=parts, most_parts=most)

    if target.parts is not None:
        parts = min(target.parts, most)
        return noted(_fitted(sliced(parts), target, shape, parts > 1), parts)
    enough = min(target.enough_tasklets, target.most_tasklets)
    best: TaskletKernel | None = None
    refused: LoweringError | None = None
    parts = 1
    try:
        best = noted(_fitted(sliced(1), target, shape), 1)
    except LoweringError as error:
        refused = error
    while (best is None or best.num_tasklets < enough) and parts < most:
        parts *= 2
        # A slice whose shortest pieces leave no room for more tasklets is not worth its share of the work twice.
        needed = _written(sliced(parts), _SHORTEST_PIECE, 0, shape)[1]
        room = target.tasklets(needed, target.spare_stack_bytes)
        if room > (best.num_tasklets if best else 0):
            best = noted(_fitted(sliced(parts), target, shape, roomy=True), parts)
    if best is None:
        assert refused is not None
        raise refused
    return best


def _written(function: tt.FuncOp, piece: int, room: int, shape: _Shape) -> tuple[str, int]:
    """Return the MLIR of a kernel, and the bytes of WRAM that a tasklet keeps its tiles in."""
    if _computes(function):
        shape = replace(shape, unrolled=min(shape.unrolled, _UNROLLED_COMPUTING))
    tiles = TaskletTiles(TaskletPlan(function.body.block, room), piece, shape)
    program = TaskletProgram(function, tiles)
    return program.write(), tiles.text.private_bytes


def _fitted(function: tt.FuncOp, target: TaskletTarget, shape: _Shape, roomy: bool = False) -> TaskletKernel:
    """Lower the kernel with the longest pieces that leave room for enough tasklets.

    Args:
        roomy: whether each tasklet gets a larger stack. More tasklets than fill the pipeline always do.
    """
    enough = min(target.enough_tasklets, target.most_tasklets)
    # DMA is a small part of the work of software floats, and more tasklets share the programs of a DPU more evenly.
    computes = _computes(function)
    wanted = target.most_tasklets if computes else enough
    best: TaskletKernel | None = None
    needed = 0
    piece, room = DMA_BYTES, _TURNED
    while piece >= _SHORTEST_PIECE and (
        best is None or best.num_tasklets < (wanted if piece >= _EFFICIENT_PIECE else enough)
    ):
        text, needed = _written(function, piece, room, shape)
        is_enough = best is not None and best.num_tasklets >= enough
        tasklets = target.tasklets(needed, target.spare_stack_bytes if roomy or is_enough else target.stack_bytes)
        if tasklets > (best.num_tasklets if best else 0):
            best = TaskletKernel(text, tasklets, target.stack(needed, tasklets), computes=computes)
        piece //= 2
        if piece < _SHORTEST_PIECE and best is None and room:
            # Read element by element rather than refuse the kernel.
            piece, room = DMA_BYTES, 0
    if best is None:
        free = target.wram_bytes - target.reserved_bytes - target.stack_bytes
        raise LoweringError(
            f"kernel {function.sym_name.data} keeps {needed} bytes of tiles in WRAM, of which a DPU has {free} bytes "
            "for a program; smaller blocks need less"
        )
    return best


def _computes(function: tt.FuncOp) -> bool:
    """Return whether a kernel computes with floats."""
    names = {op.name for op in function.walk()}
    return any(name.startswith("math.") or re.fullmatch(r"arith\.\w+f|tt\.dot", name) for name in names)


def _instructions(text: str) -> int:
    """Estimate the instructions of a program with this kernel; constants take no instruction of their own."""
    lines = [line.lstrip() for line in text.splitlines()]
    code = sum(line.startswith(("%", "llvm.", "scf.")) and " arith.constant " not in line for line in lines)
    return round(_PROGRAM + _LINE * code)


class TaskletPlan(BufferPlan):
    """Decides which tiles are stored in WRAM: those of every mapping, and those that could not be read in rows later.

    Args:
        room: bytes for tiles that are stored only because they are read in rows and written in columns.
    """

    def __init__(self, body: Block, room: int) -> None:
        self._room = room
        super().__init__(body)

    def _must_store(self, value: SSAValue) -> bool:
        if super()._must_store(value):
            return True
        if tile.reads_late(value.owner) and self._is_stored_across(value.owner):
            return True
        return self._is_costly(value) and any(
            isinstance(use.operation, tt.MapElementwiseOp)
            or (finds(use.operation) and value in selected_operands(use.operation))
            or ((axis := combined_axis(use.operation)) and not axis.is_kept and not _in_rows(value, axis.number))
            for use in value.uses
        )

    def _is_stored_across(self, load: tile.Read) -> bool:
        """Return whether a small tile is contiguous in MRAM along one dimension when read, another when stored."""
        size = math.prod(extents(load.result)) * WIDTHS[in_register(element_name(load.result.type, load))] // 8
        if size > self._room or stored_across(load, self.stored) is None:
            return False
        self._room -= size
        return True


def _in_rows(value: SSAValue, axis: int) -> bool:
    """Return whether a reduction along an axis can read an expression's loads in rows along that axis."""
    if axis != len(extents(value)) - 1:
        return False
    pending, seen = [value], set[SSAValue]()
    while pending:
        current = pending.pop()
        op = current.owner
        if current in seen or isinstance(op, Block):
            continue
        seen.add(current)
        if not tile.reads_late(op):
            pending += [operand for operand in op.operands if extents(operand) == extents(value)]
        elif not is_unit(op.axes[axis]) and any(is_unit(other) for other in op.axes):
            return False
    return True


class TaskletTiles(Tiles):
    """The registers of one kernel, and its buffers in WRAM.

    Args:
        piece_bytes: bytes of a row that are copied to WRAM at a time.
    """

    memory: StagedMemory
    text: TaskletText
    product_order = (0, 1)
    panels = False

    def __init__(self, plan: BufferPlan, piece_bytes: int, shape: _Shape) -> None:
        super().__init__(TaskletText(_CONVENTIONS), plan, Target())
        self._accumulators, self.dot_steps = shape.accumulators, shape.dot_steps
        self.numeric = TaskletNumeric(self.text, shape.inlines)
        self.memory = StagedMemory(self, piece_bytes, shape.unrolled)

    def lanes(self, value: SSAValue, op: Operation, lane: int) -> int:
        """Return 1: a DPU has no vectors."""
        return 1

    def weight(self, shape: tuple[int, ...]) -> int:
        """Return 1: an element of a tile in WRAM costs the same in any order."""
        return 1

    def register_tile(self, rows: int, columns: int) -> tuple[int, int]:
        width = min(4, columns)
        return min(rows, self._accumulators // width), width

    def fill(
        self,
        buffer: Buffer,
        value: SSAValue,
        op: Operation,
        lane: int | None = None,
        ends: Sequence[Reg] | None = None,
    ) -> None:
        shape = extents(value)
        lane = self.best_lane(value) if lane is None else lane
        limits = [(self.text.integer(0), self.text.integer(extent)) for extent in shape]
        memory = self.memory
        with (
            memory.pieces(limits, shape, lane, [value]) as (point, count),
            memory.unless_copied(value, buffer, point, count),
            memory.piece(point, count, [value]) as piece,
        ):
            memory.iterate(piece, [value], lambda at, _: self.private.write(buffer, at, self.evaluate(value, at, {})))

    def fill_slice(self, buffer: Buffer, value: SSAValue, op: Operation, first: Reg) -> None:
        t, shape = self.text, extents(value)
        lane = self.best_lane(value) or len(shape) - 1
        limits = [(first, self.space.plus(first, t.integer(1))), *((t.integer(0), t.integer(n)) for n in shape[1:])]

        def write(point: Point, _: Reg) -> None:
            inner = Point(point.index[1:], lane - 1, 1)
            self.private.write(buffer, inner, self.evaluate(value, point, {}))

        for piece in self.memory.sweep(limits, shape, lane, [value]):
            self.memory.iterate(piece, [value], write)


class TaskletReduction(Reduction):
    """A tt.reduce that copies its input along the last dimension to WRAM in pieces."""

    _tiles: TaskletTiles

    def _fold(self, count: int, step: int, point: Point) -> list[Reg]:
        if self._axis != len(self._shape) - 1:
            return super()._fold(count, step, point)
        t, memory, sources = self._tiles.text, self._tiles.memory, self._op.operands
        length = memory.length(sources, count)
        whole = t.integer(length)

        def at(start: Reg) -> Point:
            return Point((*point.index[:-1], start), self._axis, length)

        def combine(here: Point, _: Reg, running: Sequence[Reg]) -> list[Reg]:
            return self._combination.write(running, self._read(here))

        with memory.piece(at(t.integer(0)), whole, sources) as piece:
            turn = memory.turn(piece, sources)
            zero = t.integer(0)
            values = self._read(memory.element_point(piece, zero, 0))
            for number in range(1, turn):
                values = self._combination.write(values, self._read(memory.element_point(piece, zero, number)))
            if count == turn:
                return values
            values = memory.fold(piece, sources, values, combine, first=turn)
        if count == length:
            return values

        def further(start: Reg, running: Sequence[Reg]) -> list[Reg]:
            with memory.piece(at(start), whole, sources) as piece:
                return memory.fold(piece, sources, running, combine)

        return t.carry(whole, t.integer(count), length, values, further)

    def _combined(
        self, first: Sequence[Reg], next: Reg, end: Reg, step: int, at: Callable[[Reg], list[Reg]]
    ) -> list[Reg]:
        """Combine in registers that the loop carries: arrays of a tasklet are in WRAM, and stay there."""
        combine = self._combination.write
        return self._tiles.text.carry(next, end, step, first, lambda i, running: combine(running, at(i)))


class TaskletProgram(Program):
    """A kernel whose programs each run on one tasklet at a time."""

    statements = Program.statements.replace(write_reduction, lambda program, op: TaskletReduction(program, op).write())
    scalar_values = Program.scalar_values | {tile.SliceOp: lambda program, _: program.text.call(_SLICE, [], "i32")}
    tiles: TaskletTiles
    text: TaskletText

    def __init__(self, function: tt.FuncOp, tiles: TaskletTiles) -> None:
        super().__init__(function, tiles)
        # The arrays in use that the operations of a block have allocated.
        self._allocated: dict[Block, set[str]] = {}
        self._places: dict[Operation, int] = {}
        self._readers: dict[SSAValue, set[Operation]] = {}

    def _write_operation(self, op: Operation) -> None:
        """Write an operation, and release the arrays of its block that no later operation reads."""
        block = op.parent_block()
        assert block is not None
        before = set(self.text.in_use())
        super()._write_operation(op)
        allocated = self._allocated.setdefault(block, set())
        allocated.update(array for array in self.text.in_use() if array not in before)
        for array in allocated - self._read_after(op, allocated):
            self.text.release(array)
            allocated.remove(array)

    def _read_after(self, op: Operation, arrays: Collection[str]) -> set[str]:
        """Return those of some arrays in which there are tiles that are read after an operation of the same block."""
        tiles = self.tiles.buffers.items()
        return {
            buffer.name
            for value, buffer in tiles
            if buffer.name in arrays and any(self._is_after(reader, op) for reader in self._readers_of(value))
        }

    def _readers_of(self, value: SSAValue) -> set[Operation]:
        """Return the operations at which a tile may be read: its uses, and those of what is computed late from it."""
        if value not in self._readers:
            found = set[Operation]()
            for use in value.uses:
                found.add(use.operation)
                if not is_sink(use.operation):
                    later = [result for result in use.operation.results if result not in self.tiles.plan.stored]
                    found |= set[Operation]().union(*map(self._readers_of, later))
            self._readers[value] = found
        return self._readers[value]

    def _is_after(self, reader: Operation, op: Operation) -> bool:
        """Return whether an operation, or the one of op's block that contains it, comes after op."""
        block = op.parent_block()
        outer: Operation | None = reader
        while outer is not None and outer.parent_block() is not block:
            outer = outer.parent_op()
        if outer is None:
            return False
        if op not in self._places:
            assert block is not None
            self._places.update((each, place) for place, each in enumerate(block.ops))
        return self._places[outer] > self._places[op]

    def _buffer_for(self, value: SSAValue, op: Operation, order: tuple[int, ...]) -> Buffer:
        """Return the buffer of a tile that is read here last, element for element; else a new one."""
        names, moved = self._reads(value, {})
        allocated = self._allocated.get(op.parent_block(), set())  # type: ignore[arg-type]
        if value.owner is op:
            dead = (names - moved) & allocated - self._read_after(op, names)
            wanted = (in_register(element_name(value.type, op)), extents(value), order)
            for buffer in self.tiles.buffers.values():
                if buffer.name in dead and (buffer.elem, buffer.extents, buffer.order) == wanted:
                    return buffer
        return super()._buffer_for(value, op, order)

    def parameter(self, argument: SSAValue) -> str:
        elem = "i8"
        if isinstance(argument.type, tt.PointerType):
            elem = in_memory(element_name(argument.type.pointee, self.function))
        name = argument.name_hint or f"arg{self._body.args.index(argument)}"
        words = [f'foundry.name = "{name}"']
        if isinstance(argument.type, tt.PointerType):
            words.append(f"foundry.elem = {elem}")
            if self._is_aligned(argument):
                words.append(f"llvm.align = {DMA_ALIGNMENT} : i64")
        return f"{super().parameter(argument)} {{{', '.join(words)}}}"

    def _is_aligned(self, argument: SSAValue) -> bool:
        """Return whether Triton was told that a pointer is a multiple of a DMA's alignment, as it then is in MRAM."""
        given = self.function.arg_attrs
        divisor = given.data[self._body.args.index(argument)].data.get("tt.divisibility") if given else None
        return isinstance(divisor, IntegerAttr) and divisor.value.data % DMA_ALIGNMENT == 0

    def more_parameters(self) -> list[str]:
        return [f"%internal_{i}: !llvm.ptr<1> {{foundry.elem = i8}}" for i in range(2)]

    def log_parameter(self) -> str:
        return f"{super().log_parameter()} {{foundry.elem = i64}}"

    def accumulate(self, op: Operation, a: Buffer, b: Buffer, c: Buffer, part: Part) -> None:
        products.accumulate(self, op, a, b, c, part)

    def program_id(self, axis: int) -> Reg:
        return self.text.call("__triton_program_id", [self.text.integer(axis, "i32")], "i32")

    def num_programs(self, axis: int) -> Reg:
        return self.text.call("__triton_num_programs", [self.text.integer(axis, "i32")], "i32")
