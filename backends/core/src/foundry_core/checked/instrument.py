"""Adds checks to a kernel: each access gets a condition that holds where it stays inside of an array.

    %v = tt.load %p, %mask        becomes        %ok = LOW <= %index && %index < HIGH
                                                 %all = tile.check SITE of (!%mask || %ok) with %index
                                                 %v = tt.load %p, %mask && (%all || %ok)

A bad element is recorded and not accessed; the program goes on. An access without a mask gets one.

`%index` counts elements from the argument that the pointer comes from, in 64 bits: the sum of the offsets that the
kernel added. Where a pointer is not such a sum (a loop carries it, a branch chooses it), its distance from the argument
is the difference of two addresses. If it may come from several arguments, it must be inside of one of them.

The extents are arguments that are appended to the kernel's: for each pointer the first byte that belongs to its array
and the array's size, both in bytes, the first relative to the pointer (`extents.py`).

The pass works on TTIR and on TTGIR: what it writes has the layout of the pointers.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FixedBitwidthType,
    FunctionType,
    TensorType,
    i1,
    i64,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ..dialects import tile, tt, ttg
from ..dialects.arith import CmpiOp, ConstantOp, ExtSIOp
from ..errors import source_lines, unsupported
from ..front.offsets import splat_constant
from ..front.writes import Sources
from ..log import Site

_ULT = 6
# Operations that move the elements of a tile: an index moves as the pointer does.
_MOVES = (tt.ExpandDimsOp, tt.BroadcastOp, tt.TransOp, tt.ReshapeOp, ttg.ConvertLayoutOp)
_ATOMICS = (tt.AtomicRMWOp, tt.AtomicCASOp, tt.AtomicLoadOp, tt.AtomicStoreOp, tt.AtomicPollOp)
_ACCESSES = (tt.LoadOp, tt.StoreOp, *_ATOMICS)


def instrument(function: tt.FuncOp, sites: list[Site]) -> None:
    """Add checks to a kernel, in place, and their sites to those that the kernel has.

    Raises:
        UnsupportedOperation: an access has a form that cannot be checked.
    """
    _Checks(function, sites).add()


class _Checks:
    def __init__(self, function: tt.FuncOp, sites: list[Site]) -> None:
        self._function = function
        self._sites = sites
        self._sources = Sources(function)
        self._pointers = [argument for argument in function.body.blocks[0].args if _is_pointer(argument)]
        self._extents: dict[int, tuple[SSAValue, SSAValue]] = {}
        self._limits: dict[tuple[int, int], tuple[SSAValue, SSAValue]] = {}
        self._indices: dict[SSAValue, SSAValue | None] = {}

    def add(self) -> None:
        accesses = [op for op in self._function.body.walk() if isinstance(op, _ACCESSES)]
        origins = {op: self._sources.origins([op.ptr]) for op in accesses}
        self._add_arguments()
        for op in accesses:
            candidates, unknown = origins[op]
            if not unknown:
                self._access(op, candidates)

    # The extents of the arguments.

    def _add_arguments(self) -> None:
        """Append the arguments with the extents, two for each pointer, in the order of the pointers."""
        function = self._function
        block = function.body.blocks[0]
        for pointer in self._pointers:
            self._extents[pointer.index] = (
                block.insert_arg(i64, len(block.args)),
                block.insert_arg(i64, len(block.args)),
            )
        more = 2 * len(self._pointers)
        type = function.function_type
        function.properties["function_type"] = FunctionType.from_lists(
            [*type.inputs.data, *[i64] * more], type.outputs.data
        )
        if function.arg_attrs is not None:
            attributes = [*function.arg_attrs.data, *[DictionaryAttr({})] * more]
            function.properties["arg_attrs"] = ArrayAttr(attributes)

    def _limit(self, argument: int, size: int) -> tuple[SSAValue, SSAValue]:
        """Return the first index of an array and its number of elements, for elements of `size` bytes; both i64."""
        if (argument, size) not in self._limits:
            here = Builder(InsertPoint.at_start(self._function.body.blocks[0]))
            shift = here.insert(ConstantOp.integer(size.bit_length() - 1, i64)).result
            low, extent = (here.insert(arith.ShRSIOp(value, shift)).result for value in self._extents[argument])
            self._limits[argument, size] = low, extent
        return self._limits[argument, size]

    # Pointers.

    def _index(self, pointer: SSAValue, argument: int) -> SSAValue | None:
        """Return the distance of a pointer, or of each of a tile, from an argument, in elements; None if it is 0."""
        if pointer not in self._indices:
            self._indices[pointer] = self._find(pointer, argument)
        return self._indices[pointer]

    def _find(self, pointer: SSAValue, argument: int) -> SSAValue | None:
        op = pointer.owner
        if isinstance(pointer, BlockArgument) and pointer in self._pointers:
            return None
        match op:
            case (
                tt.SplatOp()
                | tt.ExpandDimsOp()
                | tt.BroadcastOp()
                | tt.TransOp()
                | tt.ReshapeOp()
                | ttg.ConvertLayoutOp()
            ):
                index = self._index(op.operands[0], argument)
                if index is None:
                    return None
                moved = type(op).create(
                    operands=[index],
                    result_types=[_alike(pointer.type, i64)],
                    properties=op.properties,
                    attributes=op.attributes,
                )
                return _behind(pointer).insert(moved).results[0]
            case tt.AddPtrOp():
                before, here = self._index(op.ptr, argument), _behind(pointer)
                step = _widened(op.offset, here)
                return step if before is None else here.insert(arith.AddiOp(before, step)).result
            case tt.BitcastOp() if _size(op.src) == _size(pointer):
                return self._index(op.src, argument)
        return self._difference(pointer, argument)

    def _difference(self, pointer: SSAValue, argument: int) -> SSAValue:
        """Return the distance of a pointer from an argument by their addresses, in elements."""
        here = _behind(pointer)
        wide = _alike(pointer.type, i64)
        bytes = here.insert(tile.DistanceOp(pointer, self._argument(argument), wide)).result
        shift = here.insert(ConstantOp([_size(pointer).bit_length() - 1], wide)).result
        return here.insert(arith.ShRSIOp(bytes, shift)).result

    def _argument(self, number: int) -> SSAValue:
        return self._function.body.blocks[0].args[number]

    # Accesses.

    def _access(self, op: Operation, candidates: Sequence[int]) -> None:
        pointer = op.operands[0]
        here = Builder(InsertPoint.before(op))
        condition = _alike(pointer.type, i1)
        wide = _alike(pointer.type, i64)
        inside: SSAValue | None = None
        first: SSAValue | None = None
        for argument in candidates:
            index = self._index(pointer, argument) if len(candidates) == 1 else self._difference(pointer, argument)
            if index is None:
                index = here.insert(ConstantOp([0], wide)).result
            low, extent = (_spread(limit, wide, here) for limit in self._limit(argument, _size(pointer)))
            distance = here.insert(arith.SubiOp(index, low)).result
            ok = here.insert(CmpiOp(_ULT, distance, extent)).result
            inside = ok if inside is None else here.insert(arith.OrIOp(inside, ok)).result
            first = index if first is None else first
        assert inside is not None and first is not None
        mask = getattr(op, "mask", None)
        # Triton gives every atomic operation a mask.
        if mask is not None and splat_constant(mask) == 1:
            mask = None
        checked = inside
        if mask is not None:
            ones = here.insert(ConstantOp([1], condition)).result
            unset = here.insert(arith.XOrIOp(mask, ones)).result
            checked = here.insert(arith.OrIOp(unset, inside)).result
        passed = self._check(op, checked, first, candidates, masked=mask is not None)
        # A scalar's result is that it is inside. A tile without a finding needs no mask for each element.
        whole = passed
        if isinstance(condition, TensorType):
            whole = here.insert(arith.OrIOp(_spread(passed, condition, here), inside)).result
        if mask is not None:
            whole = here.insert(arith.AndIOp(mask, whole)).result
        self._guard(op, whole, passed)

    def _check(
        self, op: Operation, condition: SSAValue, index: SSAValue, candidates: Sequence[int], *, masked: bool
    ) -> SSAValue:
        """Write a check before an operation; return whether all elements passed."""
        check = tile.CheckOp(len(self._sites), condition, ends=False, value=index)
        check.location = op.location
        Builder(InsertPoint.before(op)).insert(check)
        shape = tuple(condition.type.get_shape()) if isinstance(condition.type, TensorType) else ()
        places = tuple((line.filename.data, line.line.data) for line in source_lines(op.location))
        text = "masked" if masked else "unmasked"
        self._sites.append(
            Site("outside", f"{text} {_what(op)}", places, "i64", shape, signed=True, arguments=tuple(candidates))
        )
        return check.result

    def _guard(self, op: Operation, mask: SSAValue, passed: SSAValue) -> None:
        """Give an access a mask; one that cannot have any is executed if all its elements passed."""
        match op:
            case tt.LoadOp():
                others = [op.other] if op.other is not None else []
                properties = {name: value for name, value in op.properties.items() if name != "operandSegmentSizes"}
                made: Operation = tt.LoadOp.build(
                    operands=[op.ptr, [mask], others], result_types=[op.result.type], properties=properties
                )
            case tt.StoreOp():
                made = tt.StoreOp.build(operands=[op.ptr, op.value, [mask]], properties=op.properties)
            case tt.AtomicRMWOp() | tt.AtomicStoreOp():
                made = type(op).create(
                    operands=[op.ptr, op.value, mask], result_types=op.result_types, properties=op.properties
                )
            case tt.AtomicLoadOp():
                made = tt.AtomicLoadOp.create(
                    operands=[op.ptr, mask], result_types=op.result_types, properties=op.properties
                )
            case _:
                self._put_under(op, passed)
                return
        made.attributes |= op.attributes
        made.location = op.location
        for old, new in zip(op.results, made.results, strict=True):
            new.name_hint = old.name_hint
        Rewriter.replace_op(op, made)

    @staticmethod
    def _put_under(op: Operation, passed: SSAValue) -> None:
        """Execute an operation only if all its elements passed; else its results are zeros."""
        here = Builder(InsertPoint.before(op))
        inner, otherwise = Block(), Block()
        types = list(op.result_types)
        copy = op.clone()
        copy.location = op.location
        inner.add_op(copy)
        inner.add_op(scf.YieldOp(*copy.results))
        zeros = [Builder(InsertPoint.at_end(otherwise)).insert(ConstantOp([0], type)).result for type in types]
        otherwise.add_op(scf.YieldOp(*zeros))
        made = here.insert(scf.IfOp(passed, types, Region(inner), Region(otherwise)))
        made.location = op.location
        Rewriter.replace_op(op, [], list(made.results))


def _is_pointer(value: SSAValue) -> bool:
    return isinstance(value.type, tt.PointerType)


def _behind(value: SSAValue) -> Builder:
    """Return a builder that writes directly after a value's definition, where it dominates all uses of the value."""
    owner = value.owner
    return Builder(InsertPoint.at_start(owner) if isinstance(owner, Block) else InsertPoint.after(owner))


def _alike(type: Attribute, element: Attribute) -> Attribute:
    """Return the type of a scalar or tile with other elements: shape and layout stay."""
    return TensorType(element, type.get_shape(), type.encoding) if isinstance(type, TensorType) else element


def _spread(scalar: SSAValue, type: Attribute, here: Builder) -> SSAValue:
    """Return a scalar as a value of a type: the same in all elements of a tile."""
    if not isinstance(type, TensorType):
        return scalar
    return here.insert(tt.SplatOp.create(operands=[scalar], result_types=[type])).results[0]


def _widened(offset: SSAValue, here: Builder) -> SSAValue:
    wide = _alike(offset.type, i64)
    return offset if offset.type == wide else here.insert(ExtSIOp(offset, wide)).result


def _size(pointer: SSAValue) -> int:
    """Return the bytes of the elements that a pointer points to."""
    type = pointer.type.element_type if isinstance(pointer.type, TensorType) else pointer.type
    assert isinstance(type, tt.PointerType)
    pointee = type.pointee
    if isinstance(pointee, tt.PointerType):
        return 8
    if not isinstance(pointee, FixedBitwidthType):
        owner = pointer.owner
        raise unsupported(owner if isinstance(owner, Operation) else owner.parent_op(), f"a check of {pointee}")  # type: ignore[arg-type]
    return max(8, pointee.bitwidth) // 8


def _what(op: Operation) -> str:
    """Return what an access does, for a message."""
    match op:
        case tt.LoadOp():
            return "load"
        case tt.StoreOp():
            return "store"
        case tt.AtomicRMWOp():
            return f"atomic {op.kind.data.removeprefix('f')}"
    return op.name.removeprefix("tt.").replace("_", " ")
