"""Operations that move elements: one that only its trait describes works everywhere, and no pass names any of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import foundry_core
import pytest
from foundry_core.codegen.pipeline import read_kernel, to_mlir, to_structured, to_tasklet_mlir, to_work_group_mlir
from foundry_core.emit.mlir import Reg
from foundry_core.footprint import Footprints, Span
from foundry_core.front.structured import kernel
from foundry_core.ir.elements import ByDimension, Decomposition, ElementMap, extents
from foundry_core.ir.parse import DIALECTS, parse, read_structured
from foundry_core.mapping.base.buffers import collect
from foundry_core.mapping.base.emission import tile_value
from foundry_core.mapping.base.plan import BufferPlan
from foundry_core.mapping.base.space import Point
from foundry_core.mapping.base.tiles import Tiles
from foundry_core.mapping.simt.program import SimtProgram, invocation_statement
from foundry_core.mapping.simt.tiles import Rows
from foundry_core.mapping.tasklet.split import SplitKernel
from foundry_core.ops.numeric import element_name, in_register
from test_ir import simt
from xdsl.dialects.builtin import IntegerAttr, IntegerType, TensorType
from xdsl.ir import Dialect
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

SOURCES = Path(next(iter(foundry_core.__path__)))
# A mapping writes the operations whose elements it cannot find by their map; dialects/ defines all of them.
EMITTERS = {"mapping/base/operations/moves.py", "mapping/simt/statements/moves.py"}


@irdl_op_definition
class FooOp(IRDLOperation):
    """The tile with its elements in reverse along one axis, as a developer may add it."""

    name = "tt.foo"
    src = operand_def(TensorType)
    axis = prop_def(IntegerAttr[IntegerType])
    result = result_def(TensorType)
    traits = traits_def(
        Pure(),
        ByDimension(lambda op: [None if d == op.axis.value.data else d for d in range(len(extents(op.src)))]),
    )
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$src attr-dict `:` type($src) `->` type($result)"


@tile_value(FooOp)
def _foo(tiles: Tiles, op: FooOp, point: Point, memo: Any) -> Reg:
    t, space, axis = tiles.text, tiles.space, op.axis.value.data
    last = t.integer(extents(op.src)[axis] - 1)

    def at(lane: int) -> Reg:
        index = [space.plus(i, t.integer(lane)) if d == point.lane else i for d, i in enumerate(point.index)]
        index[axis] = t.binary("arith.subi", last, index[axis])
        return tiles.evaluate(op.src, Point(tuple(index), 0, 1), memo)

    return at(0) if point.lanes == 1 else collect(t, point.lanes, in_register(element_name(op.result.type, op)), at)


@invocation_statement(FooOp)
def _foo_of_an_invocation(program: SimtProgram, op: FooOp) -> None:
    t, layout = program.code, program.layout(op.src)
    rows = Rows(layout.shape, program.values[op.src][0].elem)
    # Extents are powers of two: the last index minus i is i with all bits changed.
    (extent,) = layout.shape
    places = [
        t.binary("arith.xori", index, t.integer(extent - 1, "i32"))
        for index in program.indices(program.layout(op.result))
    ]
    with program.arena.borrow(op, rows.bytes) as first:
        start = rows.start(program, first)
        rows.write(program, layout, start, program.values[op.src])
        program.values[op.result] = rows.read_at(program, places, start)


# x is read through pointers that were reversed along the columns; its reverse is stored.
KERNEL = """
module { tt.func public @k(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>) {
  %c = arith.constant dense<8> : tensor<8x1xi32>
  %r = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
  %row = tt.expand_dims %r {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>
  %first = arith.muli %row, %c : tensor<8x1xi32>
  %firsts = tt.broadcast %first : tensor<8x1xi32> -> tensor<8x8xi32>
  %column = tt.expand_dims %r {axis = 0 : i32} : tensor<8xi32> -> tensor<1x8xi32>
  %columns = tt.broadcast %column : tensor<1x8xi32> -> tensor<8x8xi32>
  %at = arith.addi %firsts, %columns : tensor<8x8xi32>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<8x8x!tt.ptr<f32>>
  %qs = tt.splat %q : !tt.ptr<f32> -> tensor<8x8x!tt.ptr<f32>>
  %from = tt.addptr %ps, %at : tensor<8x8x!tt.ptr<f32>>, tensor<8x8xi32>
  FROM
  %x = tt.load %from_ : tensor<8x8x!tt.ptr<f32>>
  %y = tt.foo %x {axis = 1 : i32} : tensor<8x8xf32> -> tensor<8x8xf32>
  %z = arith.addf %x, %y : tensor<8x8xf32>
  %to = tt.addptr %qs, %at : tensor<8x8x!tt.ptr<f32>>, tensor<8x8xi32>
  tt.store %to, %z : tensor<8x8x!tt.ptr<f32>>
  tt.return } }
"""
REVERSED = "%from_ = tt.foo %from {axis = 1 : i32} : tensor<8x8x!tt.ptr<f32>> -> tensor<8x8x!tt.ptr<f32>>"
STRAIGHT = KERNEL.replace("FROM\n", "\n").replace("%from_", "%from")


@pytest.fixture(autouse=True)
def _foo_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foundry_core.ir.parse.DIALECTS", (*DIALECTS, Dialect("foo", [FooOp], [])))


def test_front_reads_pointers_through_an_operation_that_only_its_trait_describes() -> None:
    assert "tile.load %p[" in to_structured(STRAIGHT)
    # No sum of dimensions: the pointers themselves are the base.
    assert re.search(
        r"tile.load %from_\[.*\] : tensor<8x8x!tt.ptr<f32>> -> ", to_structured(KERNEL.replace("FROM", REVERSED))
    )


@pytest.mark.parametrize("text", [STRAIGHT, KERNEL.replace("FROM", REVERSED)])
def test_footprint_knows_that_elements_are_only_moved(text: str) -> None:
    (found,) = Footprints(to_structured(text)).compute([0, 0], (1, 1, 1), [0, 1])
    assert (found[0].reads, found[1].writes) == (Span(0, 256), Span(0, 256))


def test_checked_mode_moves_the_index_as_the_pointers_move() -> None:
    checked = read_kernel(KERNEL.replace("FROM", REVERSED), check=True).text
    assert re.search(r"tt.foo %\w+ {axis = 1 : i32} : tensor<8x8xi64> -> tensor<8x8xi64>", checked)
    assert "tile.distance" not in checked


def test_plan_computes_what_is_moved_late() -> None:
    body = kernel(read_structured(to_structured(STRAIGHT))).body.block
    moving = next(op for op in body.ops if isinstance(op, FooOp))
    assert moving.result not in BufferPlan(body).stored


def test_rows_of_a_program_are_split_across_tasklets_but_not_the_reversed_dimension() -> None:
    # The columns have 8 elements that are contiguous, the rows 8 that are not: only these can be one slice each.
    assert SplitKernel(parse(to_structured(STRAIGHT))).most_parts == 8
    columns = STRAIGHT.replace("tt.foo %x {axis = 1", "tt.foo %x {axis = 0")
    assert SplitKernel(parse(to_structured(columns))).most_parts == 1


@pytest.mark.parametrize("lower", [to_mlir, to_work_group_mlir, lambda text: to_tasklet_mlir(text).text])
def test_every_mapping_of_structured_form_writes_it_by_its_emitter(lower: Any) -> None:
    text = lower(to_structured(STRAIGHT))
    last = re.search(r"(%c\d+) = arith.constant 7 : i(?:32|64)\n", text)
    assert last is not None and re.search(rf"arith.subi {last[1]}, %", text)
    assert "tt.foo" not in text


def test_an_invocation_writes_it_by_its_emitter() -> None:
    layout = "#ttg.blocked<{sizePerThread = [2], threadsPerWarp = [8], warpsPerCTA = [2], order = [0]}>"
    tile = "tensor<64xf32, #blocked>"
    pointers = "tensor<64x!tt.ptr<f32>, #blocked>"
    text = f"""#blocked = {layout}
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 2 : i32, ttg.target = "hip:gfx942"}} {{
  tt.func public @k(%p: !tt.ptr<f32>) {{
    %r = tt.make_range {{end = 64 : i32, start = 0 : i32}} : tensor<64xi32, #blocked>
    %ps = tt.splat %p : !tt.ptr<f32> -> {pointers}
    %at = tt.addptr %ps, %r : {pointers}, tensor<64xi32, #blocked>
    %x = tt.load %at : {pointers}
    %y = tt.foo %x {{axis = 0 : i32}} : {tile} -> {tile}
    tt.store %at, %y : {pointers}
    tt.return }} }}"""
    assert "BitwiseXor" in simt(text)


def names(tree: ast.AST) -> Sequence[str]:
    """Return what a module calls classes: attributes of modules, and names that it imports."""
    attributes = [node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    imported = [name.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for name in node.names]
    return [*attributes, *imported]


def test_no_pass_names_an_operation_that_moves_elements() -> None:
    moving = {
        op.__name__
        for dialect in DIALECTS
        for op in dialect.operations
        if any(op.has_trait(trait) for trait in (ElementMap, Decomposition))
    }
    assert {"TransOp", "BroadcastOp", "ReshapeOp", "SplatOp", "JoinOp", "ConvertLayoutOp"} <= moving
    named = {
        str(path.relative_to(SOURCES)): sorted(moving & set(names(ast.parse(path.read_text()))))
        for path in SOURCES.rglob("*.py")
        if path.parent.name != "ir"
    }
    found = {path: classes for path, classes in named.items() if classes and path not in EMITTERS}
    assert not found, f"ask ir/elements.py for the map of these operations: {found}"
    assert all(named[path] for path in EMITTERS)


# Operations that declare what others must know of them (ir/facts.py, tile.reads_late): few modules name their classes.
WITH_FACTS = ("tt.AddPtrOp", "tt.DotOp", "tt.MakeRangeOp", "tt.ReduceOp", "tile.LoadOp")
MOST = 4


@pytest.mark.parametrize("name", WITH_FACTS)
def test_an_operation_with_facts_is_named_in_few_modules(name: str) -> None:
    inside = SOURCES / "ir"
    naming = sorted(
        str(path.relative_to(SOURCES))
        for path in SOURCES.rglob("*.py")
        if path.parent != inside and re.search(rf"\b{re.escape(name)}\b", path.read_text())
    )
    assert naming and len(naming) <= MOST, f"ask for a fact instead of the class, or declare another one: {naming}"
