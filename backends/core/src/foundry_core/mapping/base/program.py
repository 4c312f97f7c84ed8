"""Translates one kernel in structured form to MLIR text: control flow, and the order in which sinks are evaluated.

The kernel's arguments are those of the Triton kernel: pointers are global pointers, i1 is passed as i8, f16 and bf16 as
their bits in i16. The arguments that a mapping adds follow.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from ...emit.mlir import GLOBAL, Reg
from ...errors import source_line, unsupported
from ...ir import tile, tt
from ...ir.effects import KEEPS_CODE, is_sink
from ...ir.elements import extents
from ...ir.facts import is_product
from ...ops.elementwise import apply_row, is_elementwise
from ...ops.numeric import element_name, in_memory, in_register
from .buffers import Buffer
from .emission import SCALARS, STATEMENTS, OperationKind, ScalarValue, Statement, Writers
from .mapping import Mapping
from .plan import is_tile
from .tiles import Tiles

_LOG = Reg("%log", GLOBAL)
# Passed on to LLVM, and on DPUs to its release 12 (foundry_core.codegen.tools).
_HINT = " {llvm.loop_annotation = #llvm.loop_annotation<licm = <disable = true>>}"


class Program(Mapping):
    """The control flow of one kernel. A mapping derives from this class, and implements what is left of Mapping.

    Attributes:
        statements, scalar_values: the functions that write operations; a mapping may have its own tables.
    """

    statements: ClassVar[Writers[Statement]] = STATEMENTS
    scalar_values: ClassVar[dict[OperationKind, ScalarValue]] = SCALARS

    def __init__(self, function: tt.FuncOp, tiles: Tiles) -> None:
        self.function = function
        self._body = function.body.block
        self.text = tiles.text
        self.tiles = tiles
        self._logs = False

    def write(self) -> str:
        with self.text.location(source_line(self.function.location)):
            parameters = [self.parameter(argument) for argument in self._body.args]
            self.write_operations(self._body.ops)
            parameters += self.more_parameters()
        if self._logs:
            parameters.append(self.log_parameter())
        return self.text.function(self.function.sym_name.data, parameters)

    def log(self) -> Reg:
        self._logs = True
        return _LOG

    def log_parameter(self) -> str:
        """Return the last parameter of a kernel that writes to the launch's log."""
        return f"{_LOG.name}: {_LOG.type}"

    def parameter(self, argument: SSAValue) -> str:
        name = f"%{argument.name_hint or 'arg'}_{self._body.args.index(argument)}"
        if isinstance(argument.type, tt.PointerType):
            self.tiles.scalars[argument] = Reg(name, GLOBAL)
            return f"{name}: {GLOBAL}"
        elem = element_name(argument.type, self.function)
        passed = Reg(name, in_memory(elem))
        self.tiles.scalars[argument] = self.tiles.numeric.from_memory(passed, elem)
        return f"{name}: {passed.type}"

    # Blocks and their operations.

    def write_operations(self, operations: Iterable[Operation]) -> None:
        for op in operations:
            self._operation(op)

    def _operation(self, op: Operation) -> None:
        with self.text.location(source_line(op.location)):
            self._write_operation(op)

    def _write_operation(self, op: Operation) -> None:
        tiles = self.tiles
        match op:
            case scf.ForOp():
                self._for(op)
            case scf.IfOp():
                self._if(op)
            case scf.WhileOp():
                self._while(op)
            case _ if type(op) in self.statements:
                self.statements[type(op)](self, op)
            case _ if is_sink(op):
                # An operation with an effect must be written here; it is never evaluated later.
                raise unsupported(op)
            case _ if op.results and all(not is_tile(result) for result in op.results):
                if type(op) in self.scalar_values:
                    tiles.scalars[op.results[0]] = self.scalar_values[type(op)](self, op)
                elif is_elementwise(op):
                    operands = [tiles.scalar(operand) for operand in op.operands]
                    tiles.scalars[op.results[0]] = apply_row(tiles.numeric, op, operands)
                else:
                    raise unsupported(op)
            case _:
                for result in op.results:
                    if result in tiles.plan.stored:
                        self._store_tile(result, op)

    def _store_tile(self, value: SSAValue, op: Operation, ends: Sequence[Reg] | None = None) -> Buffer:
        """Store a tile in a buffer; for a load, order the dimensions as they are contiguous in memory."""
        tiles = self.tiles
        rank = len(extents(value))
        lane = tiles.best_lane(value)
        fastest = tiles.plan.across.get(value, lane)
        order = (*(d for d in range(rank) if d != fastest), fastest)
        if any(is_product(use.operation) and use.index > 0 for use in value.uses):
            order = tuple(range(rank))
        buffer = self._buffer_for(value, op, order)
        tiles.fill(buffer, value, op, lane, ends)
        tiles.buffers[value] = buffer
        return buffer

    def _buffer_for(self, value: SSAValue, op: Operation, order: tuple[int, ...]) -> Buffer:
        """Return a buffer in which to store a tile at an operation."""
        return self.tiles.allocate(value, op, order, as_bits=value in self.tiles.plan.across)

    def buffer_of(self, value: SSAValue, op: Operation, ends: Sequence[Reg] | None = None) -> Buffer:
        if value in self.tiles.buffers:
            return self.tiles.buffers[value]
        buffer = self._store_tile(value, op, ends)
        # This buffer serves this sink only: another sink may be in a region that does not see it.
        del self.tiles.buffers[value]
        return buffer

    def copy_tile(self, value: SSAValue, op: Operation) -> Buffer:
        """Copy a tile to a new row-major buffer that nothing else uses."""
        tiles = self.tiles
        buffer = tiles.allocate(value, op)
        tiles.fill(buffer, value, op)
        return buffer

    def writable_buffer(self, value: SSAValue, op: Operation) -> Buffer:
        buffer = self.tiles.buffers.get(value)
        rank = len(extents(value))
        block = value.owner if isinstance(value.owner, Block) else value.owner.parent_block()
        if (
            buffer is not None
            and len(list(value.uses)) == 1
            and block is op.parent_block()
            and buffer.order == tuple(range(rank))
        ):
            return buffer
        return self.copy_tile(value, op)

    # Control flow. The MLIR operation carries scalars; tiles are in buffers that all iterations share.

    @staticmethod
    def _split(values: Sequence[SSAValue]) -> tuple[list[SSAValue], list[SSAValue]]:
        return [v for v in values if not is_tile(v)], [v for v in values if is_tile(v)]

    def _fresh_scalars(self, values: Sequence[SSAValue]) -> list[Reg]:
        """Assign a new register of its type to each scalar."""
        made = []
        for value in values:
            pointer = isinstance(value.type, tt.PointerType)
            elem = GLOBAL if pointer else in_register(element_name(value.type, value.owner))  # type: ignore[arg-type]
            made.append(Reg(self.text.fresh(), elem))
        self.tiles.scalars.update(zip(values, made, strict=True))
        return made

    def _scalars(self, values: Sequence[SSAValue]) -> list[Reg]:
        return [self.tiles.scalar(value) for value in self._split(values)[0]]

    def _yield(self, name: str, regs: Sequence[Reg], prefix: str = "") -> None:
        names, types = ", ".join(reg.name for reg in regs), ", ".join(reg.type for reg in regs)
        self.text.line(f"{name} {prefix}{names} : {types}" if regs else f"{name} {prefix}".rstrip())

    def _part(self, loop: Operation, block: Block, buffers: Sequence[Buffer | None]) -> list[Reg]:
        """Write a block of a loop; return the registers of the scalars that it passes on, a condition first."""

        def write() -> list[Reg]:
            last = block.last_op
            assert last is not None
            self.write_operations(op for op in block.ops if op is not last)
            self._carry(last, last.operands[len(last.operands) - len(buffers) :], buffers)
            return self._scalars(last.operands)

        return self.text.pin_operations(write) if KEEPS_CODE in loop.attributes else write()

    def _for(self, op: scf.ForOp) -> None:
        tiles = self.tiles
        arguments = op.body.block.args[1:]
        initial = [tiles.scalar(v) for v in op.iter_args if not is_tile(v)]
        buffers = [self.loop_buffer(op, number) if is_tile(v) else None for number, v in enumerate(op.iter_args)]
        for argument, buffer in zip(arguments, buffers, strict=True):
            if buffer is not None:
                tiles.buffers[argument] = buffer
        low, *initial = self.peel_iterations(op, buffers, [tiles.scalar(op.lb), *initial])
        (index,) = self._fresh_scalars([op.body.block.args[0]])
        inside = self._fresh_scalars(self._split(arguments)[0])
        after = self._fresh_scalars(self._split(op.results)[0])
        high, step = tiles.scalar(op.ub), tiles.scalar(op.step)
        head = f"scf.for {index.name} = {low.name} to {high.name} step {step.name}"
        if after:
            pairs = ", ".join(f"{x.name} = {y.name}" for x, y in zip(inside, initial, strict=True))
            types = ", ".join(reg.type for reg in after)
            head = f"{', '.join(reg.name for reg in after)} = {head} iter_args({pairs}) -> ({types})"
        with self.text.nest(f"{head} : {index.type} {{", f"}}{_HINT * (KEEPS_CODE in op.attributes)}"):
            self._yield("scf.yield", self._part(op, op.body.block, buffers))
        for result, buffer in zip(op.results, buffers, strict=True):
            if buffer is not None:
                tiles.buffers[result] = self.loop_result(result, op, buffer)

    def loop_buffer(self, op: scf.ForOp, number: int) -> Buffer:
        """Return a buffer with a tile that a loop carries, as it is before the first iteration."""
        return self.writable_buffer(op.iter_args[number], op)

    def peel_iterations(self, op: scf.ForOp, buffers: Sequence[Buffer | None], values: Sequence[Reg]) -> Sequence[Reg]:
        """Write the first iterations of a loop in a faster way, if there is one.

        Args:
            buffers: the buffers of the tiles that it carries.
            values: its index and the scalars that it carries, before the first iteration.

        Returns:
            The same, before the first iteration that is left.
        """
        return values

    def overwrite(self, buffer: Buffer, value: SSAValue, op: Operation) -> None:
        """Evaluate a tile, and write it to the buffer of the next iteration."""
        self.tiles.fill(buffer, value, op)

    def loop_result(self, result: SSAValue, op: scf.ForOp, buffer: Buffer) -> Buffer:
        """Return the buffer of a loop's result, which is in a `loop_buffer` after the last iteration."""
        return buffer

    def _carry(self, op: Operation, values: Sequence[SSAValue], targets: Sequence[Buffer | None]) -> None:
        """Write tiles to the buffers of the next iteration, none before all tiles that read it are evaluated."""
        tiles = self.tiles
        pending = [
            (value, target)
            for value, target in zip(values, targets, strict=True)
            if target is not None and tiles.buffers.get(value) != target
        ]
        overwritten = {target.name for _, target in pending}
        staged: list[tuple[Buffer, Buffer]] = []
        for value, target in pending:
            read, moved = self._reads(value, {})
            # Write in place, element by element, if this value reads no other buffer that is overwritten, takes from
            # its buffer only element i for element i, and no other value needs the old elements.
            others = [self._reads(other, {})[0] for other, _ in pending if other is not value]
            alone = not any(target.name in names for names in others) and not (read & overwritten - {target.name})
            if alone and target.name not in moved:
                self.overwrite(target, value, op)
            else:
                staged.append((self.copy_tile(value, op), target))
        for source, target in staged:
            lanes = min(16, target.extents[-1])
            with tiles.space.iterate(target.extents, len(target.extents) - 1, lanes) as point:
                tiles.private.write(target, point, tiles.private.read(source, point))

    def _reads(self, value: SSAValue, known: dict[SSAValue, tuple[set[str], set[str]]]) -> tuple[set[str], set[str]]:
        """Return the names of all buffers that a tile reads, and of those not read at element i for its element i."""
        if value in known:
            return known[value]
        op, read, moved = value.owner, set[str](), set[str]()
        if value in self.tiles.buffers:
            read = {self.tiles.buffers[value].name}
        elif isinstance(op, Operation):
            for operand in op.operands:
                if is_tile(operand) or isinstance(operand.type, tile.AxisType):
                    inner = self._reads(operand, known)
                    read, moved = read | inner[0], moved | inner[1]
            if not is_elementwise(op):
                moved = read
        known[value] = read, moved
        return known[value]

    def _if(self, op: scf.IfOp) -> None:
        tiles = self.tiles
        targets = [tiles.allocate(v, op) if is_tile(v) else None for v in op.results]
        after = self._fresh_scalars(self._split(op.results)[0])
        head = f"scf.if {tiles.scalar(op.cond).name}"
        if after:
            names, types = ", ".join(r.name for r in after), ", ".join(r.type for r in after)
            head = f"{names} = {head} -> ({types})"
        for region, opening in ((op.true_region, f"{head} {{"), (op.false_region, "else {")):
            if not region.blocks:
                continue
            with self.text.nest(opening):
                last = region.block.last_op
                assert last is not None
                for inner in region.block.ops:
                    if inner is not last:
                        self._operation(inner)
                for value, target in zip(last.operands, targets, strict=True):
                    if target is not None:
                        tiles.fill(target, value, last)
                self._yield("scf.yield", self._scalars(last.operands))
        for result, target in zip(op.results, targets, strict=True):
            if target is not None:
                tiles.buffers[result] = target

    def _while(self, op: scf.WhileOp) -> None:
        tiles, t = self.tiles, self.text
        before, after = op.before_region.block, op.after_region.block
        initial = [tiles.scalar(v) for v in op.arguments if not is_tile(v)]
        carried = [self.writable_buffer(v, op) if is_tile(v) else None for v in op.arguments]
        for argument, buffer in zip(before.args, carried, strict=True):
            if buffer is not None:
                tiles.buffers[argument] = buffer
        passed = [tiles.allocate(v, op) if is_tile(v) else None for v in op.results]
        for argument, result, buffer in zip(after.args, op.results, passed, strict=True):
            if buffer is not None:
                tiles.buffers[argument] = tiles.buffers[result] = buffer
        outside = self._fresh_scalars(self._split(before.args)[0])
        inside = self._fresh_scalars(self._split(after.args)[0])
        results = self._fresh_scalars(self._split(op.results)[0])
        pairs = ", ".join(f"{x.name} = {y.name}" for x, y in zip(outside, initial, strict=True))
        types_in, types_out = (", ".join(r.type for r in regs) for regs in (outside, results))
        names = f"{', '.join(r.name for r in results)} = " if results else ""
        with t.nest(f"{names}scf.while ({pairs}) : ({types_in}) -> ({types_out}) {{"):
            condition, *values = self._part(op, before, passed)
            self._yield("scf.condition", values, f"({condition.name}) ")
        with t.nest("do {", f"}}{' attributes' + _HINT if KEEPS_CODE in op.attributes else ''}"):
            t.line(f"^bb0({', '.join(f'{r.name}: {r.type}' for r in inside)}):")
            self._yield("scf.yield", self._part(op, after, carried))
