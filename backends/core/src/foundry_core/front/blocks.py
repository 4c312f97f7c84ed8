"""Replaces block pointers (tl.make_block_ptr, tl.advance) by a pointer, numbers, and tensors of pointers.

Triton's own pass knows a block pointer by where it was made. If a loop exchanges two of them, it reads through the
wrong one; if a `while` carries one, or the ways of an `if` make different ones, it ends the process. Here a block
pointer is a tuple of scalars (base, shape, strides and offsets), and control flow carries those that change.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.builder import Builder
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, PackableType, TensorType, i32, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from ..errors import unsupported
from ..ir import tt
from ..ir.arith import CmpiOp, ConstantOp, ExtSIOp
from ..ir.build import advance, broadcast, expand_dims, like, numbers, splat
from .scalars import constant_value

_SLT, _SGE = 2, 5
_NAN = 2


@dataclass(frozen=True)
class _Pointer:
    """A block pointer: the tile's type, and base, shape, strides and offsets, all but the base in i64."""

    tile: TensorType[Attribute]
    parts: tuple[SSAValue, ...]

    @property
    def rank(self) -> int:
        return (len(self.parts) - 1) // 3


def replace_block_pointers(function: tt.FuncOp) -> None:
    """Rewrite a kernel of one block without block pointers.

    Raises:
        UnsupportedOperation: an operation takes a block pointer that has no meaning for it.
    """
    if not any(isinstance(op, tt.MakeTensorPtrOp) for op in function.walk()):
        return
    old = function.body.block
    new = Block(arg_types=[argument.type for argument in old.args])
    writer = _Writer()
    for before, after in zip(old.args, new.args, strict=True):
        after.name_hint = before.name_hint
        writer.values[before] = after
    writer.copy(old, new)
    function.body.detach_block(old)
    function.body.add_block(new)


class _Writer:
    """Copies blocks; `values` and `pointers` have what the old values became."""

    def __init__(self) -> None:
        self.values: dict[SSAValue, SSAValue] = {}
        self.pointers: dict[SSAValue, _Pointer] = {}

    def copy(self, block: Block, into: Block) -> None:
        builder = Builder(InsertPoint.at_end(into))
        for op in block.ops:
            match op:
                case tt.MakeTensorPtrOp():
                    values = [_wide(self._new(value), builder) for value in (*op.shape, *op.strides, *op.offsets)]
                    self.pointers[op.result] = _Pointer(_tile(op.result.type), (self._new(op.base), *values))
                case tt.AdvanceOp():
                    self._advance(op, builder)
                case tt.LoadOp() | tt.StoreOp() if op.ptr in self.pointers:
                    self._access(op, builder)
                case scf.ForOp() if _has_pointers(op):
                    self._for(op, builder)
                case scf.WhileOp() if _has_pointers(op):
                    self._while(op, builder)
                case scf.IfOp() if _has_pointers(op):
                    self._if(op, builder)
                case scf.YieldOp() | scf.ConditionOp():
                    builder.insert(type(op).create(operands=self._flat(op.operands), attributes=op.attributes))
                case _:
                    if any(_is_block_pointer(value) for value in (*op.operands, *op.results)):
                        raise unsupported(op, "a block pointer as its operand")
                    builder.insert(op.clone(self.values))

    def _new(self, value: SSAValue) -> SSAValue:
        return self.values.get(value, value)

    def _flat(self, values: Sequence[SSAValue]) -> list[SSAValue]:
        """Return what the values became, all parts of block pointers among them."""
        flat: list[SSAValue] = []
        for value in values:
            flat += self.pointers[value].parts if value in self.pointers else [self._new(value)]
        return flat

    def _types(self, values: Sequence[SSAValue]) -> list[Attribute]:
        types: list[Attribute] = []
        for value in values:
            types += _part_types(value.type) if _is_block_pointer(value) else [value.type]
        return types

    def _define(self, old: Sequence[SSAValue], new: Sequence[SSAValue]) -> None:
        """Note that old values became these, several for a block pointer."""
        rest = iter(new)
        for value in old:
            if _is_block_pointer(value):
                parts = tuple(next(rest) for _ in _part_types(value.type))
                self.pointers[value] = _Pointer(_tile(value.type), parts)
            else:
                self.values[value] = made = next(rest)
                made.name_hint = value.name_hint

    def _advance(self, op: tt.AdvanceOp, builder: Builder) -> None:
        pointer = self.pointers[op.ptr]
        kept, offsets = pointer.parts[: -pointer.rank], pointer.parts[-pointer.rank :]
        moved = [
            offset
            if constant_value(by) == 0
            else builder.insert(arith.AddiOp(offset, _wide(self._new(by), builder))).result
            for offset, by in zip(offsets, op.offsets, strict=True)
        ]
        self.pointers[op.result] = _Pointer(pointer.tile, (*kept, *moved))

    def _for(self, op: scf.ForOp, builder: Builder) -> None:
        initial = self._flat(op.iter_args)
        old = op.body.block
        body = Block(arg_types=[old.args[0].type, *(value.type for value in initial)])
        self._define(old.args, body.args)
        self.copy(old, body)
        end = body.last_op
        assert end is not None
        # What the loop does not change stays outside of it, where the analysis of addresses sees it.
        still = {i for i, value in enumerate(end.operands) if value is body.args[i + 1]}
        still &= _parts_among(op.iter_args)
        for i in still:
            body.args[i + 1].replace_all_uses_with(initial[i])
        moving = [i for i in range(len(initial)) if i not in still]
        end.operands = [end.operands[i] for i in moving]
        for i in sorted(still, reverse=True):
            body.erase_arg(body.args[i + 1])
        low, high, step = (self._new(bound) for bound in (op.lb, op.ub, op.step))
        made = scf.ForOp(low, high, step, [initial[i] for i in moving], Region(body))
        self._finish(op, made, builder)
        results = dict(zip(moving, made.results, strict=True))
        self._define(op.results, [results.get(i, value) for i, value in enumerate(initial)])

    def _if(self, op: scf.IfOp, builder: Builder) -> None:
        regions = []
        for region in op.regions:
            body = Block()
            if region.blocks:
                self.copy(region.block, body)
            else:
                body.add_op(scf.YieldOp())
            regions.append(Region(body))
        ends = [region.block.last_op for region in regions]
        assert ends[0] is not None and ends[1] is not None
        ways = list(zip(ends[0].operands, ends[1].operands, strict=True))
        chosen = [i for i, (a, b) in enumerate(ways) if a is not b or i not in _parts_among(op.results)]
        for end in ends:
            assert end is not None
            end.operands = [end.operands[i] for i in chosen]
        types = self._types(op.results)
        made = scf.IfOp(self._new(op.cond), [types[i] for i in chosen], regions[0], regions[1])
        self._finish(op, made, builder)
        results = dict(zip(chosen, made.results, strict=True))
        self._define(op.results, [results.get(i, a) for i, (a, _) in enumerate(ways)])

    def _while(self, op: scf.WhileOp, builder: Builder) -> None:
        regions = []
        for region in op.regions:
            old = region.block
            body = Block(arg_types=self._types(old.args))
            self._define(old.args, body.args)
            self.copy(old, body)
            regions.append(Region(body))
        made = scf.WhileOp(self._flat(op.arguments), self._types(op.results), *regions)
        self._finish(op, made, builder)
        self._define(op.results, made.results)

    @staticmethod
    def _finish(op: Operation, made: Operation, builder: Builder) -> None:
        made.attributes.update(op.attributes)
        made.location = op.location
        builder.insert(made)

    def _access(self, op: tt.LoadOp | tt.StoreOp, builder: Builder) -> None:
        pointer = self.pointers[op.ptr]
        base, rest, rank = pointer.parts[0], pointer.parts[1:], pointer.rank
        extents = pointer.tile.get_shape()
        checked = op.boundary_check.get_values() if op.boundary_check is not None else ()
        assert isinstance(base.type, tt.PointerType)
        address = splat(builder, base, extents)
        mask: SSAValue | None = None
        for d in range(rank):
            extent, stride, offset = rest[d], rest[rank + d], rest[2 * rank + d]
            index = _index(offset, d, extents, builder)
            step: SSAValue = index
            if constant_value(stride) != 1:
                step = builder.insert(arith.MuliOp(index, like(builder, stride, index.type))).result
            address = advance(builder, address, broadcast(builder, step, extents))
            if d in checked:
                inside = broadcast(builder, _inside(index, extent, builder), extents)
                mask = inside if mask is None else builder.insert(arith.AndIOp(mask, inside)).result
        masks = [] if mask is None else [mask]
        if isinstance(op, tt.StoreOp):
            made: Operation = tt.StoreOp.build(operands=[address, self._new(op.value), masks])
        else:
            other = [_padding(op, pointer.tile, builder)] if op.padding is not None and masks else []
            properties: dict[str, Attribute] = {} if op.is_volatile is None else {"isVolatile": op.is_volatile}
            made = tt.LoadOp.build(operands=[address, masks, other], result_types=[pointer.tile], properties=properties)
            self._define([op.result], made.results)
        made.location = op.location
        builder.insert(made)


def _is_block_pointer(value: SSAValue) -> bool:
    return isinstance(value.type, tt.PointerType) and isinstance(value.type.pointee, TensorType)


def _tile(type: Attribute) -> TensorType[Attribute]:
    assert isinstance(type, tt.PointerType) and isinstance(type.pointee, TensorType)
    return type.pointee


def _part_types(type: Attribute) -> list[Attribute]:
    tile = _tile(type)
    return [tt.PointerType(tile.element_type, IntegerAttr(1, 32)), *[i64] * (3 * len(tile.get_shape()))]


def _parts_among(values: Sequence[SSAValue]) -> set[int]:
    """Return the numbers of the flattened values that are parts of block pointers."""
    found: set[int] = set()
    position = 0
    for value in values:
        count = len(_part_types(value.type)) if _is_block_pointer(value) else 1
        if _is_block_pointer(value):
            found.update(range(position, position + count))
        position += count
    return found


def _has_pointers(op: Operation) -> bool:
    """Return whether an operation, or one in its regions, uses a block pointer."""
    return any(_is_block_pointer(value) for inner in op.walk() for value in (*inner.operands, *inner.results))


def _wide(value: SSAValue, builder: Builder) -> SSAValue:
    return value if value.type == i64 else builder.insert(ExtSIOp(value, i64)).result


def _index(offset: SSAValue, d: int, extents: Sequence[int], builder: Builder) -> SSAValue:
    """Write the indices of a tile along dimension d, with an extent of 1 along all others."""
    extent = extents[d]
    steps = numbers(builder, TensorType(i32, [extent]))
    wide = builder.insert(ExtSIOp(steps, TensorType(i64, [extent]))).result
    index: SSAValue = builder.insert(arith.AddiOp(splat(builder, offset, [extent]), wide)).result
    for axis in range(len(extents)):
        if axis != d:
            index = expand_dims(builder, index, axis)
    return index


def _inside(index: SSAValue, extent: SSAValue, builder: Builder) -> SSAValue:
    zero = builder.insert(ConstantOp.integer(0, index.type)).result
    low = builder.insert(CmpiOp(_SGE, index, zero)).result
    high = builder.insert(CmpiOp(_SLT, index, like(builder, extent, index.type))).result
    return builder.insert(arith.AndIOp(low, high)).result


def _padding(op: tt.LoadOp, tile: TensorType[Attribute], builder: Builder) -> SSAValue:
    """Write what stands where a load is outside: zeros, or NaN."""
    assert op.padding is not None
    bits = 0
    if op.padding.value.data == _NAN:
        bits = int.from_bytes(cast(PackableType[float], tile.element_type).pack([math.nan]), "little")
    return builder.insert(ConstantOp([bits], tile)).result
