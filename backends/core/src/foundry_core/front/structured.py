"""Rewrites TTIR to structured form: each access through a tensor of pointers becomes one of a tile of memory.

A tensor of pointers is read as one scalar pointer and offsets. If that is not possible, because its elements point into
different arrays or come from memory, the access keeps the tensor of pointers, and reaches its elements one by one.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.builder import Builder
from xdsl.dialects import arith
from xdsl.dialects.builtin import FixedBitwidthType, IntegerType, ModuleOp, TensorType, i1
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.transforms.dead_code_elimination import dce

from ..analysis.flow import loop_blocks
from ..errors import LoweringError, unsupported
from ..ir import tile, tt
from ..ir.arith import ConstantOp
from ..ir.build import builder_before, like, recast
from ..ir.effects import writes
from ..ir.elements import Decomposition, index_mapping
from ..ir.facts import keeps_bits, pointer_sum
from .blocks import replace_block_pointers
from .calls import replace_functions
from .induction import loops, replace_inductions
from .masks import Masks
from .offsets import STILL, AffineAxis, Axis, GatherAxis, ModuloAxis, Offsets, Sum, shape, splat_constant, widen
from .pairs import replace_pairs
from .returns import replace_returns
from .scalars import Scalars, Writer
from .scaled import replace_scaled
from .sums import widen_sums


def kernel(module: ModuleOp) -> tt.FuncOp:
    """Return the one kernel of a module, from which no function is called."""
    functions = [op for op in module.body.walk() if isinstance(op, tt.FuncOp)]
    if len(functions) != 1:
        raise LoweringError(f"expected one kernel in the module, found {len(functions)}")
    return functions[0]


def structure(module: ModuleOp, instrument: Callable[[tt.FuncOp], None] | None = None) -> ModuleOp:
    """Rewrite a module to structured form in place.

    Args:
        instrument: rewrites the kernel when its loads and stores are of plain pointers, and before they are read.
    """
    function = kernel(module)
    replace_returns(function)
    replace_block_pointers(function)
    body = function.body.block
    replace_functions(body)
    decompose_operations(body)
    replace_scaled(body)
    for loop in loops(body):
        replace_inductions(loop)
    if instrument is not None:
        instrument(function)
    accesses = _Accesses()
    replaced: list[Operation] = []
    for op in list(body.walk()):
        match op:
            case tt.LoadOp() | tt.AtomicLoadOp():
                accesses.load(op)
            case tt.StoreOp():
                accesses.store(op)
            case tt.AtomicRMWOp():
                accesses.change(op, op.kind.data, op.mask)
            case tt.AtomicCASOp():
                accesses.change(op, "cas", None, op.compare)
            case tt.AtomicStoreOp():
                accesses.change(op, "exch", op.mask)
            case tt.AtomicPollOp():
                accesses.wait(op)
            case _:
                continue
        replaced.append(op)
    for op in reversed(replaced):
        Rewriter.erase_op(op)
    dce(module)
    widen_sums(body)
    replace_pairs(body)
    dce(module)
    for op in [op for op in body.walk() if isinstance(op, tile.KeepOp)]:
        around = op.parent_op()
        # It stays if the `while` around it could be deleted without it: nothing else there has an effect. Whether the
        # loop's results are used does not count, because their uses may be deleted later.
        is_needed = around is not None and len(loop_blocks(around)) > 1 and not writes(around)
        if not is_needed:
            Rewriter.erase_op(op)
    return module


class _Accesses:
    """Rewrites loads and stores; what it learns about an offset or a mask serves all its uses."""

    def __init__(self) -> None:
        self._writer = Writer()
        self._offsets = Offsets(self._writer)
        self._masks = Masks(self._offsets, self._writer)
        self._pointers: dict[SSAValue, tuple[SSAValue, Sum]] = {}
        self._axes: dict[tuple[int, Axis, SSAValue], SSAValue] = {}

    def load(self, op: tt.LoadOp | tt.AtomicLoadOp) -> None:
        kind = tile.VolatileLoadOp if isinstance(op, tt.AtomicLoadOp) or op.is_volatile else tile.LoadOp
        other = op.other if isinstance(op, tt.LoadOp) else None
        load = kind(self._place(op.ptr, op.mask), other, op.result.type)
        load.location = op.location
        Builder(InsertPoint.before(op)).insert(load)
        load.result.name_hint = op.result.name_hint
        op.result.replace_all_uses_with(load.result)

    def store(self, op: tt.StoreOp) -> None:
        store = tile.StoreOp(self._place(op.ptr, op.mask), op.value)
        store.location = op.location
        Builder(InsertPoint.before(op)).insert(store)

    def change(
        self,
        op: tt.AtomicRMWOp | tt.AtomicCASOp | tt.AtomicStoreOp,
        kind: str,
        mask: SSAValue | None,
        compare: SSAValue | None = None,
    ) -> None:
        # Triton gives every operation a mask; a scalar one may be a constant, and is then needless.
        known = splat_constant(mask) if mask is not None else 1
        atomic = tile.AtomicOp(kind, self._place(op.ptr, None if known else mask), op.value, compare)
        atomic.location = op.location
        Builder(InsertPoint.before(op)).insert(atomic)
        if op.results:
            atomic.result.name_hint = op.results[0].name_hint
            op.results[0].replace_all_uses_with(atomic.result)

    def wait(self, op: tt.AtomicPollOp) -> None:
        if op.timeout is not None:
            raise unsupported(op, "with a time-out: kernels cannot read a clock on this device")
        poll = tile.PollOp(self._place(op.ptr), op.expected)
        poll.location = op.location
        here = Builder(InsertPoint.before(op))
        here.insert(poll)
        # The wait ends when all elements are as expected.
        done = here.insert(ConstantOp.integer(1, i1)).result
        op.result.replace_all_uses_with(like(here, done, op.result.type))

    def _place(self, pointer: SSAValue, mask: SSAValue | None = None) -> tile.Place:
        base, found = self._pointer(pointer)
        scalars = self._writer.scalars_after(pointer)
        # Dimensions do not share an axis, because their extents differ.
        keys = [(dimension, axis, pointer) for dimension, axis in enumerate(found.axes)]
        for key in keys:
            if key not in self._axes:
                self._axes[key] = self._write_axis(key[1], scalars)
        start, axes = scalars.value(found.start), [self._axes[key] for key in keys]
        if mask is None or not isinstance(mask.type, TensorType):
            return tile.Place(base, start, axes, found.rest, mask=mask)
        ranges, rest = self._masks.ranges(mask), self._masks.rectangle(mask).rest
        return tile.Place(base, start, axes, found.rest, ranges, rest)

    @staticmethod
    def _write_axis(axis: Axis, scalars: Scalars) -> SSAValue:
        match axis:
            case AffineAxis(stride):
                return scalars.builder.insert(tile.AffineOp(scalars.value(stride))).result
            case ModuloAxis(first, modulus, stride, width):
                start, size, step = (scalars.value(part) for part in (first, modulus, stride))
                return scalars.builder.insert(tile.WrappedOp(start, size, step, IntegerType(width))).result
            case GatherAxis(offsets, scale):
                if scale != 1:
                    offsets = widen(offsets, scalars)
                    factor = like(scalars.builder, scalars.value(scale), offsets.type)
                    offsets = scalars.builder.insert(arith.MuliOp(offsets, factor)).result
                return scalars.builder.insert(tile.IndexedOp(offsets)).result

    def _pointer(self, pointer: SSAValue) -> tuple[SSAValue, Sum]:
        """Return (base, offsets in elements) of a pointer or of a tensor of pointers.

        The base is a scalar pointer. It is the tensor itself, with no offsets, if its elements have no common base.
        """
        if pointer not in self._pointers:
            self._pointers[pointer] = self._read(pointer)
        return self._pointers[pointer]

    def _read(self, pointer: SSAValue) -> tuple[SSAValue, Sum]:
        if not isinstance(pointer.type, TensorType):
            return pointer, Sum(0, ())
        op = pointer.owner
        match op:
            case _ if moved := pointer_sum(op):
                base, before = self._pointer(moved[0])
                if base is not moved[0]:
                    return base, self._offsets.add(before, self._offsets.sum_of(moved[1]), pointer, moved[1])
            case _ if (of := index_mapping(pointer)) is not None:
                base, before = self._pointer(of.source)
                known = base is not of.source or not isinstance(base.type, TensorType)
                if known and (after := self._offsets.mapped_sum(pointer, of, before)) is not None:
                    return base, after
            case Operation() if keeps_bits(op):
                base, before = self._pointer(op.operands[0])
                target = pointer.type.element_type
                if base is not op.operands[0] and _bits(base.type) == _bits(target):
                    return recast(self._writer.scalars_after(pointer).builder, base, target), before
        return pointer, Sum(0, (STILL,) * len(shape(pointer)))


def _bits(pointer: Attribute) -> int:
    """Return how many bits the elements that a pointer points to have in memory."""
    if isinstance(pointer, tt.PointerType) and isinstance(pointer.pointee, FixedBitwidthType):
        return max(8, pointer.pointee.bitwidth)
    raise LoweringError(f"{pointer} as a pointer")


def decompose_operations(body: Block) -> None:
    """Replace each operation that declares what it is in simpler ones (elements.Decomposition)."""
    for op in list(body.walk()):
        composed = op.get_trait(Decomposition)
        if composed is None:
            continue
        for old, new in zip(op.results, composed.write(op, builder_before(op)), strict=True):
            new.name_hint = old.name_hint
            old.replace_all_uses_with(new)
        Rewriter.erase_op(op)
