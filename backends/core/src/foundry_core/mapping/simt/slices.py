"""Writes stores and reductions of large tiles as loops over slices, for a device whose compiler is slow for long code.

A tile is a list of registers, and an operation on it as many instructions. Here, a loop computes a slice of all that a
store or a reduction needs: it loads, computes, and stores or combines that slice. So a load that two of them need is
written twice. Where that could be seen, where a slice of something is not known (a scan, a product, a reduction's
result), and where a slice could meet what a later one accesses, everything stays as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import prod

from xdsl.builder import Builder
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, TensorType, i32
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import MemoryEffectKind
from xdsl.transforms.dead_code_elimination import dce

from ...analysis.flow import branch, loop_blocks
from ...front.addresses import Addresses, Axis, Polynomial
from ...front.offsets import alike
from ...front.order import Meetings, Pending
from ...front.structured import kernel
from ...ir import tt
from ...ir.arith import ConstantOp, SelectOp
from ...ir.build import builder_before, like
from ...ir.effects import effects, is_pure
from ...ir.elements import extents, index_mapping
from ...ir.facts import combined_axis, first_number
from ...ops.elementwise import is_elementwise
from ...ops.numeric import scalar_type
from .layouts import layout
from .target import REGISTERS_OF_SLOW_COMPILER

# For each dimension of a tile, the dimension of the loop's tile along which it is sliced; None if it is whole there.
Along = tuple[int | None, ...]


def slice_large_tiles(module: ModuleOp) -> None:
    """Rewrite the kernel of a module of TTGIR, in place."""
    function = kernel(module)
    # The loop of a store has the reductions that it needs. Then these, and all others, have loops along their axes.
    for write in (_slice_stores_of, _slice_reductions_of):
        done: set[Block] = set()
        while left := [block for block in _blocks(function) if block not in done]:
            done.update(left)
            changes = [write(function, block) for block in left]
            if any(changes):
                dce(module)


def _blocks(function: tt.FuncOp) -> list[Block]:
    blocks = list(function.body.blocks)
    for op in function.body.walk():
        choice = branch(op)
        blocks += choice.ways if choice else loop_blocks(op)
    return blocks


def _slice_stores_of(function: tt.FuncOp, block: Block) -> bool:
    """Slice the stores of a block; return whether there are any. Stores that follow each other have one loop."""
    groups: list[list[tt.StoreOp]] = [[]]
    for op in block.ops:
        is_member = isinstance(op, tt.StoreOp) and isinstance(op.ptr.type, TensorType)
        if groups[-1] and not (is_pure(op) or (is_member and extents(op.operands[0]) == extents(groups[-1][0].ptr))):
            groups.append([])
        if isinstance(op, tt.StoreOp) and is_member:
            groups[-1].append(op)
    changes = [_slice_stores(function, group) for group in groups if group]
    return any(changes)


def _slice_reductions_of(function: tt.FuncOp, block: Block) -> bool:
    """Slice the reductions of a block; return whether there are any."""
    axes = [(op, axis) for op in block.ops if (axis := _reduced_axis(op)) is not None]
    changes = [_slice_reduction(function, op, axis) for op, axis in axes]
    return any(changes)


def _reduced_axis(op: object) -> int | None:
    """Return the dimension that an operation reduces; None if it does anything else."""
    found = combined_axis(op)
    return found.number if found and not found.is_kept else None


def _needed(value: SSAValue, along: Along) -> list[tuple[SSAValue, Along]] | None:
    """Return the tiles and scalars that a slice of a tile needs, each with its slicing; None if it cannot be sliced."""
    op = value.owner
    if isinstance(op, Block):
        return None
    if first_number(op) is not None or (isinstance(op, ConstantOp) and op.splat is not None):
        return []
    is_load = isinstance(op, tt.LoadOp) and not (op.is_volatile or op.boundary_check)
    if is_load or is_elementwise(op):
        return [(operand, along if isinstance(operand.type, TensorType) else ()) for operand in op.operands]
    if (axis := _reduced_axis(op)) is not None:
        return [(operand, (*along[:axis], None, *along[axis:])) for operand in op.operands]
    mapping = index_mapping(value)
    if mapping is None:
        return None
    source = [
        along[index] if isinstance(index, int) and mapping.is_along(dimension) else None
        for dimension, index in enumerate(mapping.index)
    ]
    return [(mapping.source, tuple(source))]


def _is_whole(along: Along) -> bool:
    return all(dimension is None for dimension in along)


def _sources(values: Iterable[tuple[SSAValue, Along]]) -> dict[SSAValue, list[Along]] | None:
    """Return all of which slices are needed, with how they are sliced; None if something cannot be sliced."""
    found: dict[SSAValue, list[Along]] = {}
    pending = list(values)
    while pending:
        value, along = pending.pop()
        ways = found.setdefault(value, [])
        if along in ways:
            continue
        ways.append(along)
        needed = [] if _is_whole(along) else _needed(value, along)
        if needed is None:
            return None
        pending += needed
    return found


def _loads(sources: Mapping[SSAValue, Sequence[Along]]) -> dict[Operation, list[Along]]:
    """Return the loads among what slices are needed of."""
    sliced = {value: [way for way in ways if not _is_whole(way)] for value, ways in sources.items()}
    return {value.owner: ways for value, ways in sliced.items() if ways and isinstance(value.owner, tt.LoadOp)}


def _only(dimension: int, rank: int) -> Along:
    return tuple(dimension if each == dimension else None for each in range(rank))


def _slice_shape(values: Sequence[SSAValue], dimensions: Sequence[int]) -> dict[int, int]:
    """Return the dimensions along which tiles of one shape are sliced, with the extents of a slice.

    They are so small that an invocation has few registers of these tiles, and of those that reductions of theirs need.

    Args:
        dimensions: those that are allowed.
    """
    shape = list(extents(values[0]))
    rank = len(shape)
    able = [d for d in dimensions if _sources((value, _only(d, rank)) for value in values) is not None]
    along = tuple(d if d in able else None for d in range(rank))
    found = _sources((value, along) for value in values)
    if found is None:
        return {}
    tiles = [(values[0], along)]
    for value, ways in found.items():
        if _reduced_axis(value.owner) is not None:
            tiles += [(src, way) for each in ways for src, way in _needed(value, each) or ()]

    def outermost(value: SSAValue, way: Along) -> int | None:
        """Return the dimension that the outermost registers of a tile with too many are along."""
        type = value.type
        assert isinstance(type, TensorType)
        sizes = [n if d is None else shape[d] for d, n in zip(way, extents(value), strict=True)]
        registers = layout(type.encoding, tuple(sizes)).registers
        if 1 << len(registers) <= REGISTERS_OF_SLOW_COMPILER:
            return None
        # What is left has the same elements in the same invocations as before.
        halves = {d: n // 2 * prod(sizes[p + 1 :]) for p, (d, n) in enumerate(zip(way, sizes, strict=True)) if n > 1}
        outer = {registers.index(half): d for d, half in halves.items() if d is not None and half in registers}
        return outer[max(outer)] if outer else None

    while cut := [d for tile in tiles if (d := outermost(*tile)) is not None]:
        shape[cut[0]] //= 2
    return {d: extent for d, extent in enumerate(shape) if extent < extents(values[0])[d]}


def _may_wait(function: tt.FuncOp, loads: Iterable[Operation], op: Operation) -> bool:
    """Return whether loads read the same if they are executed where an operation of their block is."""
    meetings = Meetings(function, lambda access: None)
    for load in loads:
        if load.parent_block() is not op.parent_block():
            return False
        between = load.next_op
        while between is not None and between is not op:
            reads_only = all(effect.kind is MemoryEffectKind.READ for effect in effects(between))
            # Arguments may be the same array, element for element: for a tile, that they are others says nothing.
            is_apart = (
                isinstance(between, tt.StoreOp)
                and not isinstance(between.ptr.type, TensorType)
                and not meetings.may_meet(Pending(load), between)
            )
            if not (reads_only or is_apart):
                return False
            between = between.next_op
    return True


class _Slice:
    """Writes a slice of values.

    Args:
        sizes: for each dimension that is sliced, the extent of the slice.
        starts: for each such dimension, where the slice begins.
        places: for each such dimension, where to write what is sliced along it and along those before it.
    """

    def __init__(self, sizes: Mapping[int, int], starts: Mapping[int, SSAValue], places: Mapping[int, Builder]) -> None:
        self._sizes, self._starts, self._places = sizes, starts, places
        self._made: dict[tuple[SSAValue, Along], SSAValue] = {}

    def write(self, value: SSAValue, along: Along) -> SSAValue:
        """Return the slice of a tile; the value itself if it is a scalar or there as a whole."""
        if _is_whole(along):
            return value
        if (value, along) not in self._made:
            self._write(value, along)
        return self._made[value, along]

    def _write(self, value: SSAValue, along: Along) -> None:
        needed, op = _needed(value, along), value.owner
        assert needed is not None and isinstance(op, Operation)
        shape = [n if d is None else self._sizes[d] for d, n in zip(along, extents(value), strict=True)]
        here = self._places[max(d for d in along if d is not None)]
        made = op.clone(dict(zip(op.operands, (self.write(*each) for each in needed), strict=True)))
        for result in made.results:
            tile = result.type
            assert isinstance(tile, TensorType)
            Rewriter.replace_value_with_new_type(result, TensorType(tile.element_type, shape, tile.encoding))
        made.location = op.location
        here.insert(made)
        found = list(made.results)
        if (first := first_number(made)) is not None:
            (dimension,) = along
            assert dimension is not None
            made.properties["end"] = IntegerAttr(first + shape[0], 32)
            start = like(here, self._starts[dimension], found[0].type)
            found = [here.insert(arith.AddiOp(found[0], start)).result]
        for result, slice in zip(op.results, found, strict=True):
            slice.name_hint = result.name_hint
            self._made[result, along] = slice


def _keeps_places(addresses: Addresses, load: Operation, store: tt.StoreOp) -> bool:
    """Return whether elements of one index have one place if what is loaded and what is stored are the same array.

    Arguments may be one array where a kernel works in place. Its strides are the same then, also those that are not
    known: rows times a stride plus columns are the same place, but not rows plus columns times a stride.
    """
    pointers = load.operands[0], store.ptr
    if extents(pointers[0]) != extents(pointers[1]) or scalar_type(pointers[0].type) != scalar_type(pointers[1].type):
        return True
    return _form(addresses.of_access(load)) == _form(addresses.of_access(store))


def _form(address: Polynomial) -> Counter[Hashable]:
    """Return the terms of an address: the dimensions of the tile in each, with its factor if all of that is known."""
    form = Counter[Hashable]()
    for term, factor in address.terms.items():
        axes = frozenset((atom.number, power) for atom, power in term if isinstance(atom, Axis))
        form[axes, factor if len(axes) == len(term) else None] += 1
    return form


def _constant(here: Builder, number: int) -> SSAValue:
    return here.insert(ConstantOp.integer(number, i32)).result


def _slice_stores(function: tt.FuncOp, stores: Sequence[tt.StoreOp]) -> bool:
    """Replace stores that nothing with an effect is between by a loop; return whether that is possible."""
    first, last, shape = stores[0], stores[-1], extents(stores[0].ptr)
    values = [value for store in stores for value in store.operands if isinstance(value.type, TensorType)]
    sizes = _slice_shape(values, range(len(shape)))
    along = tuple(d if d in sizes else None for d in range(len(shape)))
    sources = _sources((value, along) for value in values)
    loads = _loads(sources or {})
    if not sizes or sources is None or not _may_wait(function, loads, first):
        return False
    # Elements of one index are accessed in one turn of the loop, those of another index perhaps in an earlier one.
    turns: dict[Operation, tuple[Sequence[int], Along]] = dict.fromkeys(stores, (shape, along))
    for load, ways in loads.items():
        if extents(load.operands[0]) == shape and ways != [along]:
            return False
        if len(ways) == 1:
            turns[load] = (extents(load.operands[0]), ways[0])
    addresses = Addresses()
    if not all(_keeps_places(addresses, load, store) for load in loads for store in stores):
        return False
    meetings = Meetings(function, turns.get)
    accesses = [*loads, *stores]
    for number, store in enumerate(stores, len(loads)):
        if any(meetings.may_meet(Pending(access), store) for access in accesses[:number]):
            return False
    place, starts, places = InsertPoint.before(last), dict[int, SSAValue](), dict[int, Builder]()
    outer: int | None = None
    for d, size in sizes.items():
        here, body = Builder(place), Block(arg_types=[i32])
        low, high, step = (_constant(here, number) for number in (0, shape[d], size))
        loop = scf.ForOp(low, high, step, [], Region(body))
        loop.location = last.location
        here.insert(loop)
        if outer is not None:
            places[outer] = Builder(InsertPoint.before(loop))
        end = scf.YieldOp()
        body.add_op(end)
        outer, place, starts[d] = d, InsertPoint.before(end), body.args[0]
        places[d] = Builder(place)
    slice, block = _Slice(sizes, starts, places), last.parent_block()
    assert block is not None
    for load in [op for op in block.ops if op in loads]:
        for way in loads[load]:
            slice.write(load.results[0], way)
    for store in stores:
        tiles = [value for value in store.operands if isinstance(value.type, TensorType)]
        copy = Builder(place).insert(store.clone({value: slice.write(value, along) for value in tiles}))
        copy.location = store.location
        Rewriter.erase_op(store)
    return True


def _slice_reduction(function: tt.FuncOp, op: Operation, axis: int) -> bool:
    """Replace a reduction by a loop that combines those of slices along its axis; return whether that is possible."""
    shape, combine = extents(op.operands[0]), op.regions[0].block
    sizes = _slice_shape(op.operands, [axis])
    along = _only(axis, len(shape))
    sources = _sources((value, along) for value in op.operands)
    inner = [each for each in combine.ops if each is not combine.last_op]
    is_known = all(isinstance(each, ConstantOp | SelectOp) or is_elementwise(each) for each in inner)
    if not sizes or sources is None or not is_known or not _may_wait(function, _loads(sources), op):
        return False

    def reduced(here: Builder, start: SSAValue) -> Sequence[SSAValue]:
        slice = _Slice(sizes, {axis: start}, {axis: here})
        copy = here.insert(op.clone({value: slice.write(value, along) for value in op.operands}))
        copy.location = op.location
        return copy.results

    here = builder_before(op)
    size = _constant(here, sizes[axis])
    total = reduced(here, _constant(here, 0))
    body = Block(arg_types=[i32, *(value.type for value in total)])
    inside = Builder(InsertPoint.at_end(body))
    known: dict[SSAValue, SSAValue] = {}
    known.update(zip(combine.args, [*body.args[1:], *reduced(inside, body.args[0])], strict=True))
    for each in inner:
        made = each.clone(known)
        made.location = each.location
        for result, new in zip(each.results, made.results, strict=True):
            Rewriter.replace_value_with_new_type(new, alike(op.results[0].type, result.type))
        inside.insert(made)
        known.update(zip(each.results, made.results, strict=True))
    assert combine.last_op is not None
    body.add_op(scf.YieldOp(*(known.get(value, value) for value in combine.last_op.operands)))
    loop = here.insert(scf.ForOp(size, _constant(here, shape[axis]), size, total, Region(body)))
    Rewriter.replace_op(op, [], loop.results)
    return True
