"""Effects of operations: everything that moves, repeats or removes operations asks for them, never for a class."""

from __future__ import annotations

import pytest
from foundry_core.errors import UnsupportedOperation
from foundry_core.footprint import Footprints, Span
from foundry_core.front.structured import kernel
from foundry_core.front.writes import write_set
from foundry_core.ir import tile
from foundry_core.ir.effects import effects, is_pure, is_sink, reads, writes
from foundry_core.ir.parse import DIALECTS, parse
from foundry_core.mapping.base.plan import BufferPlan
from foundry_core.mapping.base.target import WorkGroupTarget, WorkItemTarget
from foundry_core.mapping.workgroup.program import lower_work_group as lower_to_work_group
from foundry_core.mapping.workitem.program import lower_work_item
from xdsl.builder import Builder
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, result_def, traits_def
from xdsl.rewriter import InsertPoint
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

# p[0:64] is read, then q[0:64] is set to it; %q is another argument.
STRUCTURED = """
tt.func public @k(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %axis = tile.affine %c1
  %x = tile.load %p[%c0, %axis] : !tt.ptr<f32> -> tensor<64xf32>
  tile.store %x to %q[%c0, %axis] : tensor<64xf32> to !tt.ptr<f32>
  tt.return
}
"""


@irdl_op_definition
class ExchangeOp(tile.Access):
    """An atomic operation as a developer may add it: it reads and writes, and only its traits say so."""

    name = "test.exchange"
    value = operand_def()
    result = result_def()
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    @property
    def elements(self) -> SSAValue:
        return self.result


@irdl_op_definition
class SilentOp(tile.Access):
    """An operation whose author forgot to declare its effects."""

    name = "test.silent"

    @property
    def elements(self) -> SSAValue:
        return self.base


def first(module: Operation, kind: type[Operation]) -> Operation:
    return next(op for op in module.walk() if isinstance(op, kind))


def exchanged(argument: str) -> tuple[ModuleOp, tile.LoadOp]:
    """Return the kernel with an exchange between load and store, through one of its arguments, and the load."""
    module = parse(f"module {{ {STRUCTURED} }}")
    load = first(module, tile.LoadOp)
    assert isinstance(load, tile.LoadOp)
    base = kernel(module).body.block.args["pq".index(argument)]
    access: list[SSAValue | list[SSAValue] | None] = [load.result, base, load.start, list(load.axes), None, [], None]
    Builder(InsertPoint.after(load)).insert(ExchangeOp.build(operands=access, result_types=[load.result.type]))
    return module, load


def declared(op: type[Operation]) -> bool:
    """Return whether an operation class declares its effects. It is created without operands, results and regions."""
    try:
        effects(op.create())
    except UnsupportedOperation:
        return False
    return True


# xDSL's scf declares no effects for a region that runs once. Triton does not generate it.
UNDECLARED = ["scf.execute_region"]


def test_every_operation_that_kernels_are_written_in_declares_its_effects() -> None:
    own = {op for dialect in DIALECTS if dialect.name != "builtin" for op in dialect.operations}
    special = {op for op in own if op.name == "tt.load"}  # it reads its attributes
    assert sorted(op.name for op in own - special if not declared(op)) == UNDECLARED


def test_an_operation_without_declared_effects_is_refused_by_name_and_line() -> None:
    region = 'scf.execute_region { scf.yield } loc("mine.py":7:1)'
    with pytest.raises(UnsupportedOperation, match=r"scf.execute_region at mine.py:7 .*effects"):
        parse(f"module {{ tt.func public @k() {{ {region}\n tt.return }} }}")


def test_effects_of_a_region_are_those_of_its_operations() -> None:
    module = parse(f"module {{ {STRUCTURED} }}")
    assert (reads(module), writes(module), is_pure(module)) == (True, True, False)
    load, store = first(module, tile.LoadOp), first(module, tile.StoreOp)
    assert (reads(load), writes(load), is_sink(load)) == (True, False, False)
    assert (reads(store), writes(store), is_sink(store)) == (False, True, True)


def test_a_promise_or_a_barrier_is_an_effect_and_changes_no_bytes() -> None:
    lines = ["tt.func public @k(%c: i1) {", "llvm.intr.assume %c : i1", "gpu.barrier", "tt.return", "}"]
    module = parse("\n".join(["module {", *lines, "}"]))
    assert not is_pure(module) and not reads(module) and not writes(module)
    assert is_sink(first(module, tile.KeepOp))


@pytest.mark.parametrize(("volatile", "pure_reads"), [("", True), (" {isVolatile = true}", False)])
def test_a_volatile_load_is_an_effect_beyond_reading(volatile: str, pure_reads: bool) -> None:
    module = parse(
        f"module {{ tt.func public @k(%p: !tt.ptr<f32>) {{ %x = tt.load %p{volatile} : !tt.ptr<f32> tt.return }} }}"
    )
    load = kernel(module).body.block.first_op
    assert load is not None
    assert reads(load) and not writes(load) and is_sink(load) is not pure_reads


@pytest.mark.parametrize("argument", ["p", "q"])
def test_a_load_is_not_moved_behind_an_operation_that_writes(argument: str) -> None:
    untouched = parse(f"module {{ {STRUCTURED} }}")
    assert not BufferPlan(kernel(untouched).body.block).stored
    module, load = exchanged(argument)
    assert BufferPlan(kernel(module).body.block).stored == {load.result}


def test_a_load_is_not_moved_behind_a_wait_for_another_program() -> None:
    wait = "%w = tile.volatile_load %q[%c0] : !tt.ptr<f32> -> f32\n"
    body = kernel(parse(f"module {{ {STRUCTURED.replace('tile.store', wait + 'tile.store')} }}")).body.block
    assert BufferPlan(body).stored == {op.result for op in body.ops if isinstance(op, tile.LoadOp)}


@pytest.mark.parametrize(("argument", "expected"), [("p", [0, 1]), ("q", [1])])
def test_argument_that_an_operation_writes_through_is_in_the_write_set(argument: str, expected: list[int]) -> None:
    assert write_set(exchanged(argument)[0]).by_any == expected


def test_footprint_has_what_an_operation_reads_and_what_it_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    module, _ = exchanged("p")
    monkeypatch.setattr("foundry_core.footprint.read_structured", lambda text: module)
    (found,) = Footprints("").compute([0, 0], (1, 1, 1), [0, 1])
    assert (found[0].reads, found[0].writes) == (Span(0, 256), Span(0, 256))
    assert (found[1].reads, found[1].writes) == (None, Span(0, 256))


def test_an_operation_with_effects_that_a_mapping_does_not_write_is_refused() -> None:
    module, _ = exchanged("q")
    with pytest.raises(UnsupportedOperation, match=r"test\.exchange"):
        lower_work_item(module, WorkItemTarget())
    with pytest.raises(UnsupportedOperation, match=r"test\.exchange"):
        lower_to_work_group(module, WorkGroupTarget())


def test_an_operation_that_forgot_its_effects_is_refused_wherever_they_are_asked() -> None:
    module = parse(f"module {{ {STRUCTURED} }}")
    load = first(module, tile.LoadOp)
    assert isinstance(load, tile.LoadOp)
    access: list[SSAValue | list[SSAValue] | None] = [load.base, load.start, list(load.axes), None, [], None]
    Builder(InsertPoint.after(load)).insert(SilentOp.build(operands=access))
    for ask in (reads, writes, is_pure):
        with pytest.raises(UnsupportedOperation, match=r"test\.silent"):
            ask(module)
