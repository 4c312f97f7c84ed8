"""Computes what is stored of a product where the product is: in the invocations that hold it.

Where the device's description says which invocation holds which element of a cooperative matrix, these elements are
registers of a layout like any other, at no cost. So what makes a product a stored tile (conversions, activations,
masks, a row or a column that is added) is computed in that layout, and the addresses and masks of the store, too.
Nothing passes through workgroup memory, and no barrier is written.

What a chain needs besides the product is computed again in that layout, if that is cheap: numbers, ranges, arithmetic
of them, loads of a row or a column. What cannot be, such as a reduction's result, is converted if it is a row or a
column; a chain that needs more stays in Triton's layouts.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.builder import Builder
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntAttr, ModuleOp, NoneAttr, TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.transforms.dead_code_elimination import dce

from ....ir import tt, ttg
from ....ir.arith import ConstantOp
from ....ir.build import in_layout
from ....ir.elements import extents, index_mapping, is_same
from ....ir.facts import first_number
from ....ops.elementwise import is_costly, is_elementwise
from ..layouts import Layout


def encode(layout: Layout) -> ttg.LinearLayout:
    """Return the encoding of tensors that means a layout."""

    def vectors(bases: Sequence[int]) -> ArrayAttr[Attribute]:
        return ArrayAttr([ArrayAttr([IntAttr(at) for at in layout.position(basis)]) for basis in bases])

    parts = {"register": layout.registers, "lane": layout.lanes, "warp": layout.warps}
    return ttg.LinearLayout(DictionaryAttr({name: vectors(bases) for name, bases in parts.items()}))


def encoding_of(value: SSAValue) -> Attribute:
    """Return the encoding of a tile, or nothing for a scalar."""
    return value.type.encoding if isinstance(value.type, TensorType) else NoneAttr()


def store_from_registers(function: tt.FuncOp, held: dict[SSAValue, Layout]) -> None:
    """Write stores of what is computed from values in the layouts in which invocations hold these.

    Args:
        held: the values that are kept in matrices, and who holds their elements.
    """
    changed = False
    for layout in dict.fromkeys(held.values()):
        seeds = [value for value, own in held.items() if own == layout]
        changed |= _Chains(function, seeds, encode(layout)).write()
    module = function.parent_op()
    if changed and isinstance(module, ModuleOp):
        dce(module)


class _Chains:
    """What is computed from values that have one layout, on the way to stores."""

    def __init__(self, function: tt.FuncOp, seeds: Sequence[SSAValue], encoding: Attribute) -> None:
        self._encoding, self._seeds = encoding, set(seeds)
        # Values by their encoding: whether they can be computed in it, and those that were.
        self._can: dict[tuple[SSAValue, Attribute], bool] = {}
        self._made: dict[tuple[SSAValue, Attribute], SSAValue] = {}
        self._reached: set[SSAValue] = set(seeds)
        self._stores: list[tt.StoreOp] = []
        for op in function.body.walk():
            if not any(operand in self._reached for operand in op.operands):
                continue
            if isinstance(op, tt.StoreOp):
                self._stores.append(op)
            elif (is_elementwise(op) or is_same(op)) and len(op.results) == 1:
                self._reached.add(op.results[0])

    def write(self) -> bool:
        """Write the stores again that can be; return whether there were any."""
        found = [op for op in self._stores if op.value in self._reached and self._can_all(op, self._encoding)]
        for op in found:
            Rewriter.insert_op(self._copied(op, self._encoding), InsertPoint.before(op))
            Rewriter.erase_op(op)
        return bool(found)

    def _can_all(self, op: Operation, encoding: Attribute) -> bool:
        return all(self._can_be(operand, encoding) for operand in op.operands)

    def _can_be(self, value: SSAValue, encoding: Attribute) -> bool:
        """Return whether a tile can be had in a layout; a scalar can."""
        if not isinstance(value.type, TensorType):
            return True
        key = value, encoding
        if key not in self._can:
            self._can[key] = self._is_found(value, encoding)
        return self._can[key]

    def _is_found(self, value: SSAValue, encoding: Attribute) -> bool:
        return value in self._seeds or self._is_computed(value, encoding) or is_line(value)

    def _is_computed(self, value: SSAValue, encoding: Attribute) -> bool:
        op = value.owner
        if isinstance(op, Block) or len(op.results) != 1:
            return False
        if first_number(op) is not None or (isinstance(op, ConstantOp) and op.splat is not None):
            return True
        if value not in self._reached and not is_line(value) and _is_worth_keeping(op):
            return False
        if is_elementwise(op) or _is_plain_load(op):
            return self._can_all(op, encoding)
        source = _source_encoding(value, encoding)
        return source is not None and self._can_be(op.operands[0], source)

    def _get(self, value: SSAValue, encoding: Attribute) -> SSAValue:
        """Return a tile in a layout; a scalar as it is."""
        key = value, encoding
        if not isinstance(value.type, TensorType) or encoding_of(value) == encoding:
            return value
        if key not in self._made:
            self._made[key] = self._write(value, encoding)
        return self._made[key]

    def _write(self, value: SSAValue, encoding: Attribute) -> SSAValue:
        op = value.owner
        here = Builder(InsertPoint.at_start(op) if isinstance(op, Block) else InsertPoint.after(op))
        if isinstance(op, Block) or value in self._seeds or not self._is_computed(value, encoding):
            return in_layout(here, value, _with_encoding(value, encoding))
        if is_same(op):
            return self._get(op.operands[0], encoding)
        return here.insert(self._copied(op, encoding)).results[0]

    def _copied(self, op: Operation, encoding: Attribute) -> Operation:
        """Return an operation whose operands are in a layout, or in what it makes of one."""
        of = encoding
        if op.results and not is_elementwise(op) and not isinstance(op, tt.LoadOp):
            of = _source_encoding(op.results[0], encoding) or encoding
        made = op.clone({operand: self._get(operand, of) for operand in op.operands})
        for result in made.results:
            Rewriter.replace_value_with_new_type(result, _with_encoding(result, encoding))
        made.location = op.location
        return made


def _with_encoding(value: SSAValue, encoding: Attribute) -> TensorType[Attribute]:
    assert isinstance(value.type, TensorType)
    return TensorType(value.type.element_type, value.type.get_shape(), encoding)


def is_line(value: SSAValue) -> bool:
    """Return whether a tile is a row or a column."""
    shape = extents(value)
    return prod(shape) == max(shape, default=1)


def _is_worth_keeping(op: Operation) -> bool:
    """Return whether to compute an operation on a whole tile once."""
    return is_costly(op) or (isinstance(op, tt.LoadOp) and len(list(op.result.uses)) > 1)


def _is_plain_load(op: Operation) -> bool:
    return isinstance(op, tt.LoadOp) and not (op.is_volatile or op.boundary_check)


def _source_encoding(value: SSAValue, encoding: Attribute) -> Attribute | None:
    """Return the layout of an operation's operand from that of its result; None if it does more than to repeat."""
    of = index_mapping(value)
    if of is None or not of.keeps_order:
        return None
    kept = [d for d in of.index if isinstance(d, int)]
    if len(kept) < len(of.index):
        return None
    for dimension in reversed(range(len(of.shape))):
        if dimension not in kept:
            encoding = ttg.SliceLayout(DictionaryAttr({"dim": IntAttr(dimension), "parent": encoding}))
    return encoding
