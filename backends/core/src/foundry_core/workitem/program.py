"""One kernel in structured form to MLIR text: control flow, and the order in which sinks are evaluated.

The kernel's arguments are those of the Triton kernel, pointers as global pointers, i1 as i8, f16 and bf16 as their bits
in i16; then the grid's extents x, y, z as i32. One work-item a workgroup, one program a work-item.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from ..dialects import tile, tt
from ..dialects.arith import ConstantOp, SelectOp
from ..dialects.llvm import AssumeOp
from ..effects import is_sink
from ..errors import LoweringError, unsupported
from ..front.structured import kernel
from . import dot
from .buffers import Buffer
from .mlir import GLOBAL, Reg, Text
from .numeric import ELEMENTWISE, element, in_memory, in_register
from .plan import Plan, is_tile
from .reduce import Reduction
from .space import Point, extents
from .target import WorkItemTarget
from .tiles import Tiles


def lower(module: ModuleOp, target: WorkItemTarget) -> str:
    """The MLIR of a kernel for one work-item a program; reads the module only.

    Raises:
        UnsupportedOperation: an operation, or a type in it, that this mapping does not take.
        LoweringError: the kernel's tiles need more private memory than the target has.
    """
    function = kernel(module)
    return WorkItem(function, tiles(function, target)).write()


def tiles(function: tt.FuncOp, target: WorkItemTarget) -> Tiles:
    """The empty text of a kernel."""
    return Tiles(Text(), Plan(function.body.block), target)


class Program:
    """The control flow of one kernel; a mapping adds how the kernel is called and where a program finds its ids."""

    def __init__(self, function: tt.FuncOp, tiles: Tiles) -> None:
        self._function = function
        self._body = function.body.block
        self._text = tiles.text
        self._tiles = tiles

    def write(self) -> str:
        """The MLIR of the kernel."""
        parameters = [self._parameter(argument) for argument in self._body.args]
        self._block(self._body)
        return self._text.function(self._function.sym_name.data, parameters + self._more_parameters())

    def _more_parameters(self) -> list[str]:
        """What the kernel takes after the parameters that it has in Triton, once its body is written."""
        raise NotImplementedError

    def _program_id(self, axis: int) -> Reg:
        raise NotImplementedError

    def _num_programs(self, axis: int) -> Reg:
        raise NotImplementedError

    def _reduction(self, op: tt.ReduceOp) -> Reduction:
        return Reduction(self._tiles, op)

    def _parameter(self, argument: SSAValue) -> str:
        name = f"%{argument.name_hint or 'arg'}_{self._body.args.index(argument)}"
        if isinstance(argument.type, tt.PointerType):
            self._tiles.scalars[argument] = Reg(name, GLOBAL)
            return f"{name}: {GLOBAL}"
        elem = element(argument.type, self._function)
        passed = Reg(name, in_memory(elem))
        self._tiles.scalars[argument] = self._tiles.numeric.from_memory(passed, elem)
        return f"{name}: {passed.type}"

    # Blocks and what is in them.

    def _block(self, block: Block) -> None:
        for op in block.ops:
            self._operation(op)

    def _operation(self, op: Operation) -> None:
        tiles, t = self._tiles, self._text
        match op:
            case tt.ReturnOp():
                if op.values:
                    raise unsupported(op, "a kernel that returns a value")
                t.line("llvm.return")
            case scf.ForOp():
                self._for(op)
            case scf.IfOp():
                self._if(op)
            case scf.WhileOp():
                self._while(op)
            case tile.StoreOp():
                tiles.memory.store(op)
            case tile.WrappedOp():
                tiles.memory.prepare(op)
            case tile.KeepOp():
                t.volatile_store()
            case tile.AffineOp() | tile.IndexedOp() | tile.RangeOp() | AssumeOp():
                pass
            case tt.DotOp():
                self._dot(op)
            case tt.ReduceOp():
                self._reduction(op).write()
            case tt.UnsplatOp():
                index = (t.integer(0),) * len(extents(op.src))
                tiles.scalars[op.result] = tiles.at(op.src, Point(index, 0, 1), {})
            case _ if is_sink(op):
                # What has an effect is written here or nowhere.
                raise unsupported(op)
            case _ if op.results and all(not is_tile(result) for result in op.results):
                tiles.scalars[op.results[0]] = self._scalar(op)
            case _:
                for result in op.results:
                    if result in tiles.plan.stored:
                        self._store_tile(result, op)

    def _scalar(self, op: Operation) -> Reg:
        tiles, t = self._tiles, self._text
        match op:
            case ConstantOp():
                return tiles.scalar(op.result)
            case tt.GetProgramIdOp():
                return self._program_id(op.axis.value.data)
            case tt.GetNumProgramsOp():
                return self._num_programs(op.axis.value.data)
            case tt.AddPtrOp():
                assert isinstance(op.ptr.type, tt.PointerType)
                memory = in_memory(element(op.ptr.type.pointee, op))
                offset = tiles.index(op.offset)
                return Reg(t.address(tiles.scalar(op.ptr).name, offset, memory, GLOBAL), GLOBAL)
            case tt.BitcastOp() if isinstance(op.result.type, tt.PointerType):
                return tiles.scalar(op.src)
            case tile.LoadOp():
                return tiles.memory.load_scalar(op)
            case SelectOp() if isinstance(op.result.type, tt.PointerType):
                condition, a, b = (tiles.scalar(operand) for operand in op.operands)
                return t.select(condition, a, b)
        if type(op) in ELEMENTWISE:
            return tiles.numeric.apply(op, [tiles.scalar(operand) for operand in op.operands])
        raise unsupported(op)

    def _store_tile(self, value: SSAValue, op: Operation) -> Buffer:
        """Give a tile memory of its own; a load in the order in which it is contiguous."""
        tiles = self._tiles
        rank = len(extents(value))
        lane = tiles.best_lane(value)
        order = (*(d for d in range(rank) if d != lane), lane)
        if any(isinstance(use.operation, tt.DotOp) and use.index > 0 for use in value.uses):
            order = tuple(range(rank))
        buffer = tiles.allocate(value, op, order)
        tiles.fill(buffer, value, op, lane)
        tiles.buffers[value] = buffer
        return buffer

    def _buffer_of(self, value: SSAValue, op: Operation) -> Buffer:
        """A tile's buffer; made here if it has none."""
        if value in self._tiles.buffers:
            return self._tiles.buffers[value]
        buffer = self._store_tile(value, op)
        # Made for this sink: another sink may stand in a region that does not see it.
        del self._tiles.buffers[value]
        return buffer

    def _copied(self, value: SSAValue, op: Operation) -> Buffer:
        """A row-major buffer with a tile's elements that nothing else uses."""
        tiles = self._tiles
        buffer = tiles.allocate(value, op)
        tiles.fill(buffer, value, op)
        return buffer

    def _own(self, value: SSAValue, op: Operation) -> Buffer:
        """A row-major buffer with a tile's elements that may be overwritten: its own if this is the only use."""
        buffer = self._tiles.buffers.get(value)
        rank = len(extents(value))
        block = value.owner if isinstance(value.owner, Block) else value.owner.parent_block()
        if (
            buffer is not None
            and len(list(value.uses)) == 1
            and block is op.parent_block()
            and buffer.order == tuple(range(rank))
        ):
            return buffer
        return self._copied(value, op)

    def _dot(self, op: tt.DotOp) -> None:
        if len(extents(op.a)) != 2:
            raise unsupported(op, "on tiles of rank 3")
        tiles = self._tiles
        c = self._own(op.c, op)
        a = self._buffer_of(op.a, op)
        b = self._buffer_of(op.b, op)
        if b.order != (0, 1):
            b = self._copied(op.b, op)
        self._accumulate(op, a, b, c)
        tiles.buffers[op.result] = c
        elem = element(op.result.type, op)
        if in_register(elem) != elem:
            with tiles.space.each(c.extents, 1, tiles.lanes(op.result, op, 1)) as point:
                tiles.private.write(c, point, tiles.numeric.rounded(tiles.private.read(c, point), elem))

    def _accumulate(self, op: tt.DotOp, a: Buffer, b: Buffer, c: Buffer) -> None:
        """Write c += a b; b and c are row-major."""
        dot.accumulate(self._tiles, op, a, b, c, self._tiles.lanes(op.result, op, 1))

    # Control flow. Scalars are carried by the MLIR operation, tiles live in buffers that all iterations share.

    @staticmethod
    def _split(values: Sequence[SSAValue]) -> tuple[list[SSAValue], list[SSAValue]]:
        return [v for v in values if not is_tile(v)], [v for v in values if is_tile(v)]

    def _fresh_scalars(self, values: Sequence[SSAValue]) -> list[Reg]:
        """A register for each scalar, of its type."""
        made = []
        for value in values:
            elem = GLOBAL if isinstance(value.type, tt.PointerType) else in_register(element(value.type, value.owner))  # type: ignore[arg-type]
            made.append(Reg(self._text.fresh(), elem))
        self._tiles.scalars.update(zip(values, made, strict=True))
        return made

    def _yield(self, name: str, values: Sequence[SSAValue], prefix: str = "") -> None:
        regs = [self._tiles.scalar(value) for value in values]
        names, types = ", ".join(reg.name for reg in regs), ", ".join(reg.type for reg in regs)
        self._text.line(f"{name} {prefix}{names} : {types}" if regs else f"{name} {prefix}".rstrip())

    def _for(self, op: scf.ForOp) -> None:
        tiles = self._tiles
        last = op.body.block.last_op
        assert last is not None
        arguments = op.body.block.args[1:]
        initial = [tiles.scalar(v) for v in op.iter_args if not is_tile(v)]
        carried = [self._own(v, op) if is_tile(v) else None for v in op.iter_args]
        for argument, result, buffer in zip(arguments, op.results, carried, strict=True):
            if buffer is not None:
                tiles.buffers[argument] = tiles.buffers[result] = buffer
        (index,) = self._fresh_scalars([op.body.block.args[0]])
        inside = self._fresh_scalars(self._split(arguments)[0])
        after = self._fresh_scalars(self._split(op.results)[0])
        low, high, step = (tiles.scalar(v) for v in (op.lb, op.ub, op.step))
        head = f"scf.for {index.name} = {low.name} to {high.name} step {step.name}"
        if after:
            pairs = ", ".join(f"{x.name} = {y.name}" for x, y in zip(inside, initial, strict=True))
            types = ", ".join(reg.type for reg in after)
            head = f"{', '.join(reg.name for reg in after)} = {head} iter_args({pairs}) -> ({types})"
        with self._text.nested(f"{head} : {index.type} {{"):
            for inner in op.body.block.ops:
                if inner is not last:
                    self._operation(inner)
            self._carry(last, last.operands, carried)
            self._yield("scf.yield", self._split(last.operands)[0])

    def _carry(self, op: Operation, values: Sequence[SSAValue], targets: Sequence[Buffer | None]) -> None:
        """Write tiles into the buffers of the next iteration, none before all that read it have been evaluated."""
        tiles = self._tiles
        pending = [
            (value, target)
            for value, target in zip(values, targets, strict=True)
            if target is not None and tiles.buffers.get(value) != target
        ]
        overwritten = {target.name for _, target in pending}
        staged: list[tuple[Buffer, Buffer]] = []
        for value, target in pending:
            straight, read = self._reads(value, {})
            # In place, element by element, if nobody else is overwritten meanwhile and nobody else needs the old one.
            others = [self._reads(other, {})[1] for other, _ in pending if other is not value]
            alone = not any(target.name in names for names in others) and not (read & overwritten - {target.name})
            if alone and (straight or target.name not in read):
                tiles.fill(target, value, op)
            else:
                staged.append((self._copied(value, op), target))
        for source, target in staged:
            lanes = min(16, target.extents[-1])
            with tiles.space.each(target.extents, len(target.extents) - 1, lanes) as point:
                tiles.private.write(target, point, tiles.private.read(source, point))

    def _reads(self, value: SSAValue, known: dict[SSAValue, tuple[bool, set[str]]]) -> tuple[bool, set[str]]:
        """Whether a tile's element i depends on elements i of buffers only, and the names of all buffers it reads."""
        if value not in known:
            known[value] = self._found_reads(value, known)
        return known[value]

    def _found_reads(self, value: SSAValue, known: dict[SSAValue, tuple[bool, set[str]]]) -> tuple[bool, set[str]]:
        tiles = self._tiles
        if value in tiles.buffers:
            return True, {tiles.buffers[value].name}
        op = value.owner
        if not isinstance(op, Operation):
            return True, set()
        names: set[str] = set()
        straight = type(op) in ELEMENTWISE
        for operand in op.operands:
            if is_tile(operand) or isinstance(operand.type, tile.AxisType):
                inner, found = self._reads(operand, known)
                straight, names = straight and inner, names | found
        return straight or not names, names

    def _if(self, op: scf.IfOp) -> None:
        tiles = self._tiles
        targets = [tiles.allocate(v, op) if is_tile(v) else None for v in op.results]
        after = self._fresh_scalars(self._split(op.results)[0])
        head = f"scf.if {tiles.scalar(op.cond).name}"
        if after:
            names, types = ", ".join(r.name for r in after), ", ".join(r.type for r in after)
            head = f"{names} = {head} -> ({types})"
        for region, opening in ((op.true_region, f"{head} {{"), (op.false_region, "else {")):
            if not region.blocks:
                continue
            with self._text.nested(opening):
                last = region.block.last_op
                assert last is not None
                for inner in region.block.ops:
                    if inner is not last:
                        self._operation(inner)
                for value, target in zip(last.operands, targets, strict=True):
                    if target is not None:
                        tiles.fill(target, value, last)
                self._yield("scf.yield", self._split(last.operands)[0])
        for result, target in zip(op.results, targets, strict=True):
            if target is not None:
                tiles.buffers[result] = target

    def _while(self, op: scf.WhileOp) -> None:
        tiles, t = self._tiles, self._text
        before, after = op.before_region.block, op.after_region.block
        initial = [tiles.scalar(v) for v in op.arguments if not is_tile(v)]
        carried = [self._own(v, op) if is_tile(v) else None for v in op.arguments]
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
        with t.nested(f"{names}scf.while ({pairs}) : ({types_in}) -> ({types_out}) {{"):
            for inner in before.ops:
                if isinstance(inner, scf.ConditionOp):
                    condition, values = inner.operands[0], inner.operands[1:]
                    self._carry(inner, values, passed)
                    self._yield("scf.condition", self._split(values)[0], f"({tiles.scalar(condition).name}) ")
                else:
                    self._operation(inner)
        with t.nested("do {"):
            t.line(f"^bb0({', '.join(f'{r.name}: {r.type}' for r in inside)}):")
            for inner in after.ops:
                if isinstance(inner, scf.YieldOp):
                    self._carry(inner, inner.operands, carried)
                    self._yield("scf.yield", self._split(inner.operands)[0])
                else:
                    self._operation(inner)


class WorkItem(Program):
    """One program a work-item of OpenCL, one work-item a workgroup."""

    _grid = tuple(Reg(f"%grid_{axis}", "i32") for axis in tt.AXES)

    def write(self) -> str:
        text = super().write()
        used, limit = self._text.private_bytes, self._tiles.target.private_bytes
        if used > limit:
            raise LoweringError(
                f"kernel {self._function.sym_name.data} keeps {used >> 10} KiB of tiles in private memory, of which "
                f"this device gives a program {limit >> 10} KiB; smaller blocks need less"
            )
        return text

    def _more_parameters(self) -> list[str]:
        return [f"{reg.name}: i32" for reg in self._grid]

    def _program_id(self, axis: int) -> Reg:
        group = self._text.call("_Z12get_group_idj", [self._text.integer(axis, "i32")], "i64")
        return self._text.cast("arith.trunci", group, "i32")

    def _num_programs(self, axis: int) -> Reg:
        return self._grid[axis]
