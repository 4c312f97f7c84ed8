"""Adds checks to a kernel: each access gets a condition that holds where it stays inside of an array.

    %v = tt.load %p, %mask        becomes        %ok = LOW <= %index && %index < HIGH
                                                 %all = tile.check SITE of (!%mask || %ok) with %index
                                                 %v = tt.load %p, %mask && (%all || %ok)

A bad element is recorded and not accessed; the program goes on. An access without a mask gets one.

`%index` counts elements from the argument that the pointer comes from, in 64 bits: the sum of the offsets that the
kernel added. Where a pointer is not such a sum (a loop carries it, a branch chooses it), its distance from the argument
is the difference of two addresses. If it may come from several arguments, each element is checked against the one that
a selection chose for it. Where that is not known, it must be inside of one of them.

The extents are arguments that are appended to the kernel's: for each pointer the first byte that belongs to its array
and the array's size, both in bytes, the first relative to the pointer (`extents.py`).

An array that the kernel writes may have a shadow: a word of 32 bits for each element, with the program that stored to
it and a hash of the value. Each store exchanges the word, and compares it with the one before.

An array whose elements two accesses of a program may reach from different elements of their tiles, without a barrier
between, has two shadows more: of loads and of stores, with the program and the position in the tile. The later access
compares them with its own.

The pass works on TTIR and on TTGIR: what it writes has the layout of the pointers.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TypeVar

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import (
    ArrayAttr,
    BFloat16Type,
    DictionaryAttr,
    FixedBitwidthType,
    Float16Type,
    FunctionType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    TensorType,
    f32,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ..analysis.flow import is_combined
from ..errors import source_lines
from ..front.addresses import pointee_bytes
from ..front.offsets import alike, splat_constant
from ..front.order import Meetings, UnorderedPairs, is_barrier
from ..front.writes import Sources
from ..ir import tile, tt
from ..ir.arith import BitcastOp, ConstantOp, ExtUIOp, SelectOp, SIToFPOp, TruncIOp
from ..ir.build import advance, in_layout, like, positions
from ..ir.effects import writes
from ..ir.elements import extents, is_same, source
from ..ir.facts import is_product, pointer_sum
from ..log import AFTER_LOAD, AFTER_STORE, FEWER_PROGRAM_BITS, INDEX_BITS, MAPPED, NOTE, PROGRAM_BITS, Site
from ..ops.elementwise import is_elementwise
from . import POISON
from .undefined import ends_once, undefined_uses, varying_dimensions
from .wide import WideOffsets
from .writer import Writer, clone_movement, integer_width

_ATOMICS = (tt.AtomicRMWOp, tt.AtomicCASOp, tt.AtomicLoadOp, tt.AtomicStoreOp, tt.AtomicPollOp)
_DIVISIONS = (arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp)
_ORDERING = (tt.AtomicCASOp, tt.AtomicLoadOp, tt.AtomicStoreOp, tt.AtomicPollOp)
_ACCESSES = (tt.LoadOp, tt.StoreOp, *_ATOMICS)


def instrument(function: tt.FuncOp, sites: list[Site], *, shares: bool = True, compares: bool = True) -> None:
    """Add checks to a kernel, in place, and their sites to those that the kernel has.

    Args:
        shares: whether all programs share one memory. If not, the launcher merges their copies of the shadows.
        compares: whether the device has room to compare what several programs store.

    Raises:
        UnsupportedOperation: an access has a form that cannot be checked.
    """
    _Checks(function, sites, shares, compares).add()


_Key = TypeVar("_Key")
# The pointer and the number of elements of an array that is appended to the arguments.
_Array = tuple[SSAValue, SSAValue]
# For each argument that a pointer may come from: whether it does, and the index in the argument.
_Parts = dict[int, tuple[SSAValue, SSAValue]]


class _Checks:
    def __init__(self, function: tt.FuncOp, sites: list[Site], shares: bool, compares: bool) -> None:
        self._function = function
        self._sites = sites
        self._shares = shares
        self._compares = compares
        # The shadows of arguments, and how many words each has.
        self._shadows: dict[int, _Array] = {}
        # The maps of poison of arguments, and how many elements each has; and which arguments may have one.
        self._maps: dict[int, _Array] = {}
        self._mapped: set[int] = set()
        # The table of further memory, and its rows.
        self._table: _Array | None = None
        self._wide = WideOffsets(function)
        self._sources = Sources(function)
        self._pointers = [argument for argument in function.body.blocks[0].args if _is_pointer(argument)]
        self._extents: dict[int, _Array] = {}
        self._limits: dict[tuple[int, int], _Array] = {}
        self._indices: dict[SSAValue, SSAValue | None] = {}
        self._number: tuple[SSAValue, SSAValue, SSAValue] | None = None
        self._exact_indices: dict[SSAValue, SSAValue | None] = {}
        self._parts: dict[SSAValue, _Parts | None] = {}
        # What accesses of one argument have become: the operation, its mask, the index, and the argument.
        self._guarded: dict[Operation, tuple[Operation, SSAValue, SSAValue, int]] = {}

    def add(self) -> None:
        accesses = [op for op in self._function.body.walk() if isinstance(op, _ACCESSES)]
        origins = {op: self._sources.origins([op.ptr]) for op in accesses}
        # Where a pointer gets another type, the distance of two need not be a multiple of an element.
        self._recasts = any(
            isinstance(op, tt.BitcastOp) and _is_pointer(op.src) and pointee_bytes(op.src) != pointee_bytes(op.result)
            for op in self._function.body.walk()
        )
        pairs = self._unordered_pairs()
        for pointer in self._pointers:
            self._extents[pointer.index] = self._append(i64), self._append(i64)
        for op in list(self._function.body.walk()):
            if isinstance(op, _DIVISIONS):
                self._division(op)
        # Where memories are not shared, a map that the kernel writes would have to be merged.
        stored = {number for op in accesses if not isinstance(op, tt.LoadOp) for number in origins[op][0]}
        self._mapped = {pointer.index for pointer in self._pointers} - (set() if self._shares else stored)
        # Where programs order each other, one may overwrite what another one wrote.
        ordering = next((op for op in accesses if isinstance(op, _ORDERING) or _exchanges(op)), None)
        store = next((op for op in accesses if isinstance(op, tt.StoreOp)), None)
        if ordering is not None:
            self._note(ordering, "programs may order each other here, so what several of them write is not compared")
            self._compares = False
        elif store is not None and not self._compares:
            self._note(store, "the device has no room to compare what several programs write here")
        # Loads first: a store writes to the map that a load has.
        for op in sorted(accesses, key=lambda op: not isinstance(op, tt.LoadOp)):
            candidates, unknown = origins[op]
            parts = self._parts_of(op.ptr) if len(candidates) > 1 and not self._recasts else None
            if unknown:
                self._stray(op)
            elif parts is not None:
                self._access_parts(op, parts)
            else:
                self._access(op, candidates)
        self._check_order(pairs)
        # The type of the kernel's arguments, the appended ones among them.
        function, arguments = self._function, self._function.body.blocks[0].args
        types = [argument.type for argument in arguments]
        function.properties["function_type"] = FunctionType.from_lists(types, function.function_type.outputs.data)
        if function.arg_attrs is not None:
            more = [DictionaryAttr({})] * (len(arguments) - len(function.arg_attrs.data))
            function.properties["arg_attrs"] = ArrayAttr([*function.arg_attrs.data, *more])

    def _note(self, op: Operation, text: str) -> None:
        """Note what is not checked, for a person. It is a check that passes: a kernel with sites takes a log."""
        here = Writer.at_start(self._function.body.blocks[0])
        here.insert(tile.CheckOp(len(self._sites), here.integer(1, i1), ends=False))
        self._sites.append(Site(NOTE, text, _source_places(op)))

    # The extents of the arguments.

    def _append_array(self, element: IntegerType, count: Attribute = i64) -> _Array:
        """Append a pointer and a number of elements."""
        return self._append(tt.PointerType(element, IntegerAttr(1, 32))), self._append(count)

    def _array(self, arrays: dict[_Key, _Array], key: _Key, element: IntegerType) -> _Array:
        """Return one of the appended arrays; the first call for a key appends it."""
        if key not in arrays:
            arrays[key] = self._append_array(element)
        return arrays[key]

    def _append(self, type: Attribute) -> BlockArgument:
        """Append an argument to the kernel's; foundry_core.runtime.arguments has the same order."""
        block = self._function.body.blocks[0]
        return block.insert_arg(type, len(block.args))

    def _limit(self, argument: int, size: int) -> tuple[SSAValue, SSAValue]:
        """Return the first index of an array and its number of elements, for elements of `size` bytes; both i64."""
        if (argument, size) not in self._limits:
            here = Writer.at_start(self._function.body.blocks[0])
            shift = here.integer(size.bit_length() - 1, i64)
            low, extent = (here.write(arith.ShRSIOp, value, shift) for value in self._extents[argument])
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
            case _ if (of := source(pointer)) is not None:
                index = self._index(of, argument)
                return None if index is None else clone_movement(pointer, index, i64)
            case _ if moved := pointer_sum(op):
                before, here = self._index(moved[0], argument), Writer.after_value(pointer)
                step = here.sign_extend(moved[1])
                return step if before is None else here.add(before, step)
            case tt.BitcastOp() if pointee_bytes(op.src) == pointee_bytes(pointer):
                return self._index(op.src, argument)
        return self._distance(pointer, argument, pointee_bytes(pointer), Writer.after_value(pointer))[1]

    def _distance(self, pointer: SSAValue, argument: int, size: int, here: Writer) -> tuple[SSAValue, SSAValue]:
        """Return the distance of a pointer from an argument by their addresses, in bytes and in elements."""
        wide = alike(pointer.type, i64)
        bytes = here.insert(tile.DistanceOp(pointer, self._argument(argument), wide)).result
        return bytes, here.write(arith.ShRSIOp, bytes, here.integer(size.bit_length() - 1, wide))

    def _argument(self, number: int) -> SSAValue:
        return self._function.body.blocks[0].args[number]

    def _exact_index(self, pointer: SSAValue) -> SSAValue | None:
        """Return what `_index` returns, from offsets that do not wrap around."""
        if pointer not in self._exact_indices:
            self._exact_indices[pointer] = self._find_exact_index(pointer)
        return self._exact_indices[pointer]

    def _find_exact_index(self, pointer: SSAValue) -> SSAValue | None:
        op, here = pointer.owner, Writer.after_value(pointer)
        match op:
            case _ if (of := source(pointer)) is not None:
                exact, index = self._exact_index(of), self._indices[of]
                return (
                    self._indices[pointer] if exact is index or exact is None else clone_movement(pointer, exact, i64)
                )
            case _ if moved := pointer_sum(op):
                differs, before = self._wide.differs(moved[1]), self._exact_index(moved[0])
                if not differs and (before is self._indices[moved[0]] or before is None):
                    return self._indices[pointer]
                step = self._wide.extend(moved[1]) if differs else here.sign_extend(moved[1])
                return step if before is None else here.add(before, step)
            case tt.BitcastOp() if op.src in self._indices:
                return self._exact_index(op.src)
        return self._indices[pointer]

    def _parts_of(self, pointer: SSAValue) -> _Parts | None:
        """Return the arguments that a pointer, or each of a tile, may come from; None if a selection does not say it.

        Returns:
            for each argument, by its number, whether the pointer comes from it, an i1, and the index in it, an i64.
        """
        if pointer not in self._parts:
            self._parts[pointer] = self._find_parts(pointer)
        return self._parts[pointer]

    def _find_parts(self, pointer: SSAValue) -> _Parts | None:
        op, here = pointer.owner, Writer.after_value(pointer)
        chosen, wide = alike(pointer.type, i1), alike(pointer.type, i64)
        if isinstance(pointer, BlockArgument) and pointer in self._pointers:
            always, start = (here.integer(number, type) for number, type in ((1, i1), (0, i64)))
            return {pointer.index: (always, start)}
        match op:
            case _ if (of := source(pointer)) is not None:
                parts = self._parts_of(of)
                return parts and {
                    at: (clone_movement(pointer, it, i1), clone_movement(pointer, i, i64))
                    for at, (it, i) in parts.items()
                }
            case _ if moved := pointer_sum(op):
                parts, step = self._parts_of(moved[0]), here.sign_extend(moved[1])
                return parts and {at: (it, here.add(i, step)) for at, (it, i) in parts.items()}
            case tt.BitcastOp():
                return self._parts_of(op.src)
            case SelectOp():
                first, second = self._parts_of(op.lhs), self._parts_of(op.rhs)
                if first is None or second is None:
                    return None
                never = tuple(here.integer(0, type) for type in (chosen, wide))
                found: _Parts = {}
                for at in sorted({*first, *second}):
                    pairs = zip(first.get(at, never), second.get(at, never), strict=True)
                    it, index = (here.write(SelectOp, op.cond, *pair) for pair in pairs)
                    found[at] = it, index
                return found
        return None

    # Accesses.

    def _access_parts(self, op: Operation, parts: _Parts) -> None:
        """Check an access whose elements are of several arguments, each against the one that it is of."""
        here, mask = Writer.before(op), _mask(op)
        text = _access_text(op, mask)
        inside: SSAValue | None = None
        allowed: SSAValue | None = None
        for argument, (chosen, index) in parts.items():
            within = self._within(index, argument, pointee_bytes(op.operands[0]), here)
            ok = here.any(here.inverted(chosen), within)
            passed = _Report(self._sites, op, (argument,)).check("outside", text, here, mask, ok, index)
            inside, allowed = here.all(inside, ok), here.all(allowed, passed)
        assert inside is not None and allowed is not None
        report = _Report(self._sites, op, list(parts))
        guarded, reachable = self._restrict(op, mask, inside, allowed, here)
        if guarded is None:
            return
        after = Writer.before(guarded)
        for argument, (chosen, index) in parts.items():
            read = after.all(reachable, chosen)
            self._check_read(guarded, _Report(self._sites, op, (argument,)), read, index)
        if isinstance(guarded, tt.LoadOp) and mask is not None and guarded.other is None:
            _check_undefined(guarded, report, mask, next(index for _, index in parts.values()))

    def _access(self, op: Operation, candidates: Sequence[int]) -> None:
        pointer = op.operands[0]
        here = Writer.before(op)
        mask = _mask(op)
        inside: SSAValue | None = None
        first: SSAValue | None = None
        summed = len(candidates) == 1 and not self._recasts
        for argument in candidates:
            if summed:
                index = self._index(pointer, argument) or here.integer(0, alike(pointer.type, i64))
                ok = self._within(index, argument, pointee_bytes(pointer), here)
            else:
                index, ok = self._by_address(pointer, argument, here)
            inside = here.any(inside, ok)
            first = index if first is None else first
        assert inside is not None and first is not None
        report = _Report(self._sites, op, candidates)
        passed: list[SSAValue] = []
        must = inside
        exact = self._exact_index(pointer) if summed else None
        if exact is not None and exact is not self._indices[pointer]:
            equal = here.equal(exact, first)
            passed.append(report.check("overflow", _access_name(op), here, mask, equal, exact))
            # One finding for each element.
            must = here.any(inside, here.inverted(equal))
            inside = here.all(inside, equal)
        text = _access_text(op, mask)
        passed.append(report.check("outside", text, here, mask, must, first))
        guarded, reachable = self._restrict(op, mask, inside, here.all(*passed), here)
        only = candidates[0] if len(candidates) == 1 else None
        self._check_read(guarded, report, reachable, first, only)
        if isinstance(guarded, tt.LoadOp) and mask is not None and guarded.other is None:
            _check_undefined(guarded, report, mask, first)
        if guarded is not None and only is not None and pointee_bytes(pointer) == pointee_bytes(self._argument(only)):
            self._guarded[op] = guarded, reachable, first, only
        if isinstance(guarded, tt.StoreOp) and only is not None:
            if only in self._maps:
                self._note_written(guarded, reachable, first, only)
            if self._compares:
                self._check_stored(guarded, report, reachable, first, only)

    def _within(self, index: SSAValue, argument: int, size: int, here: Writer) -> SSAValue:
        """Return whether an argument's array has an index, for elements of `size` bytes."""
        low, extent = (like(here, limit, index.type) for limit in self._limit(argument, size))
        return here.below_unsigned(here.subtract(index, low), extent)

    def _by_address(self, pointer: SSAValue, argument: int, here: Writer) -> tuple[SSAValue, SSAValue]:
        """Return the index in an argument, from two addresses, and whether all bytes are the array's."""
        bytes, index = self._distance(pointer, argument, pointee_bytes(self._argument(argument)), here)
        return index, self._holds(bytes, *self._extents[argument], pointee_bytes(pointer), here)

    @staticmethod
    def _holds(place: SSAValue, low: SSAValue, extent: SSAValue, size: int, here: Writer) -> SSAValue:
        """Return whether `size` bytes at a place are among the `extent` bytes from `low`."""
        last = here.subtract(extent, here.integer(size - 1, i64))
        # An extent has less than 2^63 bytes.
        firsts = here.write(arith.MaxSIOp, last, here.integer(0, i64))
        distance = here.subtract(place, like(here, low, place.type))
        return here.below_unsigned(distance, like(here, firsts, place.type))

    def _restrict(
        self, op: Operation, mask: SSAValue | None, inside: SSAValue, allowed: SSAValue, here: Writer
    ) -> tuple[Operation | None, SSAValue]:
        """Make an access reach only what it may; return what `_guard` returns, and the access's mask.

        Args:
            inside: whether an element may be accessed.
            allowed: whether all may.
        """
        # A scalar's result is that it is inside. A tile without a finding needs no mask for each element.
        reachable = allowed
        if isinstance(inside.type, TensorType):
            reachable = here.any(like(here, allowed, inside.type), inside)
        reachable = here.all(mask, reachable)
        return self._guard(op, reachable, allowed), reachable

    def _stray(self, op: Operation) -> None:
        """Check an access whose address may be made of a number or come from memory: it must be in any known array."""
        pointer = op.operands[0]
        here = Writer.before(op)
        mask, size, wide = _mask(op), pointee_bytes(pointer), alike(pointer.type, i64)
        address = here.insert(tt.PtrToIntOp.create(operands=[pointer], result_types=[wide])).results[0]
        inside = self._listed(address, size, here)
        for argument in self._pointers:
            _, ok = self._by_address(pointer, argument.index, here)
            inside = here.any(inside, ok)
        report = _Report(self._sites, op, ())
        text = _access_text(op, mask)
        allowed = report.check("stray", text, here, mask, inside, address)
        guarded, reachable = self._restrict(op, mask, inside, allowed, here)
        self._check_read(guarded, report, reachable, address)

    def _listed(self, address: SSAValue, size: int, here: Writer) -> SSAValue:
        """Return whether addresses are in memory that the table has: rows of a first address and a number of bytes."""
        if self._table is None:
            self._table = self._append_array(i64, i32)
        table, rows = self._table
        found = here.integer(0, alike(address.type, i1))
        body = Block(arg_types=[i32, found.type])
        inner = Writer(InsertPoint.at_end(body))
        place = inner.add(body.args[0], body.args[0])

        def part(at: int) -> SSAValue:
            pointer = advance(inner, table, inner.add(place, inner.integer(at, i32)))
            return inner.insert(tt.LoadOp.build(operands=[pointer, [], []], result_types=[i64])).result

        ok = self._holds(address, part(0), part(1), size, inner)
        inner.insert(scf.YieldOp(inner.any(body.args[1], ok)))
        zero, one = (here.integer(number, i32) for number in (0, 1))
        return here.insert(scf.ForOp(zero, rows, one, [found], Region(body))).results[0]

    def _check_read(
        self, guarded: Operation | None, report: _Report, mask: SSAValue, index: SSAValue, argument: int | None = None
    ) -> None:
        """Check that what an access reads is not poison: the contents of memory that nobody has written.

        Args:
            argument: the number of the argument that is read, if it is one.
        """
        # An atomic operation whose old value is used cannot be spread over memories.
        reads = isinstance(guarded, tt.LoadOp) or (
            isinstance(guarded, tt.AtomicRMWOp) and self._shares and not _exchanges(guarded)
        )
        if guarded is None or not reads:
            return
        (value,) = guarded.results
        element = _element(value.type)
        if not isinstance(element, FixedBitwidthType):
            return
        here = Writer.after(guarded)
        type = alike(value.type, IntegerType(element.bitwidth))
        number = value if value.type == type else here.write(BitcastOp, value, type)
        kind = "unwritten"
        if element.bitwidth in (32, 64):
            written = here.unequal(number, here.integer(POISON | POISON << 32, type))
        elif isinstance(element, Float16Type | BFloat16Type):
            halves = [here.integer(half, type) for half in (POISON >> 16, POISON & 0xFFFF)]
            written = here.all(*[here.unequal(number, half) for half in halves])
        elif argument in self._mapped and pointee_bytes(guarded.operands[0]) == pointee_bytes(self._argument(argument)):
            kind = MAPPED
            # The lower byte of the poison that elements have; 0 of those that are written.
            pointer, there = self._element(self._map(argument), argument, mask, index, here)
            byte_type = alike(index.type, IntegerType(8))
            before = here.load(pointer, there, here.integer(0, byte_type))
            byte = number if element.bitwidth == 8 else here.write(TruncIOp, number, byte_type)
            written = here.equal(before, here.integer(0, byte_type))
            written = here.any(written, here.unequal(byte, before))
        else:
            return
        report.check(kind, _access_name(guarded), here, mask, written, index)

    def _place(
        self, argument: int, size: SSAValue, mask: SSAValue, index: SSAValue, here: Writer
    ) -> Sequence[SSAValue]:
        """Return the number of each element of an argument from its first one, and a mask of those below a size."""
        limits = self._limit(argument, pointee_bytes(self._argument(argument)))
        low, _ = (like(here, limit, index.type) for limit in limits)
        place = here.subtract(index, low)
        there = here.below_unsigned(place, like(here, size, index.type))
        return place, here.all(mask, there)

    def _element(
        self, array: _Array, argument: int, mask: SSAValue, index: SSAValue, here: Writer
    ) -> tuple[SSAValue, SSAValue]:
        """Return pointers into an appended array with a word for each element, and a mask of those that it has."""
        start, size = array
        place, there = self._place(argument, size, mask, index, here)
        base = like(here, start, alike(index.type, start.type))
        return advance(here, base, place), there

    def _map(self, argument: int) -> _Array:
        return self._array(self._maps, argument, IntegerType(8))

    def _note_written(self, store: tt.StoreOp, mask: SSAValue, index: SSAValue, argument: int) -> None:
        """Note in the map of an argument what a store writes."""
        here = Writer.after(store)
        pointer, there = self._element(self._map(argument), argument, mask, index, here)
        zero = here.integer(0, alike(index.type, IntegerType(8)))
        here.insert(tt.StoreOp.build(operands=[pointer, zero, [there]]))

    def _check_stored(self, store: tt.StoreOp, report: _Report, mask: SSAValue, index: SSAValue, argument: int) -> None:
        """Check that no other program of the launch stores another value to the same element.

        An element's word in the shadow has the number of the program that stored last, from 1, and below it a hash of
        the value, of as many bits as the grid leaves.
        """
        element = _element(store.value.type)
        if not isinstance(element, FixedBitwidthType) or pointee_bytes(store.ptr) != pointee_bytes(
            self._argument(argument)
        ):
            return
        here = Writer.after(store)
        wide, narrow = index.type, alike(index.type, i32)
        pointer, mask = self._element(self._array(self._shadows, argument, i32), argument, mask, index, here)
        program, bits, rest = (like(here, number, narrow) for number in self._program())
        hash = _hash(store.value, element.bitwidth, narrow, here)
        word = here.any(program, here.shift_right_unsigned(hash, rest))
        kind = {"kind": StringAttr("exch")}
        exchange = tt.AtomicRMWOp.create(operands=[pointer, word, mask], result_types=[narrow], properties=kind)
        exchange.location = store.location
        old = here.insert(exchange).results[0]

        # The first store, one by the same program, or one of the same value.
        zero = here.integer(0, narrow)
        different = here.differing_bits(old, word)
        ok = here.equal(old, zero)
        for part in (here.shift_right_unsigned(different, bits), here.shift_left(different, rest)):
            ok = here.any(ok, here.equal(part, zero))
        other = here.write(ExtUIOp, here.shift_right_unsigned(old, bits), wide)
        other = here.shift_left(other, here.integer(INDEX_BITS, wide))
        lower = here.integer((1 << INDEX_BITS) - 1, wide)
        report.check("conflict", "store", here, mask, ok, here.any(other, here.all(index, lower)))

    # The order of accesses.

    def _unordered_pairs(self) -> list[tuple[Operation, Operation]]:
        """Return pairs of accesses between which a device with several threads for a program needs a barrier."""
        # If a barrier is under a condition or in a loop, it is unknown which accesses came before it.
        barriers = filter(is_barrier, self._function.body.walk())
        if not self._shares or any(op.parent_op() is not self._function for op in barriers):
            return []
        meetings = Meetings(self._function, lambda access: extents(access.operands[0]))
        pairs = UnorderedPairs(self._function, meetings).before.values()
        found = {(earlier.op, later) for some in pairs for earlier, later in some}
        places = {op: place for place, op in enumerate(self._function.body.walk())}
        # Atomic operations meet on purpose.
        met = [pair for pair in found if not all(isinstance(each, _ATOMICS) for each in pair)]
        return sorted(met, key=lambda pair: (places[pair[1]], places[pair[0]]))

    def _check_order(self, pairs: Sequence[tuple[Operation, Operation]]) -> None:
        """Check that the accesses of each pair do not meet at an element, except from the same element of both tiles.

        An element's word in the shadow has the number of the program that loaded it last, or stored it last, from 1,
        and below it the lowest bits of the position in the tile, which the tile's shape changes.
        """
        earlier: dict[tuple[Operation, str], list[Operation]] = {}
        shadows: dict[tuple[str, int], _Array] = {}
        for first, later in pairs:
            if first in self._guarded and later in self._guarded:
                earlier.setdefault((later, AFTER_STORE if writes(first) else AFTER_LOAD), []).append(first)
        for (later, kind), some in earlier.items():
            guarded, mask, index, argument = self._guarded[later]
            here = Writer.before(guarded)
            shadow = self._array(shadows, (kind, argument), i32)
            pointer, there, word, bits = self._order_word(later, shadow, here)
            zero = here.integer(0, word.type)
            different = here.differing_bits(here.load(pointer, there, zero), word)
            ok = here.unequal(here.shift_right_unsigned(different, bits), zero)
            ok = here.any(ok, here.equal(different, zero))
            places = " or ".join(
                f"the {_access_name(op)} at {Site(kind, '', _source_places(op)).location()}" for op in some
            )
            text = f"{_access_name(later)} after {places}"
            _Report(self._sites, later, (argument,)).check(kind, text, here, mask, ok, index)
        for access, kind in dict.fromkeys((op, kind) for (_, kind), some in earlier.items() for op in some):
            guarded, *_, argument = self._guarded[access]
            here = Writer.after(guarded)
            pointer, there, word, _ = self._order_word(access, shadows[kind, argument], here)
            here.insert(tt.StoreOp.build(operands=[pointer, word, [there]]))

    def _order_word(
        self, access: Operation, shadow: _Array, here: Writer
    ) -> tuple[SSAValue, SSAValue, SSAValue, SSAValue]:
        """Return where an access's words in a shadow are, which of them there are, the words, and their lower bits."""
        _, mask, index, argument = self._guarded[access]
        start, size = shadow
        place, there = self._place(argument, size, mask, index, here)
        base = like(here, start, alike(index.type, start.type))
        program, bits, rest = (like(here, number, alike(index.type, i32)) for number in self._program())
        shape = here.integer(zlib.crc32(repr(extents(index)).encode()) >> 8, program.type)
        position = here.differing_bits(positions(here, program.type), shape)
        word = here.any(program, here.shift_right_unsigned(here.shift_left(position, rest), rest))
        return advance(here, base, place), there, word, bits

    def _program(self) -> tuple[SSAValue, SSAValue, SSAValue]:
        """Return the upper bits of a word of a shadow; how many bits a value has below them, and how many there are.

        The upper bits are the number of the program in its grid, from 1; in the largest grids several programs have
        the same one.
        """
        if self._number is None:
            here = Writer.at_start(self._function.body.blocks[0])
            ids, sizes = (
                [kind.create(properties={"axis": IntegerAttr(axis, 32)}, result_types=[i32]) for axis in range(3)]
                for kind in (tt.GetProgramIdOp, tt.GetNumProgramsOp)
            )
            here.insert([*ids, *sizes])
            number: SSAValue = ids[2].results[0]
            total: SSAValue = sizes[2].results[0]
            for axis in (1, 0):
                number = here.add(here.multiply(number, sizes[axis].results[0]), ids[axis].results[0])
                total = here.multiply(total, sizes[axis].results[0])
            # At least 8 bits for the value, and all that are left in smaller grids.
            bits: SSAValue = here.integer(32 - PROGRAM_BITS, i32)
            for fewer in FEWER_PROGRAM_BITS:
                fits = here.below_unsigned(total, here.integer(1 << fewer, i32))
                bits = here.write(SelectOp, fits, here.integer(32 - fewer, i32), bits)
            number = here.write(arith.RemUIOp, number, here.integer((1 << PROGRAM_BITS) - 1, i32))
            upper = here.shift_left(here.add(number, here.integer(1, i32)), bits)
            self._number = upper, bits, here.subtract(here.integer(32, i32), bits)
        return self._number

    # Divisions.

    def _division(self, op: Operation) -> None:
        """Check a division of integers where its result counts."""
        lhs, rhs = op.operands
        known = splat_constant(rhs)
        signed = isinstance(op, arith.DivSIOp | arith.RemSIOp)
        if integer_width(rhs) == 1 or is_combined(op) or known not in (None, 0, -1) or (known == -1 and not signed):
            return
        sinks = _uses_with_masks(op.results[0])
        report = _Report(self._sites, op, ())
        text = "division" if isinstance(op, arith.DivSIOp | arith.DivUIOp) else "remainder"
        for before, mask in [(op, None)] if sinks is None else sinks:
            here = Writer.before(before)
            ok = here.unequal(rhs, here.integer(0, rhs.type))
            if signed:
                lowest = here.integer(1 << integer_width(rhs) - 1, rhs.type)
                minus = here.integer(-1, rhs.type)
                ok = here.all(ok, here.any(here.unequal(lhs, lowest), here.unequal(rhs, minus)))
            report.check("division", text, here, mask, ok, rhs)

    def _guard(self, op: Operation, mask: SSAValue, passed: SSAValue) -> Operation | None:
        """Give an access a mask, and return it; one that cannot have any is executed if all its elements passed."""
        match op:
            case tt.LoadOp():
                others = [op.other] if op.other is not None else []
                properties = {name: value for name, value in op.properties.items() if name != "operandSegmentSizes"}
                guarded: Operation = tt.LoadOp.build(
                    operands=[op.ptr, [mask], others], result_types=[op.result.type], properties=properties
                )
            case tt.StoreOp():
                guarded = tt.StoreOp.build(operands=[op.ptr, op.value, [mask]], properties=op.properties)
            case tt.AtomicRMWOp() | tt.AtomicStoreOp() | tt.AtomicLoadOp():
                values = [op.ptr] if isinstance(op, tt.AtomicLoadOp) else [op.ptr, op.value]
                guarded = type(op).create(
                    operands=[*values, mask], result_types=op.result_types, properties=op.properties
                )
            case _:
                _put_under(op, passed)
                return None
        guarded.attributes |= op.attributes
        guarded.location = op.location
        for old, new in zip(op.results, guarded.results, strict=True):
            new.name_hint = old.name_hint
        Rewriter.replace_op(op, guarded)
        return guarded


def _put_under(op: Operation, passed: SSAValue) -> None:
    """Execute an operation only if all its elements passed; else its results are zeros."""
    copy = op.clone()
    copy.location = op.location
    zeros = [ConstantOp([0], type) for type in op.result_types]
    inner = Region(Block([copy, scf.YieldOp(*copy.results)]))
    otherwise = Region(Block([*zeros, scf.YieldOp(*zeros)]))
    guarded = Writer.before(op).insert(scf.IfOp(passed, list(op.result_types), inner, otherwise))
    guarded.location = op.location
    Rewriter.replace_op(op, [], list(guarded.results))


def _check_undefined(load: tt.LoadOp, report: _Report, mask: SSAValue, index: SSAValue) -> None:
    """Check that elements which a mask leaves undefined are not combined with others, and not stored."""
    reported = set[int]()
    for use, axis, carried in undefined_uses(load.result):
        if carried and (axis is None or axis in reported):
            continue
        # The mask is known where the load is, but not always where a loop's result is used.
        here = Writer.after(load) if carried else Writer.before(use)
        if axis is None:
            name, ok = "store", mask
            stored = _mask(use)
            if stored is mask:
                continue
            ok = here.unless(stored and in_layout(here, stored, mask.type), mask)
        else:
            name = "product" if is_product(use) else "scan" if isinstance(use, tt.ScanOp) else "reduction"
            # If a whole row is masked off, the kernel may ignore its result.
            terms = _conjuncts(mask)
            along = [term for term in terms if axis in varying_dimensions(term)]
            # Undefined elements behind all others change none of them.
            if isinstance(use, tt.ScanOp) and not use.reverse.value and all(ends_once(term, axis) for term in along):
                continue
            reported.add(axis)
            others = [term for term in terms if axis not in varying_dimensions(term)]
            if not along:
                continue
            ok = here.all(*along)
            for term in others:
                ok = here.unless(term, ok)
        report.check("undefined", f"load for a {name}", here, None, ok, index)


class _Report:
    """Writes the checks of one operation.

    Args:
        sites: the kernel's; those of the checks are added.
        op: the operation, whose place findings name.
        arguments: the numbers of the arguments that it is about.
    """

    def __init__(self, sites: list[Site], op: Operation, arguments: Sequence[int]) -> None:
        self._sites = sites
        self._location = op.location
        self._places = _source_places(op)
        self._arguments = tuple(arguments)

    def check(
        self, kind: str, text: str, here: Writer, mask: SSAValue | None, ok: SSAValue, value: SSAValue
    ) -> SSAValue:
        """Write a check of the elements that a mask has; return whether all of them passed."""
        condition, value = here.unless(mask, ok), here.sign_extend(value)
        check = tile.CheckOp(len(self._sites), condition, ends=False, value=value)
        check.location = self._location
        here.insert(check)
        shape = tuple(condition.type.get_shape()) if isinstance(condition.type, TensorType) else ()
        site = Site(kind, text, self._places, "i64", shape, signed=True, arguments=self._arguments)
        self._sites.append(site)
        return check.result


def _source_places(op: Operation) -> tuple[tuple[str, int], ...]:
    return tuple((line.filename.data, line.line.data) for line in source_lines(op.location))


def _exchanges(op: Operation) -> bool:
    return isinstance(op, tt.AtomicRMWOp) and op.kind.data == "exch"


def _hash(value: SSAValue, bits: int, narrow: Attribute, here: Writer) -> SSAValue:
    """Return a hash of a value's bits, an i32, whose upper bits are the best."""
    element = _element(value.type)
    # Numbers of 8 and 16 bits are equal as f32 if and only if they are equal. llc of LLVM 22 cannot select vectors of
    # their bits in more bits, if these bits are cut out of a register.
    if isinstance(element, Float16Type | BFloat16Type):
        value, bits = here.write(arith.ExtFOp, value, alike(narrow, f32)), 32
    elif bits in (8, 16):
        if not isinstance(element, IntegerType):
            value = here.write(BitcastOp, value, alike(narrow, IntegerType(bits)))
        value, bits = here.write(SIToFPOp, value, alike(narrow, f32)), 32
    integer = alike(narrow, IntegerType(bits))
    if value.type != integer:
        value = here.write(BitcastOp, value, integer)
    if bits < 32:
        value, integer = here.write(ExtUIOp, value, narrow), narrow
    # The factors are the golden ratio's fraction times 2^32 and 2^64, made odd: Fibonacci hashing (Knuth, volume 3,
    # section 6.4).
    factor = here.integer(0x9E3779B97F4A7C15 if bits == 64 else 0x9E3779B1, integer)
    product = here.multiply(value, factor)
    if bits < 64:
        return product
    half = here.integer(32, integer)
    return here.write(TruncIOp, here.shift_right_unsigned(product, half), narrow)


def _mask(op: Operation) -> SSAValue | None:
    """Return the mask of an access; None if it is set everywhere. Triton gives every atomic operation one."""
    mask: SSAValue | None = getattr(op, "mask", None)
    return None if mask is None or splat_constant(mask) in (1, -1) else mask


def _uses_with_masks(value: SSAValue) -> list[tuple[Operation, SSAValue | None]] | None:
    """Return the operations at which elements of a tile count, each with the mask of those that do.

    Returns:
        None if an operation may need all elements.
    """
    found: list[tuple[Operation, SSAValue | None]] = []
    pending, seen = [value], set[SSAValue]()
    mask_type = alike(value.type, i1)
    while pending:
        current = pending.pop()
        for use in list(current.uses):
            user = use.operation
            mask = getattr(user, "mask", None)
            if (
                isinstance(user, _ACCESSES)
                and mask is not None
                and use.index < len(user.operands)
                and mask is not current
            ):
                if isinstance(user, tt.LoadOp) and current is user.other:
                    return None
                found.append((user, in_layout(Writer.before(user), mask, mask_type)))
            elif isinstance(user, SelectOp) and use.index and user.cond.type == alike(current.type, i1):
                here = Writer.before(user)
                chosen = in_layout(here, user.cond, mask_type)
                found.append((user, here.inverted(chosen) if use.index == 2 else chosen))
            elif is_elementwise(user) or is_same(user):
                if user.results[0] not in seen:
                    seen.add(user.results[0])
                    pending.append(user.results[0])
            else:
                return None
    return found or None


def _conjuncts(mask: SSAValue) -> list[SSAValue]:
    """Return the conditions of which a mask is the conjunction."""
    op = mask.owner
    return [*_conjuncts(op.lhs), *_conjuncts(op.rhs)] if isinstance(op, arith.AndIOp) else [mask]


def _is_pointer(value: SSAValue) -> bool:
    return isinstance(value.type, tt.PointerType)


def _element(type: Attribute) -> Attribute:
    return type.element_type if isinstance(type, TensorType) else type


def _access_text(op: Operation, mask: SSAValue | None) -> str:
    return f"{'unmasked' if mask is None else 'masked'} {_access_name(op)}"


def _access_name(op: Operation) -> str:
    """Return what an access does, for a message."""
    match op:
        case tt.LoadOp():
            return "load"
        case tt.StoreOp():
            return "store"
        case tt.AtomicRMWOp():
            return f"atomic {op.kind.data.removeprefix('f')}"
    return op.name.removeprefix("tt.").replace("_", " ")
