"""tile.record and tile.check: write records to the launch's log (foundry_core/log.py).

Records are in the order of the elements: one invocation claims places for a whole tile, and each invocation writes its
elements to theirs. Failures are rare, so one invocation writes them all, one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation

from ....emit.mlir import Reg
from ....ir import tile
from ....log import RECORD
from ...base.log_record import OF_FAILURES, OF_VALUES, as_word, invert_condition, record_words
from ..layouts import Layout
from ..program import SimtProgram, invocation_statement
from ..tiles import Division
from .memory import first_invocation, owner_predicate

_WORD_BYTES = 8


@invocation_statement(tile.RecordOp)
def _record(program: SimtProgram, op: tile.RecordOp) -> None:
    t, site = program.code, op.site.value.data
    if op.value is None or not isinstance(op.value.type, TensorType):
        value = program.scalar(op.value) if op.value is not None else None

        def write() -> None:
            _write(program, OF_VALUES, _claimed(program, OF_VALUES, 1), site, t.integer(0, "i32"), value)

        t.do_when(first_invocation(program), write)
        return
    layout = program.layout(op.value)
    first = _shared_word(program, op, lambda: _claimed(program, OF_VALUES, prod(layout.shape)))
    once = owner_predicate(program, layout)
    rows = list(zip(program.indices(layout), program.values[op.value], strict=True))

    def write_all() -> None:
        for register in layout.distinct:
            index, value = rows[register]
            _write(program, OF_VALUES, t.binary("arith.addi", first, index), site, index, value)

    if once is None:
        write_all()
    else:
        t.do_when(once, write_all)


@invocation_statement(tile.CheckOp)
def _check(program: SimtProgram, op: tile.CheckOp) -> None:
    t, group, site = program.code, program.group, op.site.value.data
    conditions = program.values[op.condition]
    passed = conditions[0]
    for condition in conditions[1:]:
        passed = t.binary("arith.andi", passed, condition)
    if not isinstance(op.condition.type, TensorType):
        value = program.scalar(op.value) if op.value is not None else None

        def write() -> None:
            _write(program, OF_FAILURES, _claimed(program, OF_FAILURES, 1), site, t.integer(0, "i32"), value)

        t.do_when(t.binary("arith.andi", invert_condition(t, passed), first_invocation(program)), write)
        program.values[op.result] = [passed]
        return
    layout = program.layout(op.condition)
    if op.value is not None:
        _check_first(program, op, layout)
        return
    failed = t.compare("ne", _counted(program, op, invert_condition(t, passed)), t.integer(0, "i32"))
    # The parts are in the order of their elements.
    division = Division(layout.shape, "i1", program.arena.free, ())
    rows, length = division.rows, prod(layout.shape) >> division.cut.bit_count()

    def write_part(part: int) -> None:
        with program.arena.borrow(op, rows.bytes) as low:
            start = rows.start(program, low)
            group.barrier()
            division.write(program, layout, part, start, conditions)
            group.barrier()

            def write_one(regs: Sequence[Reg]) -> Sequence[Reg]:
                (condition,) = rows.read_at(program, regs, start)
                index = t.binary("arith.addi", regs[0], t.integer(part, "i32"))
                t.do_when(
                    invert_condition(t, condition),
                    lambda: _write(program, OF_FAILURES, _claimed(program, OF_FAILURES, 1), site, index, None),
                )
                return [t.binary("arith.addi", regs[0], t.integer(1, "i32"))]

            def in_order() -> None:
                t.repeat(t.integer(length, "i32"), [t.integer(0, "i32")], write_one)

            t.do_when(first_invocation(program), in_order)

    def write_all() -> None:
        for part in division.parts:
            write_part(part)

    t.do_when(failed, write_all)
    program.values[op.result] = [invert_condition(t, failed)]


def _check_first(program: SimtProgram, op: tile.CheckOp, layout: Layout) -> None:
    """Write the record of the first element for which a condition is false, if there is one.

    No barrier is under a condition: PoCL 6 duplicates what follows such a barrier, so compiling never ends for a kernel
    with several checks.
    """
    t, group = program.code, program.group
    assert op.value is not None
    most = t.integer(prod(layout.shape), "i32")
    indices, conditions, values = program.indices(layout), program.values[op.condition], program.values[op.value]
    number = most
    for register in layout.distinct:
        index = indices[register]
        before = t.binary("arith.andi", invert_condition(t, conditions[register]), t.compare("ult", index, number))
        number = t.select(before, index, number)
    with program.arena.borrow(op, 4) as low:
        place = t.integer(low // 4, "i32")
        group.barrier()
        t.do_when(first_invocation(program), lambda: group.write_shared(place, [most]))
        group.barrier()
        t.do_when(t.compare("ne", number, most), lambda: group.lower_shared(place, number))
        group.barrier()
        first = group.read_shared(place, "i32")[0]
    mine = t.binary("arith.andi", t.compare("eq", first, number), t.compare("ne", first, most))
    once = owner_predicate(program, layout)
    if once is not None:
        mine = t.binary("arith.andi", mine, once)

    def write() -> None:
        value = t.integer(0, "i64")
        for register in layout.distinct:
            value = t.select(t.compare("eq", indices[register], first), values[register], value)
        _write(program, OF_FAILURES, _claimed(program, OF_FAILURES, 1), op.site.value.data, first, value)

    t.do_when(mine, write)
    program.values[op.result] = [t.compare("eq", first, most)]


def _shared_word(program: SimtProgram, op: Operation, compute: Callable[[], Reg]) -> Reg:
    """Return an i32 that the first invocation computes, in all invocations."""
    group = program.group
    with program.arena.borrow(op, 4) as low:
        place = program.code.integer(low // 4, "i32")
        group.barrier()
        program.code.do_when(first_invocation(program), lambda: group.write_shared(place, [compute()]))
        group.barrier()
        return group.read_shared(place, "i32")[0]


def _counted(program: SimtProgram, op: Operation, condition: Reg) -> Reg:
    """Return in how many invocations a condition holds."""
    group, t = program.group, program.code
    with program.arena.borrow(op, 4) as low:
        place = t.integer(low // 4, "i32")
        group.barrier()
        t.do_when(first_invocation(program), lambda: group.write_shared(place, [t.integer(0, "i32")]))
        group.barrier()
        t.do_when(condition, lambda: group.count_shared(place))
        group.barrier()
        return group.read_shared(place, "i32")[0]


def _word(program: SimtProgram, number: int) -> Reg:
    """Return the address of a word of the log."""
    assert program.log is not None
    t = program.code
    return t.binary("arith.addi", program.log, t.integer(number * _WORD_BYTES, "i64"))


def _claimed(program: SimtProgram, words: tuple[int, int, int], count: int) -> Reg:
    """Take places for records; return the first one's number, an i32: the lower half of the log's word."""
    return program.group.atomic("AtomicIAdd", _word(program, words[0]), program.code.integer(count, "i32"))


def _write(
    program: SimtProgram, words: tuple[int, int, int], number: Reg, site: int, index: Reg, value: Reg | None
) -> None:
    """Write a record, if the log has a place of this number."""
    t, group = program.code, program.group
    _, limit, first = words
    (capacity,) = group.load(_word(program, limit), "i32", 1, 8)

    def write() -> None:
        ids = [as_word(t, group.program_id(axis)) for axis in range(3)]
        at = t.binary("arith.muli", t.cast("arith.extui", number, "i64"), t.integer(RECORD * _WORD_BYTES, "i64"))
        at = t.binary("arith.addi", _word(program, first), at)
        for place, word in enumerate(record_words(t, site, index, ids, value)):
            group.store(t.binary("arith.addi", at, t.integer(place * _WORD_BYTES, "i64")), [word], _WORD_BYTES)

    t.do_when(t.compare("ult", number, capacity), write)
