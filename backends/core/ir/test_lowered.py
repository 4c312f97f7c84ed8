"""What holds for every row of the table of operations, and for an operation that is in no table."""

from __future__ import annotations

import re

import pytest
from foundry_core.codegen.pipeline import to_mlir, to_tasklet_mlir
from foundry_core.errors import UnsupportedOperation
from foundry_core.front.structured import kernel
from foundry_core.ir import tile
from foundry_core.ir.parse import parse
from foundry_core.mapping.base.plan import BufferPlan
from foundry_core.mapping.base.target import WorkItemTarget
from foundry_core.mapping.workitem.program import lower_work_item
from foundry_core.ops.elementwise import ELEMENTWISE, ROWS, SYMBOLS, Row
from xdsl.builder import Builder
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.rewriter import InsertPoint
from xdsl.traits import Pure


def structured(body: str) -> str:
    """Return a kernel with pointers %p, %q and %o, %x = the 64 floats of %p, and the given lines."""
    return f"""module {{ tt.func public @k(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %o: !tt.ptr<f32>) {{
      %c0 = arith.constant 0 : i64
      %c1 = arith.constant 1 : i64
      %axis = tile.affine %c1
      %x = tile.load %p[%c0, %axis] : !tt.ptr<f32> -> tensor<64xf32>
      {body}
      tt.return }} }}"""


def store(value: str, pointer: str) -> str:
    return f"tile.store {value} to {pointer}[%c0, %axis] : tensor<64xf32> to !tt.ptr<f32>\n"


def stored_twice(function: str) -> str:
    """Return a kernel that stores a function of %f to two places; %f is cheap to compute again."""
    numbers = (
        "%i = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>\n"
        "%f = arith.sitofp %i : tensor<64xi32> to tensor<64xf32>\n"
    )
    return structured(f"{numbers}%y = {function} : tensor<64xf32>\n{store('%y', '%q')}{store('%y', '%o')}")


def body_of(text: str) -> Block:
    return kernel(parse(text)).body.block


# Functions of one argument by their OpenCL names, without those that are lowered to two calls.
COSTLY = {
    row.opencl: row.operation.name
    for row in ROWS
    if row.opencl and row.is_costly and row.opencl not in ("pow", "atan2", "sin", "cos", "tan")
}


@pytest.mark.parametrize("name", COSTLY)
def test_a_costly_function_with_two_uses_is_computed_once(name: str) -> None:
    text = stored_twice(f"{COSTLY[name]} %f")
    assert len(re.findall(rf"llvm.call .*_ocl_{name}D", to_mlir(text))) == 1
    assert len(BufferPlan(body_of(text)).stored) == 1


@pytest.mark.parametrize(
    ("function", "written"),
    [
        ("math.atan2", "llvm.call .*_ocl_atan2D"),
        ("math.powf", "llvm.call .*_ocl_powD"),
        ("arith.remf", "= arith.remf "),
    ],
)
def test_a_costly_function_of_two_arguments_is_computed_once(function: str, written: str) -> None:
    text = stored_twice(f"{function} %f, %f")
    assert len(re.findall(written, to_mlir(text))) == 1
    assert len(BufferPlan(body_of(text)).stored) == 1


def test_a_load_alone_with_two_uses_is_kept_and_cheap_arithmetic_on_it_is_not() -> None:
    text = structured(f"%y = math.floor %x : tensor<64xf32>\n{store('%y', '%q')}{store('%x', '%o')}")
    (kept,) = BufferPlan(body_of(text)).stored
    assert isinstance(kept.owner, tile.LoadOp)


@pytest.mark.parametrize("row", [row for row in ROWS if row.opencl], ids=lambda row: row.opencl)
def test_a_dpu_has_a_function_of_its_own_for_every_one_of_a_library(row: Row) -> None:
    name = row.operation.name
    operands = "%x, %x" if name in ("math.atan2", "math.powf", "math.copysign") else "%x"
    text = structured(f"%y = {name} {operands} : tensor<64xf32>\n{store('%y', '%q')}")
    assert f'llvm.call @"__foundry_{row.opencl}_f32"' in to_tasklet_mlir(text).text.replace("  ", " ")


PRODUCT = """module { tt.func public @k(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %o: !tt.ptr<f32>) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c64 = arith.constant 64 : i64
  %zero = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
  %rows = tile.affine %c64
  %columns = tile.affine %c1
  %a = tile.load %p[%c0, %rows, %columns] : !tt.ptr<f32> -> tensor<64x64xf32>
  %b = tile.load %q[%c0, %rows, %columns] : !tt.ptr<f32> -> tensor<64x64xf32>
  %c = tt.dot %a, %b, %zero : tensor<64x64xf32> * tensor<64x64xf32> -> tensor<64x64xf32>
  tile.store %c to %o[%c0, %rows, %columns] : tensor<64x64xf32> to !tt.ptr<f32>
  tt.return } }"""


@pytest.mark.parametrize(
    ("described", "columns"),
    [
        (WorkItemTarget(16), 2),
        (WorkItemTarget(32, llvm_intrinsics=True), 2),
        (WorkItemTarget(64, llvm_intrinsics=True, vector_registers=32), 4),
    ],
)
def test_the_sums_of_a_product_fit_the_registers_that_a_device_has(described: WorkItemTarget, columns: int) -> None:
    text = to_mlir(PRODUCT, described)
    # Registers that a step along K carries, for each height of a register tile: 64 rows are 9 times 6, and twice 5.
    sums = [carried.count(" = ") for carried in re.findall(r"iter_args\((.*?)\) ->", text)]
    assert sums == [6 * columns, 5 * columns]
    # Besides the sums, a step needs a row of b and one element of a.
    assert max(sums) + columns + 1 <= described.vector_registers
    # LLVM keeps a vector of 64 bytes in one register only if a function takes one.
    assert ("whole.v16f32" in text) == (described.vector_bytes == 64)


def test_a_product_turns_an_operand_that_is_contiguous_along_the_other_dimension_in_registers() -> None:
    turned = PRODUCT.replace("%q[%c0, %rows, %columns]", "%q[%c0, %columns, %rows]")
    text = to_mlir(turned, WorkItemTarget(16))
    assert "vector.extract" not in text
    # Of squares of 4 by 4, two rounds exchange two pairs of rows each.
    assert text.count("vector.shuffle") == 8


def test_f16_is_converted_by_instructions_where_the_device_has_them() -> None:
    narrow = re.sub(r"(%[ab] = .*)f32>$", r"\1f16>", PRODUCT, flags=re.MULTILINE)
    halves = re.sub(r"tensor<64x64xf32> (?=\* )|(?<=\* )tensor<64x64xf32>", "tensor<64x64xf16> ", narrow)
    halves = halves.replace("!tt.ptr<f32> -> tensor<64x64xf16>", "!tt.ptr<f16> -> tensor<64x64xf16>")
    halves = halves.replace("%p: !tt.ptr<f32>, %q: !tt.ptr<f32>", "%p: !tt.ptr<f16>, %q: !tt.ptr<f16>")
    for has in (False, True):
        text = to_mlir(halves, WorkItemTarget(32, llvm_intrinsics=True, converts_f16=has))
        assert ("x86.vcvtph2ps.256" in text) == has
        assert ("arith.shli" in text) != has


def test_no_operation_and_no_symbol_is_in_two_rows() -> None:
    assert len(ELEMENTWISE) == len(ROWS)
    assert len(SYMBOLS) == sum(2 * len(row.libdevice) + len(row.symbols) for row in ROWS)
    assert len({row.opencl for row in ROWS if row.opencl}) == sum(bool(row.opencl) for row in ROWS)


@irdl_op_definition
class MirrorOp(IRDLOperation):
    """An operation that is in a dialect, but in no table."""

    name = "test.mirror"
    src = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())


def test_an_operation_in_no_table_is_refused_by_name() -> None:
    module = parse(structured(store("%x", "%q")))
    (written,) = [op for op in module.walk() if isinstance(op, tile.StoreOp)]
    mirrored = MirrorOp.build(operands=[written.value], result_types=[written.value.type])
    Builder(InsertPoint.before(written)).insert(mirrored)
    written.operands[0] = mirrored.result
    with pytest.raises(UnsupportedOperation, match=r"test\.mirror"):
        lower_work_item(module, WorkItemTarget())
