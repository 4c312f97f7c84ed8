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

An array that the kernel writes may have a shadow: a word for each element, with the program that stored to it and a
hash of the value. Each store exchanges the word, and compares it with the one before.

The pass works on TTIR and on TTGIR: what it writes has the layout of the pointers.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
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

from ..dialects import tile, tt, ttg
from ..dialects.arith import BitcastOp, CmpiOp, ConstantOp, ExtSIOp, ExtUIOp, SelectOp, SIToFPOp, TruncIOp
from ..errors import source_lines, unsupported
from ..front.offsets import splat_constant
from ..front.writes import Sources
from ..log import NOTE, Site
from ..ops.elementwise import is_elementwise
from . import POISON
from .undefined import undefined_uses, varying

_EQ, _NE, _ULT = 0, 1, 6
# Operations that move the elements of a tile: an index moves as the pointer does.
_MOVES = (tt.SplatOp, tt.ExpandDimsOp, tt.BroadcastOp, tt.TransOp, tt.ReshapeOp, ttg.ConvertLayoutOp)
_ATOMICS = (tt.AtomicRMWOp, tt.AtomicCASOp, tt.AtomicLoadOp, tt.AtomicStoreOp, tt.AtomicPollOp)
_DIVISIONS = (arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp)
_ORDERING = (tt.AtomicCASOp, tt.AtomicLoadOp, tt.AtomicStoreOp, tt.AtomicPollOp)
_SUMS = (arith.AddiOp, arith.SubiOp, arith.MuliOp)
_ACCESSES = (tt.LoadOp, tt.StoreOp, *_ATOMICS)


def instrument(function: tt.FuncOp, sites: list[Site], shadowed: Sequence[int]) -> None:
    """Add checks to a kernel, in place, and their sites to those that the kernel has.

    Args:
        shadowed: the numbers of the arguments that get a shadow: those that the kernel may write, or none.

    Raises:
        UnsupportedOperation: an access has a form that cannot be checked.
    """
    _Checks(function, sites, shadowed).add()


class _Checks:
    def __init__(self, function: tt.FuncOp, sites: list[Site], shadowed: Sequence[int]) -> None:
        self._function = function
        self._sites = sites
        self._shadowed = shadowed
        # The shadows, and their elements.
        self._shadows: dict[int, tuple[SSAValue, SSAValue]] = {}
        self._sources = Sources(function)
        self._pointers = [argument for argument in function.body.blocks[0].args if _is_pointer(argument)]
        self._extents: dict[int, tuple[SSAValue, SSAValue]] = {}
        self._limits: dict[tuple[int, int], tuple[SSAValue, SSAValue]] = {}
        self._indices: dict[SSAValue, SSAValue | None] = {}
        self._number: SSAValue | None = None
        self._exacts: dict[SSAValue, SSAValue] = {}
        self._exact_indices: dict[SSAValue, SSAValue | None] = {}

    def add(self) -> None:
        accesses = [op for op in self._function.body.walk() if isinstance(op, _ACCESSES)]
        origins = {op: self._sources.origins([op.ptr]) for op in accesses}
        self._add_arguments()
        for op in list(self._function.body.walk()):
            if isinstance(op, _DIVISIONS):
                self._division(op)
        # Where programs order each other, one may overwrite what another one wrote.
        ordering = next((op for op in accesses if isinstance(op, _ORDERING) or _exchanges(op)), None)
        if ordering is not None and self._shadows:
            self._note(ordering, "programs may order each other here, so what several of them write is not compared")
            self._shadows.clear()
        for op in accesses:
            candidates, unknown = origins[op]
            if unknown:
                self._note(op, f"this {_what(op)} is not checked: its address is made of a number or comes from memory")
            else:
                self._access(op, candidates)

    def _note(self, op: Operation, text: str) -> None:
        """Note what is not checked, for a person. It is a check that passes: a kernel with sites takes a log."""
        here = Builder(InsertPoint.at_start(self._function.body.blocks[0]))
        passes = here.insert(ConstantOp.integer(1, i1)).result
        here.insert(tile.CheckOp(len(self._sites), passes, ends=False))
        self._sites.append(Site(NOTE, text, _places(op)))

    # The extents of the arguments.

    def _add_arguments(self) -> None:
        """Append arguments: the extents, two for each pointer in their order, and the shadows with their sizes."""
        function = self._function
        block = function.body.blocks[0]
        for pointer in self._pointers:
            self._extents[pointer.index] = (
                block.insert_arg(i64, len(block.args)),
                block.insert_arg(i64, len(block.args)),
            )
        for number in self._shadowed:
            shadow = block.insert_arg(tt.PointerType(i64, IntegerAttr(1, 32)), len(block.args))
            self._shadows[number] = shadow, block.insert_arg(i64, len(block.args))
        outputs = function.function_type.outputs.data
        types = [argument.type for argument in block.args]
        function.properties["function_type"] = FunctionType.from_lists(types, outputs)
        if function.arg_attrs is not None:
            more = [DictionaryAttr({})] * (len(block.args) - len(function.arg_attrs.data))
            function.properties["arg_attrs"] = ArrayAttr([*function.arg_attrs.data, *more])

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

    def _exact(self, value: SSAValue) -> SSAValue:
        """Return an integer as an i64, computed without wrapping around; the value itself if nothing computes it."""
        if value not in self._exacts:
            self._exacts[value] = self._find_exact(value)
        return self._exacts[value]

    def _find_exact(self, value: SSAValue) -> SSAValue:
        op, wide = value.owner, _alike(value.type, i64)
        match op:
            case ExtSIOp() | TruncIOp():
                return self._exact(op.input)
            case arith.AddiOp() | arith.SubiOp() | arith.MuliOp():
                parts = self._exact(op.lhs), self._exact(op.rhs)
                if parts == (op.lhs, op.rhs):
                    return value
                return _behind(value).insert(type(op)(*parts)).results[0]
            case _ if isinstance(op, _MOVES):
                source = self._exact(op.operands[0])
                return value if source is op.operands[0] else _moved(op, source, wide)
            case ConstantOp():
                return value if value.type == wide else _behind(value).insert(ConstantOp(_words(op), wide)).result
        return _widened(value, _behind(value))

    def _exact_index(self, pointer: SSAValue) -> SSAValue | None:
        """Return what `_index` returns, from offsets that do not wrap around."""
        if pointer not in self._exact_indices:
            self._exact_indices[pointer] = self._find_exact_index(pointer)
        return self._exact_indices[pointer]

    def _find_exact_index(self, pointer: SSAValue) -> SSAValue | None:
        op, here = pointer.owner, _behind(pointer)
        match op:
            case _ if isinstance(op, _MOVES):
                source, index = self._exact_index(op.operands[0]), self._indices[op.operands[0]]
                return (
                    self._indices[pointer]
                    if source is index or source is None
                    else _moved(op, source, _alike(pointer.type, i64))
                )
            case tt.AddPtrOp() if _narrow(op.offset):
                before, step = self._exact_index(op.ptr), self._exact(op.offset)
                return step if before is None else here.insert(arith.AddiOp(before, step)).result
            case tt.AddPtrOp():
                before, index = self._exact_index(op.ptr), self._indices[op.ptr]
                if before is index or before is None:
                    return self._indices[pointer]
                return here.insert(arith.AddiOp(before, _widened(op.offset, here))).result
            case tt.BitcastOp() if op.src in self._indices:
                return self._exact_index(op.src)
        return self._indices[pointer]

    # Accesses.

    def _access(self, op: Operation, candidates: Sequence[int]) -> None:
        pointer = op.operands[0]
        here = Builder(InsertPoint.before(op))
        condition = _alike(pointer.type, i1)
        wide = _alike(pointer.type, i64)
        mask = _mask(op)
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
        report = _Report(self._sites, op, candidates)
        passed: list[SSAValue] = []
        must = inside
        exact = self._exact_index(pointer) if len(candidates) == 1 else None
        if exact is not None and exact is not self._indices[pointer]:
            equal = here.insert(CmpiOp(_EQ, exact, first)).result
            passed.append(report.check("overflow", _what(op), here, _unless(mask, equal, here), exact))
            # One finding for each element.
            must = here.insert(arith.OrIOp(inside, _inverted(equal, here))).result
            inside = here.insert(arith.AndIOp(inside, equal)).result
        text = f"{'unmasked' if mask is None else 'masked'} {_what(op)}"
        passed.append(report.check("outside", text, here, _unless(mask, must, here), first))
        allowed = passed[0]
        for each in passed[1:]:
            allowed = here.insert(arith.AndIOp(allowed, each)).result
        # A scalar's result is that it is inside. A tile without a finding needs no mask for each element.
        whole = allowed
        if isinstance(condition, TensorType):
            whole = here.insert(arith.OrIOp(_spread(allowed, condition, here), inside)).result
        if mask is not None:
            whole = here.insert(arith.AndIOp(mask, whole)).result
        made = self._guard(op, whole, allowed)
        if isinstance(made, tt.LoadOp):
            self._check_loaded(made, report, whole, first)
            if mask is not None and made.other is None:
                _check_undefined(made, report, mask, first)
        if isinstance(made, tt.StoreOp) and len(candidates) == 1 and candidates[0] in self._shadows:
            self._check_stored(made, report, whole, first, candidates[0])

    @staticmethod
    def _check_loaded(load: tt.LoadOp, report: _Report, mask: SSAValue, index: SSAValue) -> None:
        """Check that what is loaded is not poison: the contents of memory that nobody has written."""
        element = _element(load.result.type)
        if not isinstance(element, FixedBitwidthType) or element.bitwidth not in (32, 64):
            return
        here = Builder(InsertPoint.after(load))
        bits: SSAValue = load.result
        type = _alike(bits.type, IntegerType(element.bitwidth))
        if bits.type != type:
            bits = here.insert(BitcastOp(bits, type)).result
        word = POISON | POISON << 32 if element.bitwidth == 64 else POISON
        written = here.insert(CmpiOp(_NE, bits, here.insert(ConstantOp([word], type)).result)).result
        report.check("unwritten", "load", here, _unless(mask, written, here), index)

    def _check_stored(self, store: tt.StoreOp, report: _Report, mask: SSAValue, index: SSAValue, argument: int) -> None:
        """Check that no other program of the launch stores another value to the same element.

        An element's word in the shadow has the number of the program that stored last, from 1, and a hash of the value.
        """
        element = _element(store.value.type)
        if not isinstance(element, FixedBitwidthType):
            return
        here = Builder(InsertPoint.after(store))
        wide = index.type
        shadow, size = self._shadows[argument]
        low, _ = (_spread(limit, wide, here) for limit in self._limit(argument, _size(store.ptr)))
        place = here.insert(arith.SubiOp(index, low)).result
        there = here.insert(CmpiOp(_ULT, place, _spread(size, wide, here))).result
        mask = here.insert(arith.AndIOp(mask, there)).result
        base = _spread(shadow, _alike(wide, shadow.type), here)
        pointer = here.insert(tt.AddPtrOp(base, place)).result
        program = _spread(self._program(), wide, here)
        word = here.insert(arith.OrIOp(program, _hashed(store.value, element.bitwidth, wide, here))).result
        kind = {"kind": StringAttr("exch")}
        exchange = tt.AtomicRMWOp.create(operands=[pointer, word, mask], result_types=[wide], properties=kind)
        exchange.location = store.location
        old = here.insert(exchange).results[0]

        def constant(number: int) -> SSAValue:
            return here.insert(ConstantOp.integer(number, wide)).result

        # The first store, one by the same program, or one of the same value.
        different = here.insert(arith.XOrIOp(old, word)).result
        value = here.insert(arith.AndIOp(different, constant((1 << 32) - 1))).result
        owner = here.insert(arith.ShRUIOp(different, constant(32))).result
        ok = here.insert(CmpiOp(_EQ, old, constant(0))).result
        for part in (owner, value):
            same = here.insert(CmpiOp(_EQ, part, constant(0))).result
            ok = here.insert(arith.OrIOp(ok, same)).result
        other = here.insert(arith.AndIOp(old, constant(-1 << 32))).result
        found = here.insert(arith.OrIOp(other, here.insert(arith.AndIOp(index, constant((1 << 32) - 1))).result)).result
        report.check("conflict", "store", here, _unless(mask, ok, here), found)

    def _program(self) -> SSAValue:
        """Return the number of the program in its grid, from 1, in the upper half of an i64."""
        if self._number is None:
            here = Builder(InsertPoint.at_start(self._function.body.blocks[0]))

            def of(kind: type[Operation], axis: int) -> SSAValue:
                op = kind.create(properties={"axis": IntegerAttr(axis, 32)}, result_types=[i32])
                return here.insert(ExtSIOp(here.insert(op).results[0], i64)).result

            x, y, z = (of(tt.GetProgramIdOp, axis) for axis in range(3))
            for axis, further in ((1, y), (0, x)):
                z = here.insert(arith.MuliOp(z, of(tt.GetNumProgramsOp, axis))).result
                z = here.insert(arith.AddiOp(z, further)).result
            first = here.insert(arith.AddiOp(z, here.insert(ConstantOp.integer(1, i64)).result)).result
            self._number = here.insert(arith.ShLIOp(first, here.insert(ConstantOp.integer(32, i64)).result)).result
        return self._number

    # Divisions.

    def _division(self, op: Operation) -> None:
        """Check a division of integers where its result counts."""
        lhs, rhs = op.operands
        known = splat_constant(rhs)
        signed = isinstance(op, arith.DivSIOp | arith.RemSIOp)
        if _bits(rhs) == 1 or _combines(op) or known not in (None, 0, -1) or (known == -1 and not signed):
            return
        sinks = _sinks(op.results[0])
        report = _Report(self._sites, op, ())
        text = "division" if isinstance(op, arith.DivSIOp | arith.DivUIOp) else "remainder"
        for before, mask in [(op, None)] if sinks is None else sinks:
            here = Builder(InsertPoint.before(before))
            zero = here.insert(ConstantOp([0], rhs.type)).result
            ok = here.insert(CmpiOp(_NE, rhs, zero)).result
            if signed:
                lowest = here.insert(ConstantOp([1 << _bits(rhs) - 1], rhs.type)).result
                minus = here.insert(ConstantOp.integer(-1, rhs.type)).result
                above = here.insert(CmpiOp(_NE, lhs, lowest)).result
                other = here.insert(CmpiOp(_NE, rhs, minus)).result
                ok = here.insert(arith.AndIOp(ok, here.insert(arith.OrIOp(above, other)).result)).result
            report.check("division", text, here, _unless(mask, ok, here), _widened(rhs, here))

    def _guard(self, op: Operation, mask: SSAValue, passed: SSAValue) -> Operation | None:
        """Give an access a mask, and return it; one that cannot have any is executed if all its elements passed."""
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
                return None
        made.attributes |= op.attributes
        made.location = op.location
        for old, new in zip(op.results, made.results, strict=True):
            new.name_hint = old.name_hint
        Rewriter.replace_op(op, made)
        return made

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


def _check_undefined(load: tt.LoadOp, report: _Report, mask: SSAValue, index: SSAValue) -> None:
    """Check that elements which a mask leaves undefined are not combined with others, and not stored."""
    for use, axis in undefined_uses(load.result):
        here = Builder(InsertPoint.before(use))
        if axis is None:
            name, ok = "store", mask
            stored = _mask(use)
            if stored is mask:
                continue
            ok = _unless(stored, mask, here)
        else:
            name = "product" if isinstance(use, tt.DotOp) else "reduction"
            # A row that is off as a whole gives a result that nobody need use.
            terms = _terms(mask)
            along = [term for term in terms if axis in varying(term)]
            others = [term for term in terms if axis not in varying(term)]
            if not along:
                continue
            ok = along[0]
            for term in along[1:]:
                ok = here.insert(arith.AndIOp(ok, term)).result
            for term in others:
                ok = _unless(term, ok, here)
        report.check("undefined", f"load for a {name}", here, ok, index)


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
        self._places = _places(op)
        self._arguments = tuple(arguments)

    def check(self, kind: str, text: str, here: Builder, condition: SSAValue, value: SSAValue) -> SSAValue:
        """Write a check; return whether all elements passed."""
        check = tile.CheckOp(len(self._sites), condition, ends=False, value=value)
        check.location = self._location
        here.insert(check)
        shape = tuple(condition.type.get_shape()) if isinstance(condition.type, TensorType) else ()
        site = Site(kind, text, self._places, "i64", shape, signed=True, arguments=self._arguments)
        self._sites.append(site)
        return check.result


def _places(op: Operation) -> tuple[tuple[str, int], ...]:
    return tuple((line.filename.data, line.line.data) for line in source_lines(op.location))


def _exchanges(op: Operation) -> bool:
    return isinstance(op, tt.AtomicRMWOp) and op.kind.data == "exch"


def _hashed(value: SSAValue, bits: int, wide: Attribute, here: Builder) -> SSAValue:
    """Return the lower 32 bits of an i64: the bits of a value, or a hash of them if there are more."""
    element = _element(value.type)
    # Numbers of 8 and 16 bits are equal as f32 if and only if they are equal. llc of LLVM 22 cannot select vectors of
    # their bits in 64 bits, if these bits are cut out of a register.
    if isinstance(element, Float16Type | BFloat16Type):
        value, bits = here.insert(arith.ExtFOp(value, _alike(wide, f32))).result, 32
    elif bits in (8, 16):
        if not isinstance(element, IntegerType):
            value = here.insert(BitcastOp(value, _alike(wide, IntegerType(bits)))).result
        value, bits = here.insert(SIToFPOp(value, _alike(wide, f32))).result, 32
    integer = _alike(wide, IntegerType(bits))
    if value.type != integer:
        value = here.insert(BitcastOp(value, integer)).result
    if bits < 64:
        return here.insert(ExtUIOp(value, wide)).result
    # The factor is the golden ratio's fraction times 2^64, as in Fibonacci hashing (Knuth, volume 3, section 6.4).
    factor, half = (here.insert(ConstantOp.integer(number, wide)).result for number in (0x9E3779B97F4A7C15, 32))
    return here.insert(arith.ShRUIOp(here.insert(arith.MuliOp(value, factor)).result, half)).result


def _mask(op: Operation) -> SSAValue | None:
    """Return the mask of an access; None if it is set everywhere. Triton gives every atomic operation one."""
    mask: SSAValue | None = getattr(op, "mask", None)
    return None if mask is None or splat_constant(mask) in (1, -1) else mask


def _unless(mask: SSAValue | None, ok: SSAValue, here: Builder) -> SSAValue:
    """Return a condition that holds where the mask is not set, too."""
    return ok if mask is None else here.insert(arith.OrIOp(_inverted(mask, here), ok)).result


def _inverted(condition: SSAValue, here: Builder) -> SSAValue:
    ones = here.insert(ConstantOp([1], condition.type)).result
    return here.insert(arith.XOrIOp(condition, ones)).result


def _moved(op: Operation, source: SSAValue, type: Attribute) -> SSAValue:
    """Write what moves elements for another source, behind the operation."""
    made = op.create(operands=[source], result_types=[type], properties=op.properties, attributes=op.attributes)
    return _behind(op.results[0]).insert(made).results[0]


def _narrow(offset: SSAValue) -> bool:
    """Return whether an offset is computed by sums or products in fewer than 64 bits."""
    pending, seen = [offset], set[SSAValue]()
    while pending:
        value = pending.pop()
        op = value.owner
        if value in seen or not isinstance(op, (*_SUMS, *_MOVES, ExtSIOp, TruncIOp)):
            continue
        seen.add(value)
        if isinstance(op, (*_SUMS, TruncIOp)) and _bits(value) < 64:
            return True
        pending += op.operands
    return False


def _sinks(value: SSAValue) -> list[tuple[Operation, SSAValue | None]] | None:
    """Return the operations at which elements of a tile count, each with the mask of those that do.

    Returns:
        None if an operation may need all elements.
    """
    found: list[tuple[Operation, SSAValue | None]] = []
    pending, seen = [value], set[SSAValue]()
    mask_type = _alike(value.type, i1)
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
                found.append((user, mask))
            elif isinstance(user, SelectOp) and current is not user.operands[0] and user.operands[0].type == mask_type:
                chosen = user.operands[0]
                if use.index == 2:
                    chosen = _inverted(chosen, Builder(InsertPoint.before(user)))
                found.append((user, chosen))
            elif isinstance(user, tt.AddPtrOp) or is_elementwise(user):
                if user.results[0] not in seen:
                    seen.add(user.results[0])
                    pending.append(user.results[0])
            else:
                return None
    return found or None


def _combines(op: Operation) -> bool:
    """Return whether an operation is in a region that is not control flow."""
    around = op.parent_op()
    while around is not None and not isinstance(around, tt.FuncOp):
        if not around.name.startswith("scf."):
            return True
        around = around.parent_op()
    return False


def _terms(mask: SSAValue) -> list[SSAValue]:
    """Return the conditions of which a mask is the conjunction."""
    op = mask.owner
    return [*_terms(op.lhs), *_terms(op.rhs)] if isinstance(op, arith.AndIOp) else [mask]


def _words(op: ConstantOp) -> list[int]:
    return [number % (1 << 64) for number in op.integers]


def _bits(value: SSAValue) -> int:
    type = value.type.element_type if isinstance(value.type, TensorType) else value.type
    return type.width.data if isinstance(type, IntegerType) else 64


def _is_pointer(value: SSAValue) -> bool:
    return isinstance(value.type, tt.PointerType)


def _behind(value: SSAValue) -> Builder:
    """Return a builder that writes directly after a value's definition, where it dominates all uses of the value."""
    owner = value.owner
    return Builder(InsertPoint.at_start(owner) if isinstance(owner, Block) else InsertPoint.after(owner))


def _alike(type: Attribute, element: Attribute) -> Attribute:
    """Return the type of a scalar or tile with other elements: shape and layout stay."""
    return TensorType(element, type.get_shape(), type.encoding) if isinstance(type, TensorType) else element


def _element(type: Attribute) -> Attribute:
    return type.element_type if isinstance(type, TensorType) else type


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
