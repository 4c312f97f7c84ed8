"""Translates one kernel in TTGIR to the SPIR-V of one invocation.

A tile is a list of registers: layouts.py says which element of the tile each of them is, in this invocation. An
operation on tiles is an operation on each register. statements/ has the operations that need elements of other
invocations, or global memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, TensorType
from xdsl.ir import Block, Operation, SSAValue

from ...analysis.axes import LARGEST_NATURAL, Fact, Hope
from ...emit.mlir import Reg
from ...errors import LoweringError, TooLarge, UnsupportedOperation, source_line, unsupported
from ...front.order import BarrierPlan, Meetings
from ...ir import literals, tile, tt
from ...ir.arith import AssumeOp, ConstantOp
from ...ir.elements import ElementMap, source
from ...ir.facts import is_product
from ...ops.elementwise import is_elementwise, row_writer
from ...ops.numeric import element_name, in_memory, in_register, scalar_type
from ..base.emission import Statement, Writers
from . import layouts
from .invocation import write_loop
from .matrices.fragments import Values, combine_fragments, define, fragments_of
from .matrices.plan import Fragments
from .runs import Derived, Runs, derived, divisor_of_first
from .target import MOST_FOR_SLOW_COMPILER, SimtTarget

# Write an operation: give each result its registers (`program.values`). ElementMap stands for all that only move the
# elements of one operand.
INVOCATION_STATEMENTS: Writers[Statement] = Writers()
invocation_statement = INVOCATION_STATEMENTS.register


class SimtProgram(Values):
    """One kernel.

    Attributes:
        log, spare: additional arguments. The address of the launch's log, if the kernel prints or asserts; and the
            address of 16 bytes of zeros, if it has masked loads.
        allocated: the first byte of each tile in workgroup memory.
        roots, shared_tiles: what products.py has found of tiles in workgroup memory.
        column_allocations: the allocations whose tiles are transposed; None until products.py has decided.
        unread: loads of tiles in workgroup memory that products are yet to read.
        resident: fragments that were made before all loops, by the tile that they were made from.
        barriers: the operations that must wait until all invocations have accessed what comes before.

    Args:
        named: whether registers have the names of values, for a person who reads the module.
    """

    def __init__(self, function: tt.FuncOp, target: SimtTarget, *, named: bool = False) -> None:
        super().__init__(function, target)
        self.function = function
        self.allocated: dict[SSAValue, int] = {}
        self.roots: dict[SSAValue, frozenset[SSAValue | None]] = {}
        self.shared_tiles: dict[SSAValue, Any] = {}
        self.unread: set[Operation] = set()
        self.column_allocations: frozenset[SSAValue | None] | None = None
        self.spare: Reg | None = None
        self.log: Reg | None = None
        self._named = named
        self.resident: dict[tuple[SSAValue, Fragments], Sequence[Reg]] = {}
        self.barriers = BarrierPlan(function, Meetings(function, self.invocations)).before
        self.runs = Runs(function, self.layout)
        self.facts: Mapping[SSAValue, Fact] = self.runs.certain
        # Operations that both variants of a kernel have in common.
        self._written: frozenset[Operation] = frozenset()
        # What must hold for a launch to take the second of two variants; None if there is one.
        self.hopes: Sequence[Hope] | None = None

    def write(self) -> bytes:
        """Write the kernel and return the module."""
        body = self.function.body.block
        for argument in body.args:
            self.declare(argument)
        masked = any(isinstance(op, tt.LoadOp) and op.mask is not None for op in body.walk())
        logs = any(isinstance(op, tile.RecordOp | tile.CheckOp) for op in body.walk())
        for _ in range(masked + logs):
            self.group.table()
        try:
            arguments = self.group.begin()
        except LoweringError as error:
            raise unsupported(self.function, f"a parameter {error}") from error
        # Used everywhere, so read where everything follows.
        self.group.lane()
        self.group.warp()
        if masked:
            self.spare = arguments.pop()
            self.code.state_multiple(self.spare, 16)
        if logs:
            self.log = arguments.pop()
            self.code.state_multiple(self.log, 16)
        for argument, reg, attributes in zip(
            body.args, arguments, self.function.arg_attrs or [None] * len(body.args), strict=True
        ):
            divisor = attributes.data.get("tt.divisibility") if attributes else None
            if isinstance(divisor, IntegerAttr):
                self.code.state_multiple(reg, divisor.value.data)
            self.values[argument] = [self.read_argument(argument, reg)]
        if self.plan.scratch:
            self.scratch = self.arena.take(next(iter(self.plan.products)), self.plan.scratch * self.target.warps)
        self._variants(body)
        self.group.local_bytes = self.arena.most
        return self.group.finish(self.function.sym_name.data)

    def _variants(self, body: Block) -> None:
        """Write the kernel; twice if a launch may turn out such that accesses are wider."""
        t, hopes = self.code, self.runs.hopes
        if not hopes:
            self.block(body)
            return
        for op in self.runs.start:
            self.operation(op)
        self._written = frozenset(self.runs.start)
        arena = self.arena.save()
        if self.target.compiles_slowly:
            saved = t.save()
            self.block(body)
            if 2 * 4 * len(t.module.body) > MOST_FOR_SLOW_COMPILER:
                return
            t.restore(saved)

        def write(facts: Mapping[SSAValue, Fact]) -> Sequence[Reg]:
            self.facts = facts
            self.arena.restore(arena)
            self.resident.clear()
            self.block(body)
            return []

        def write_hoped() -> Sequence[Reg]:
            # From here on, so that the other variant does not rely on it.
            for hope in hopes:
                if hope.kind == "multiple":
                    t.state_multiple(self.scalar(hope.value), hope.of)
            return write(self.runs.hoped)

        self.hopes = hopes
        holds = t.all_of(*(self._holds(hope) for hope in hopes))
        assert holds is not None
        # As for scf.if. All invocations of a workgroup go the same way.
        choose = t.when_in_turn if self.target.flavour == "kernel" else t.branch
        fails = t.binary("arith.xori", holds, t.integer(1, "i1"))
        choose(fails, lambda: write(self.runs.certain), write_hoped)

    def _holds(self, hope: Hope) -> Reg | None:
        """Return whether a launch, or this program, is as hoped."""
        t, number = self.code, self.scalar(hope.value)
        zero = t.integer(0, number.elem)
        if hope.kind == "multiple":
            return t.compare("eq", t.binary("arith.andi", number, t.integer(hope.of - 1, number.elem)), zero)
        most = t.integer(LARGEST_NATURAL, number.elem)
        return t.all_of(t.compare("sge", number, zero), t.compare("sle", number, most))

    def declare(self, value: SSAValue) -> None:
        """Declare an argument: a pointer, or a number as it is in memory."""
        if isinstance(value.type, tt.PointerType):
            self.group.pointer()
        else:
            self.group.parameter(in_memory(element_name(value.type, self.function)))

    def read_argument(self, value: SSAValue, reg: Reg) -> Reg:
        if isinstance(value.type, tt.PointerType):
            return reg
        elem = element_name(value.type, self.function)
        return self.numeric.from_memory(reg, elem)

    def invocations(self, access: Operation) -> layouts.Layout | None:
        """Return the layout that says which invocation accesses which element; None if several access the same."""
        (pointer, *_) = access.operands
        is_tile = isinstance(pointer.type, TensorType)
        layout = self.layout(pointer) if is_tile else layouts.scalar_layout(self.target.warp_size, self.target.warps)
        # If several invocations hold an element, all of them may load it, but only one does any other access.
        alone = not isinstance(access, tt.LoadOp) or bool(access.is_volatile)
        return layout if alone or not layout.repeats else None

    # Operations.

    def block(self, block: Block) -> None:
        """Write the operations of a block, without the one that ends it."""
        for op in block.ops:
            if op is not block.last_op and op not in self._written:
                self.operation(op)
            size = 4 * len(self.code.module.body)
            if self.target.compiles_slowly and size > MOST_FOR_SLOW_COMPILER:
                why = f"makes {size} bytes of code, for which the device's compiler would take many minutes"
                raise TooLarge(op, why, "code", size, MOST_FOR_SLOW_COMPILER)
            if op is self.plan.last and self.plan.scratch:
                self.arena.release(self.scratch)

    def operation(self, op: Operation) -> None:
        place = source_line(op.location)
        if place is not None:
            self.code.line(place.filename.data, place.line.data, place.column.data)
        if op in self.barriers:
            self.group.barrier(of_all=True)
        try:
            write = INVOCATION_STATEMENTS.get(type(op))
            in_fragments = op.results and op.results[0] in self.plan.fragments
            # Loops, branches and products see to the fragments that are their results themselves.
            if in_fragments and not (op.regions or is_product(op)):
                combine_fragments(self, op)
            elif write is not None:
                write(self, op)
            elif is_elementwise(op):
                self.elementwise(op)
            elif len(op.results) == 1 and source(op.results[0]) is not None:
                INVOCATION_STATEMENTS[ElementMap](self, op)
            else:
                raise unsupported(op)
        except UnsupportedOperation:
            raise
        except LoweringError as error:
            raise unsupported(op, str(error)) from error
        if not (op.regions or is_elementwise(op)):
            for result in op.results:
                self._join_runs(result)
        for result in op.results if self._named else ():
            for number, reg in enumerate(self.values.get(result, ())):
                self.code.name(reg, f"{result.name_hint or op.name}.{number}")

    def operands(self, op: Operation) -> list[Sequence[Reg]]:
        """Return the registers of the operands, as many of each as the result has; the condition may be a scalar."""
        size = self.size(op.results[0])
        return [
            self.values[operand] if isinstance(operand.type, TensorType) else [self.scalar(operand)] * size
            for operand in op.operands
        ]

    def elementwise(self, op: Operation) -> None:
        """Write an operation on each register."""
        (result,) = op.results
        rows = list(zip(*self.operands(op), strict=True))
        firsts = {first for first, _ in self._derived(result)} or range(len(rows))
        write = row_writer(self.numeric, op)
        self.values[result] = [write(regs) if number in firsts else regs[0] for number, regs in enumerate(rows)]
        self._join_runs(result)

    def _derived(self, value: SSAValue) -> Derived:
        """Return which registers of a tile follow from others; nothing if all are on their own."""
        fact = self.facts.get(value)
        if fact is None or not isinstance(value.type, TensorType) or not value.type.get_shape():
            return ()
        if isinstance(scalar_type(value.type), tt.PointerType):
            return ()
        return derived(self.layout(value), fact.consecutive, fact.equal)

    def _join_runs(self, value: SSAValue) -> None:
        """Let registers of a run be its first one plus a constant, or the same one."""
        runs, t = self._derived(value), self.code
        if not runs or value not in self.values:
            return
        regs = self.values[value]
        if regs[0].elem[0] == "i" and regs[0].elem != "i1":
            multiple, within = divisor_of_first(self.layout(value), self.facts[value]), self.facts[value].range
            for first in {first for first, _ in runs}:
                t.state_multiple(regs[first], multiple)
                # Larger numbers are not exact in intervals.
                if t.bounds(regs[first]) is None and -(1 << 31) <= within.low <= within.high < 1 << 31:
                    t.assume_bounds(regs[first], int(within.low), int(within.high))
        self.values[value] = [
            t.binary("arith.addi", regs[first], t.integer(more, regs[first].elem)) if more else regs[first]
            for first, more in runs
        ]

    # Control flow.

    def transfer_registers(self, op: Operation, operands: Sequence[SSAValue], values: Sequence[SSAValue]) -> list[Reg]:
        """Return all registers of operands, as the values have them that they become."""
        found: list[Reg] = []
        for operand, value in zip(operands, values, strict=True):
            kept = self.plan.fragments.get(value)
            found += self.values[operand] if kept is None else fragments_of(self, op, operand, kept)
        return found

    def bind(self, op: Operation, values: Sequence[SSAValue], regs: Sequence[Reg]) -> None:
        """Divide registers among values, which an operation makes."""
        at = 0
        for value in values:
            size = self.size(value)
            define(self, op, value, regs[at : at + size])
            at += size


@invocation_statement(ConstantOp)
def _constant(program: SimtProgram, op: ConstantOp) -> None:
    if op.splat is None:
        raise unsupported(op, "a tile of different constants")
    t, elem = program.code, element_name(op.result.type, op)
    if elem[0] == "i":
        reg = t.integer(op.integers[0], elem)
    else:
        bits = literals.to_f32_bits(op.splat, op.element) if in_register(elem) != elem else op.splat
        reg = t.bits(bits, in_register(elem))
    program.values[op.result] = [reg] * program.size(op.result)


@invocation_statement(tt.GetProgramIdOp)
def _program_id(program: SimtProgram, op: tt.GetProgramIdOp) -> None:
    program.values[op.result] = [program.group.program_id(op.axis.value.data)]


@invocation_statement(tt.GetNumProgramsOp)
def _num_programs(program: SimtProgram, op: tt.GetNumProgramsOp) -> None:
    program.values[op.result] = [program.group.num_programs(op.axis.value.data)]


@invocation_statement(tt.MakeRangeOp)
def _range(program: SimtProgram, op: tt.MakeRangeOp) -> None:
    t, start = program.code, program.code.integer(op.start.value.data, "i32")
    program.values[op.result] = [
        t.binary("arith.addi", reg, start) for reg in program.indices(program.layout(op.result))
    ]


@invocation_statement(tile.KeepOp)
def _barrier(program: SimtProgram, op: tile.KeepOp) -> None:
    """A barrier between invocations, as tl.debug_barrier asks for."""
    program.group.barrier(of_all=True)


@invocation_statement(AssumeOp)
def _assume(program: SimtProgram, op: AssumeOp) -> None:
    """A promise: nothing is written."""


@invocation_statement(scf.ForOp)
def _for(program: SimtProgram, op: scf.ForOp) -> None:
    t = program.code
    index, *arguments = op.body.block.args
    high, step, low = (program.scalar(value) for value in (op.ub, op.step, op.lb))
    initial = [low, *program.transfer_registers(op, op.iter_args, arguments)]

    def test(regs: Sequence[Reg]) -> tuple[Reg, Sequence[Reg]]:
        return t.compare("slt", regs[0], high), regs

    def body(regs: Sequence[Reg]) -> Sequence[Reg]:
        program.values[index] = regs[:1]
        program.bind(op, arguments, regs[1:])
        program.block(op.body.block)
        last = op.body.block.last_op
        assert last is not None
        return [t.binary("arith.addi", regs[0], step), *program.transfer_registers(last, last.operands, arguments)]

    # A product is many instructions already: more of them do not fit into the device's cache of instructions.
    rolled = any(inner in program.plan.products for inner in op.body.walk())
    program.bind(op, op.results, write_loop(program, initial, test, body, rolled=rolled)[1:])


@invocation_statement(scf.IfOp)
def _if(program: SimtProgram, op: scf.IfOp) -> None:
    def path(region: Any) -> Callable[[], Sequence[Reg]]:
        def write() -> Sequence[Reg]:
            if not region.blocks:
                return []
            program.block(region.block)
            last = region.block.last_op
            return program.transfer_registers(last, last.operands, op.results)

        return write

    # PoCL 6 loses stores behind barriers in an if and an else of a loop.
    write = program.code.when_in_turn if program.target.flavour == "kernel" else program.code.branch
    found = write(program.scalar(op.cond), path(op.true_region), path(op.false_region))
    program.bind(op, op.results, found)


@invocation_statement(scf.WhileOp)
def _while(program: SimtProgram, op: scf.WhileOp) -> None:
    before, after = op.before_region.block, op.after_region.block

    def test(regs: Sequence[Reg]) -> tuple[Reg, Sequence[Reg]]:
        program.bind(op, before.args, regs)
        program.block(before)
        condition = before.last_op
        assert condition is not None
        passed = [reg for value in condition.operands[1:] for reg in program.values[value]]
        return program.scalar(condition.operands[0]), passed

    def body(regs: Sequence[Reg]) -> Sequence[Reg]:
        program.bind(op, after.args, regs)
        program.block(after)
        assert after.last_op is not None
        return program.transfer_registers(after.last_op, after.last_op.operands, before.args)

    initial = [reg for value in op.arguments for reg in program.values[value]]
    program.bind(op, op.results, write_loop(program, initial, test, body))
