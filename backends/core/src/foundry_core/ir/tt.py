"""The part of Triton's own dialect that the lowering accepts: one class per operation, in Triton's assembly syntax.

The syntax follows the text that Triton 3.2, 3.6 and 3.9 print. An operation that is missing here is refused by name,
see parse.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.builder import Builder
from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    DenseArrayBase,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    TensorType,
    i32,
    i64,
)
from xdsl.dialects.utils import parse_func_op_like, print_func_op_like
from xdsl.ir import Attribute, Dialect, Operation, ParametrizedAttribute, Region, SSAValue, TypeAttribute
from xdsl.irdl import (
    AnyAttr,
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    VarConstraint,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import AttrParser, Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import (
    CallableOpInterface,
    EffectInstance,
    IsolatedFromAbove,
    IsTerminator,
    MemoryEffect,
    MemoryEffectKind,
    MemoryReadEffect,
    MemoryWriteEffect,
    Pure,
    RecursiveMemoryEffect,
    SymbolOpInterface,
)

from . import tile
from .effects import ORDERING, LogEffect, OrderingEffect, WholeTile
from .elements import ByDimension, Decomposition, ElementMap, FixedIndex, RowMajor, extents
from .facts import AlongAxis, ConsecutiveNumbers, MatrixProduct, PointerSum
from .syntax import BinaryOperation, condition_type, parse_conversion, parse_operands, print_operands, print_types

AXES = ("x", "y", "z")


@irdl_attr_definition
class PointerType(ParametrizedAttribute, TypeAttribute):
    """`!tt.ptr<T>`: the address of a T in device memory; address space 1 by default.

    `!tt.ptr<T, "constant">` is a tl.const pointer, through which Triton allows no store. We treat it as an ordinary
    address.
    """

    name = "tt.ptr"
    pointee: Attribute
    space: IntegerAttr[IntegerType]

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            pointee = parser.parse_type()
            space = 1
            if parser.parse_optional_punctuation(","):
                word = parser.parse_optional_str_literal()
                if word not in (None, "constant"):
                    parser.raise_error(f'a pointer in the memory space "{word}"')
                space = parser.parse_integer() if word is None else 1
        return [pointee, IntegerAttr(space, 32)]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.pointee)
            if self.space.value.data != 1:
                printer.print_string(f", {self.space.value.data}")


@irdl_attr_definition
class CachePolicyAttr(ParametrizedAttribute):
    """`#tt.cache_policy<cache_modifier = cg, ...>` of loads and stores since 3.9: hints to a cache, which we drop."""

    name = "tt.cache_policy"

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            while parser.parse_optional_identifier() is not None:
                parser.parse_punctuation("=")
                parser.parse_identifier()
                parser.parse_optional_punctuation(",")
        return []


class _FuncCallable(CallableOpInterface):
    @classmethod
    def get_callable_region(cls, op: Operation) -> Region:
        assert isinstance(op, FuncOp)
        return op.body

    @classmethod
    def get_argument_types(cls, op: Operation) -> tuple[Attribute, ...]:
        assert isinstance(op, FuncOp)
        return op.function_type.inputs.data

    @classmethod
    def get_result_types(cls, op: Operation) -> tuple[Attribute, ...]:
        assert isinstance(op, FuncOp)
        return op.function_type.outputs.data


@irdl_op_definition
class FuncOp(IRDLOperation):
    """A kernel (public) or a function that was not inlined (private)."""

    name = "tt.func"
    body = region_def()
    sym_name = prop_def(SymbolNameConstraint())
    function_type = prop_def(FunctionType)
    sym_visibility = opt_prop_def(StringAttr)
    arg_attrs = opt_prop_def(ArrayAttr[DictionaryAttr])
    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface(), _FuncCallable(), RecursiveMemoryEffect())

    @classmethod
    def parse(cls, parser: Parser) -> FuncOp:
        visibility = parser.parse_optional_visibility_keyword()
        name, inputs, outputs, region, extra, arg_attrs, _ = parse_func_op_like(
            parser, reserved_attr_names=("sym_name", "function_type", "sym_visibility")
        )
        properties: dict[str, Attribute] = {
            "sym_name": StringAttr(name),
            "function_type": FunctionType.from_lists(inputs, outputs),
        }
        if visibility is not None:
            properties["sym_visibility"] = visibility
        if arg_attrs is not None:
            properties["arg_attrs"] = arg_attrs
        return cls.create(properties=properties, attributes=extra.data if extra else {}, regions=[region])

    def print(self, printer: Printer) -> None:
        if self.sym_visibility is not None:
            printer.print_string(f" {self.sym_visibility.data}")
        print_func_op_like(
            printer,
            self.sym_name,
            self.function_type,
            self.body,
            self.attributes,
            arg_attrs=self.arg_attrs,
            reserved_attr_names=("sym_name", "function_type", "sym_visibility", "arg_attrs"),
        )

    @property
    def is_kernel(self) -> bool:
        return self.sym_visibility is None or self.sym_visibility.data == "public"


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """End of a function."""

    name = "tt.return"
    values = var_operand_def()
    traits = traits_def(IsTerminator(), Pure())
    assembly_format = "attr-dict ($values^ `:` type($values))?"


@irdl_op_definition
class CallOp(IRDLOperation):
    """A call of a function that Triton did not inline. Until it is (front/calls.py), it may have any effect."""

    name = "tt.call"
    callee = prop_def(SymbolRefAttr)
    arguments = var_operand_def()
    res = var_result_def()
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    @classmethod
    def parse(cls, parser: Parser) -> CallOp:
        callee = SymbolRefAttr(parser.parse_symbol_name())
        names = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        assert isinstance(type, FunctionType)
        operands = [parser.resolve_operand(name, t) for name, t in zip(names, type.inputs, strict=True)]
        return cls.create(operands=operands, result_types=type.outputs.data, properties={"callee": callee})

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.callee)
        printer.print_string("(")
        printer.print_list(self.arguments, printer.print_operand)
        printer.print_string(") : ")
        printer.print_attribute(FunctionType.from_lists([a.type for a in self.arguments], [r.type for r in self.res]))


class _Axis(IRDLOperation):
    axis = prop_def(IntegerAttr[IntegerType])
    result = result_def(IntegerType(32))
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> _Axis:
        axis = AXES.index(parser.parse_identifier())
        parser.parse_punctuation(":")
        type = parser.parse_type()
        return cls.create(properties={"axis": IntegerAttr(axis, 32)}, result_types=[type])

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {AXES[self.axis.value.data]} : ")
        printer.print_attribute(self.result.type)


@irdl_op_definition
class GetProgramIdOp(_Axis):
    """Index of this program in the grid along one axis."""

    name = "tt.get_program_id"


@irdl_op_definition
class GetNumProgramsOp(_Axis):
    """Number of programs in the grid along one axis."""

    name = "tt.get_num_programs"


@irdl_op_definition
class MakeRangeOp(IRDLOperation):
    """start, start + 1, ..., end - 1 as a tensor of rank 1."""

    name = "tt.make_range"
    start = prop_def(IntegerAttr[IntegerType])
    end = prop_def(IntegerAttr[IntegerType])
    result = result_def(TensorType)
    traits = traits_def(Pure(), ConsecutiveNumbers(lambda op: op.start.value.data))
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict `:` type($result)"


class _Reshaping(IRDLOperation):
    src = operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$src attr-dict `:` type($src) `->` type($result)"


@irdl_op_definition
class SplatOp(_Reshaping):
    """A tensor with the same scalar in all elements."""

    name = "tt.splat"
    traits = traits_def(Pure(), ByDimension(lambda op: ()))


@irdl_op_definition
class UnsplatOp(IRDLOperation):
    """The scalar of a tensor of one element."""

    name = "tt.unsplat"
    src = operand_def(TensorType)
    result = result_def()
    traits = traits_def(Pure(), WholeTile(), ByDimension(lambda op: [FixedIndex(0)] * len(extents(op.src))))

    @classmethod
    def parse(cls, parser: Parser) -> UnsplatOp:
        (name,) = parse_operands(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        src = parser.parse_type()
        assert isinstance(src, TensorType)
        return cls.create(
            operands=[parser.resolve_operand(name, src)], result_types=[src.element_type], attributes=attributes
        )

    def print(self, printer: Printer) -> None:
        print_operands(printer, self)
        print_types(printer, self.src.type)


@irdl_op_definition
class BroadcastOp(_Reshaping):
    """Repeat along the dimensions of size 1."""

    name = "tt.broadcast"
    traits = traits_def(Pure(), ByDimension())


@irdl_op_definition
class ExpandDimsOp(IRDLOperation):
    """Insert a dimension of size 1."""

    name = "tt.expand_dims"
    src = operand_def(TensorType)
    axis = prop_def(IntegerAttr[IntegerType])
    result = result_def(TensorType)
    traits = traits_def(
        Pure(), ByDimension(lambda op: [d for d in range(len(extents(op.result))) if d != op.axis.value.data])
    )
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$src attr-dict `:` type($src) `->` type($result)"


def _inverse(order: Sequence[int]) -> list[int]:
    return sorted(range(len(order)), key=lambda d: order[d])


@irdl_op_definition
class TransOp(IRDLOperation):
    """Permute dimensions: dimension d of the result is dimension order[d] of the source."""

    name = "tt.trans"
    src = operand_def(TensorType)
    order = prop_def(DenseArrayBase)
    result = result_def(TensorType)
    traits = traits_def(Pure(), ByDimension(lambda op: _inverse(op.order.get_values())))
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$src attr-dict `:` type($src) `->` type($result)"


@irdl_op_definition
class ReshapeOp(IRDLOperation):
    """Change the shape; the elements keep their row-major order (any order is allowed with allow_reorder)."""

    name = "tt.reshape"
    src = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure(), RowMajor())

    @classmethod
    def parse(cls, parser: Parser) -> ReshapeOp:
        name = parser.parse_unresolved_operand()
        # Both keywords only give a compiler more freedom; row-major order satisfies them.
        parser.parse_optional_keyword("allow_reorder")
        parser.parse_optional_keyword("efficient_layout")
        attributes = parser.parse_optional_attr_dict()
        src, result = parse_conversion(parser)
        return cls.create(operands=[parser.resolve_operand(name, src)], result_types=[result], attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.src)
        print_types(printer, self.src.type, " -> ", self.result.type)


@irdl_op_definition
class CatOp(IRDLOperation):
    """The elements of one tensor of rank 1, then those of another of the same type (any order is allowed)."""

    name = "tt.cat"
    _T: ClassVar = VarConstraint("_T", AnyAttr())
    lhs = operand_def(_T)
    rhs = operand_def(_T)
    result = result_def(TensorType)
    traits = traits_def(Pure(), ElementMap(operands=(0, 1)), Decomposition(lambda op, here: [_joined(op, here)]))
    assembly_format = "$lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)"


def _joined(op: CatOp, here: Builder) -> SSAValue:
    """Build what Triton writes for tl.cat without can_reorder: a tt.join whose halves follow each other."""
    assert isinstance(op.lhs.type, TensorType)
    (count,), element = op.lhs.type.get_shape(), op.lhs.type.element_type
    pairs = here.insert(JoinOp.create(operands=[op.lhs, op.rhs], result_types=[TensorType(element, (count, 2))]))
    order = {"order": DenseArrayBase.from_list(i32, [1, 0])}
    halves = TensorType(element, (2, count))
    turned = here.insert(TransOp.create(operands=pairs.results, result_types=[halves], properties=order))
    return here.insert(ReshapeOp.create(operands=turned.results, result_types=[op.result.type])).results[0]


@irdl_op_definition
class JoinOp(IRDLOperation):
    """A tensor with one more dimension of size 2 at the end: the elements of one tensor and those of another."""

    name = "tt.join"
    _T: ClassVar = VarConstraint("_T", AnyAttr())
    lhs = operand_def(_T)
    rhs = operand_def(_T)
    result = result_def(TensorType)
    traits = traits_def(Pure(), ElementMap(operands=(0, 1)))
    assembly_format = "$lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)"


@irdl_op_definition
class SplitOp(IRDLOperation):
    """The two tensors of which a tensor is the join."""

    name = "tt.split"
    _T: ClassVar = VarConstraint("_T", AnyAttr())
    src = operand_def(TensorType)
    lhs = result_def(_T)
    rhs = result_def(_T)
    traits = traits_def(
        Pure(),
        ElementMap(),
        Decomposition(lambda op, here: [here.insert(tile.PartOp(op.src, half)).result for half in range(2)]),
    )
    assembly_format = "$src attr-dict `:` type($src) `->` type($lhs)"


@irdl_op_definition
class GatherOp(IRDLOperation):
    """Along one axis, the elements of a tensor at the indices; the shapes agree in all other dimensions."""

    name = "tt.gather"
    src = operand_def(TensorType)
    indices = operand_def(TensorType)
    axis = prop_def(IntegerAttr[IntegerType])
    result = result_def(TensorType)
    traits = traits_def(Pure(), ElementMap())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$src `[` $indices `]` attr-dict `:` functional-type(operands, results)"


@irdl_op_definition
class MapElementwiseOp(IRDLOperation):
    """Apply a function of scalars, the region, to `pack` elements at a time.

    The region takes `pack` scalars of each operand in turn, and passes as many of each result to
    tt.map_elementwise.return.
    """

    name = "tt.map_elementwise"
    srcs = var_operand_def(TensorType)
    pack = prop_def(IntegerAttr[IntegerType])
    function = region_def()
    res = var_result_def(TensorType)
    traits = traits_def(RecursiveMemoryEffect())


@irdl_op_definition
class MapElementwiseReturnOp(IRDLOperation):
    """The results of the function of a tt.map_elementwise."""

    name = "tt.map_elementwise.return"
    values = var_operand_def()
    traits = traits_def(IsTerminator(), Pure())
    assembly_format = "attr-dict ($values^ `:` type($values))?"


@irdl_op_definition
class AddPtrOp(IRDLOperation):
    """Move a pointer, or each pointer of a tensor, by a number of elements."""

    name = "tt.addptr"
    ptr = operand_def()
    offset = operand_def()
    result = result_def()
    traits = traits_def(Pure(), PointerSum())

    @classmethod
    def parse(cls, parser: Parser) -> AddPtrOp:
        ptr, offset = parse_operands(parser)
        parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        parser.parse_punctuation(",")
        offset_type = parser.parse_type()
        return cls(parser.resolve_operand(ptr, type), parser.resolve_operand(offset, offset_type))

    def __init__(self, ptr: SSAValue, offset: SSAValue) -> None:
        super().__init__(operands=[ptr, offset], result_types=[ptr.type])

    def print(self, printer: Printer) -> None:
        print_operands(printer, self)
        printer.print_string(" : ")
        printer.print_list([self.ptr.type, self.offset.type], printer.print_attribute)


def _skip_hints(parser: Parser) -> None:
    """Skip the cache and eviction hints of a load or store: our devices manage their caches themselves."""
    while (name := parser.parse_optional_keyword("cacheModifier")) or (
        name := parser.parse_optional_keyword("evictionPolicy")
    ):
        assert name
        parser.parse_punctuation("=")
        parser.parse_identifier()


def pointer_root(pointer: SSAValue) -> SSAValue:
    """Return the pointer from which sums and casts compute a pointer."""
    while isinstance(pointer.owner, AddPtrOp | BitcastOp):
        pointer = pointer.owner.operands[0]
    return pointer


def _pointee(type: Attribute) -> Attribute:
    if isinstance(type, TensorType):
        element = type.element_type
        assert isinstance(element, PointerType)
        return TensorType(element.pointee, type.get_shape(), type.encoding)
    assert isinstance(type, PointerType)
    return type.pointee


@irdl_op_definition
class AtomicRMWOp(IRDLOperation):
    """Change what each pointer whose mask is set points to, as one step; the result is what was there before.

    We drop the order and the scope: every mapping uses the strongest ones.
    """

    name = "tt.atomic_rmw"
    ptr = operand_def()
    value = operand_def()
    mask = opt_operand_def()
    kind = prop_def(StringAttr)
    result = result_def()
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    @classmethod
    def parse(cls, parser: Parser) -> AtomicRMWOp:
        kind = parser.parse_identifier()
        operands, result = _parse_atomic(parser)
        return cls.create(operands=operands, result_types=[result], properties={"kind": StringAttr(kind)})

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.kind.data}, acq_rel, gpu,")
        _print_atomic(printer, self)


@irdl_op_definition
class AtomicCASOp(IRDLOperation):
    """Store `value` where a pointer points to the bits of `compare`, as one step; the result is what was there."""

    name = "tt.atomic_cas"
    ptr = operand_def()
    compare = operand_def()
    value = operand_def()
    result = result_def()
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    @classmethod
    def parse(cls, parser: Parser) -> AtomicCASOp:
        operands, result = _parse_atomic(parser, parser.parse_identifier())
        return cls.create(operands=operands, result_types=[result])

    def print(self, printer: Printer) -> None:
        printer.print_string(" acq_rel, gpu,")
        _print_atomic(printer, self)


@irdl_op_definition
class AtomicLoadOp(IRDLOperation):
    """Read through each pointer whose mask is set, at this position."""

    name = "tt.atomic_load"
    ptr = operand_def()
    mask = opt_operand_def()
    result = result_def()
    traits = traits_def(MemoryReadEffect(), OrderingEffect())

    @classmethod
    def parse(cls, parser: Parser) -> AtomicLoadOp:
        operands, result = _parse_atomic(parser, parser.parse_identifier())
        return cls.create(operands=operands, result_types=[result])

    def print(self, printer: Printer) -> None:
        printer.print_string(" acquire, gpu,")
        _print_atomic(printer, self)


@irdl_op_definition
class AtomicStoreOp(IRDLOperation):
    """Write through each pointer whose mask is set, as one step."""

    name = "tt.atomic_store"
    ptr = operand_def()
    value = operand_def()
    mask = opt_operand_def()
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    @classmethod
    def parse(cls, parser: Parser) -> AtomicStoreOp:
        names = _parse_atomic_names(parser, parser.parse_identifier())
        parser.parse_punctuation(":")
        type = parser.parse_type()
        types = [type, _pointee(type), condition_type(type)]
        return cls.create(operands=[parser.resolve_operand(name, t) for name, t in zip(names, types, strict=False)])

    def print(self, printer: Printer) -> None:
        printer.print_string(" release, gpu,")
        print_operands(printer, self)
        print_types(printer, self.ptr.type)


@irdl_op_definition
class AtomicPollOp(IRDLOperation):
    """Wait until each pointer points to the expected number; the result is true, or false after the time in ns."""

    name = "tt.atomic_poll"
    ptr = operand_def()
    expected = operand_def()
    timeout = opt_operand_def()
    result = result_def()
    traits = traits_def(MemoryReadEffect(), OrderingEffect())

    @classmethod
    def parse(cls, parser: Parser) -> AtomicPollOp:
        names = _parse_atomic_names(parser, parser.parse_identifier())
        if parser.parse_optional_keyword("timeout"):
            names.append(parser.parse_unresolved_operand())
        parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        parser.parse_punctuation(",")
        parser.parse_type()
        parser.parse_punctuation("->")
        result = parser.parse_type()
        types = [type, _pointee(type), i64]
        operands = [parser.resolve_operand(name, t) for name, t in zip(names, types, strict=False)]
        return cls.create(operands=operands, result_types=[result])

    def print(self, printer: Printer) -> None:
        printer.print_string(" acquire, gpu, ")
        printer.print_list([self.ptr, self.expected], printer.print_operand)
        if self.timeout is not None:
            printer.print_string(" timeout ")
            printer.print_operand(self.timeout)
        print_types(printer, self.ptr.type, ", ", self.expected.type, " -> ", self.result.type)


# Assembly of atomic operations:  ORDER, SCOPE, %operands : (types) -> type


def _parse_atomic_names(parser: Parser, order: str = "") -> list[UnresolvedOperand]:
    """Parse the order, if it is not parsed yet, the scope, and the operands."""
    parser.parse_punctuation(",")
    if not order:
        parser.parse_identifier()
        parser.parse_punctuation(",")
    parser.parse_identifier()
    parser.parse_punctuation(",")
    return parse_operands(parser)


def _parse_atomic(parser: Parser, order: str = "") -> tuple[list[SSAValue], Attribute]:
    """Parse what follows an operation's name, or its order; return operands and the type of the result."""
    names = _parse_atomic_names(parser, order)
    parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    type = parser.parse_type()
    assert isinstance(type, FunctionType)
    operands = [parser.resolve_operand(name, t) for name, t in zip(names, type.inputs, strict=True)]
    return operands, type.outputs.data[0]


def _print_atomic(printer: Printer, op: IRDLOperation) -> None:
    print_operands(printer, op)
    printer.print_string(" : ")
    printer.print_attribute(FunctionType.from_lists([operand.type for operand in op.operands], op.result_types))


class _LoadEffect(MemoryEffect):
    """A volatile load has an effect even if nobody uses its result."""

    @classmethod
    def get_effects(cls, op: Operation) -> frozenset[EffectInstance]:
        assert isinstance(op, LoadOp)
        return frozenset([EffectInstance(MemoryEffectKind.READ), *([ORDERING] if op.is_volatile else [])])


def _parse_numbers(parser: Parser) -> list[UnresolvedOperand]:
    parser.parse_punctuation(",")
    return parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_unresolved_operand)


def _parse_block_pointer(parser: Parser) -> tuple[PointerType, TensorType]:
    """Parse `{order = ...} : <tensor<16x32xf32>>` behind the operands of an operation on block pointers."""
    parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    with parser.in_angle_brackets():
        tile = parser.parse_type()
    assert isinstance(tile, TensorType)
    return PointerType(tile, IntegerAttr(1, 32)), tile


@irdl_op_definition
class MakeTensorPtrOp(IRDLOperation):
    """A block pointer: a tile at offsets in an array of this shape and these strides. front/blocks.py replaces it."""

    name = "tt.make_tensor_ptr"
    base = operand_def(PointerType)
    shape = var_operand_def()
    strides = var_operand_def()
    offsets = var_operand_def()
    result = result_def(PointerType)
    traits = traits_def(Pure())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    @classmethod
    def parse(cls, parser: Parser) -> MakeTensorPtrOp:
        base, numbers = parser.parse_unresolved_operand(), [_parse_numbers(parser) for _ in range(3)]
        type, tile = _parse_block_pointer(parser)
        pointer = parser.resolve_operand(base, PointerType(tile.element_type, IntegerAttr(1, 32)))
        widths = (64, 64, 32)
        resolved = [
            [parser.resolve_operand(name, IntegerType(width)) for name in names]
            for names, width in zip(numbers, widths, strict=True)
        ]
        return cls.build(operands=[pointer, *resolved], result_types=[type])


@irdl_op_definition
class AdvanceOp(IRDLOperation):
    """A block pointer moved by these offsets. front/blocks.py replaces it."""

    name = "tt.advance"
    ptr = operand_def(PointerType)
    offsets = var_operand_def()
    result = result_def(PointerType)
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> AdvanceOp:
        name, numbers = parser.parse_unresolved_operand(), _parse_numbers(parser)
        type, _ = _parse_block_pointer(parser)
        offsets = [parser.resolve_operand(number, IntegerType(32)) for number in numbers]
        return cls.build(operands=[parser.resolve_operand(name, type), offsets], result_types=[type])


@irdl_op_definition
class LoadOp(IRDLOperation):
    """Read through each pointer whose mask is set; elsewhere the result is `other`, or undefined without `other`."""

    name = "tt.load"
    ptr = operand_def()
    mask = opt_operand_def()
    other = opt_operand_def()
    is_volatile = opt_prop_def(BoolAttr, prop_name="isVolatile")
    # Of block pointers, which front/blocks.py replaces: the dimensions that are checked, and what stands outside.
    boundary_check = opt_prop_def(DenseArrayBase, prop_name="boundaryCheck")
    padding = opt_prop_def(IntegerAttr[IntegerType])
    result = result_def()
    traits = traits_def(_LoadEffect())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    @classmethod
    def parse(cls, parser: Parser) -> LoadOp:
        names = parse_operands(parser)
        _skip_hints(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        result = _pointee(type)
        types = [type, condition_type(type), result]
        operands = [parser.resolve_operand(name, t) for name, t in zip(names, types, strict=False)]
        kept = ("isVolatile", "boundaryCheck", "padding")
        properties = {name: attributes[name] for name in kept if name in attributes}
        return cls.build(
            operands=[operands[:1], operands[1:2], operands[2:3]], result_types=[result], properties=properties
        )

    def print(self, printer: Printer) -> None:
        print_operands(printer, self)
        print_types(printer, self.ptr.type)


@irdl_op_definition
class StoreOp(IRDLOperation):
    """Write through each pointer whose mask is set."""

    name = "tt.store"
    ptr = operand_def()
    value = operand_def()
    mask = opt_operand_def()
    boundary_check = opt_prop_def(DenseArrayBase, prop_name="boundaryCheck")
    traits = traits_def(MemoryWriteEffect())

    @classmethod
    def parse(cls, parser: Parser) -> StoreOp:
        names = parse_operands(parser)
        _skip_hints(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        types = [type, _pointee(type), condition_type(type)]
        operands = [parser.resolve_operand(name, t) for name, t in zip(names, types, strict=False)]
        kept = ("boundaryCheck",)
        properties = {name: attributes[name] for name in kept if name in attributes}
        return cls.build(operands=[operands[0], operands[1], operands[2:3]], properties=properties)

    def print(self, printer: Printer) -> None:
        print_operands(printer, self)
        print_types(printer, self.ptr.type)


@irdl_op_definition
class DotOp(IRDLOperation):
    """c + a * b on tiles (M, K), (K, N), (M, N), or on as many of each along a first dimension."""

    name = "tt.dot"
    a = operand_def(TensorType)
    b = operand_def(TensorType)
    c = operand_def(TensorType)
    input_precision = prop_def(StringAttr)
    result = result_def(TensorType)
    traits = traits_def(Pure(), WholeTile(), MatrixProduct())

    @classmethod
    def parse(cls, parser: Parser) -> DotOp:
        names = parse_operands(parser)
        precision = "ieee"
        if parser.parse_optional_keyword("inputPrecision"):
            parser.parse_punctuation("=")
            precision = parser.parse_identifier()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        a = parser.parse_type()
        parser.parse_punctuation("*")
        b = parser.parse_type()
        parser.parse_punctuation("->")
        c = parser.parse_type()
        operands = [parser.resolve_operand(name, t) for name, t in zip(names, (a, b, c), strict=True)]
        return cls.create(
            operands=operands,
            result_types=[c],
            attributes=attributes,
            properties={"input_precision": StringAttr(precision)},
        )

    def print(self, printer: Printer) -> None:
        print_operands(printer, self)
        if self.input_precision.data != "ieee":
            printer.print_string(f", inputPrecision = {self.input_precision.data}")
        print_types(printer, self.a.type, " * ", self.b.type, " -> ", self.result.type)


@irdl_op_definition
class DotScaledOp(IRDLOperation):
    """c + a * b, where a scale belongs to each group of elements along K; front/scaled.py replaces it.

    Attributes:
        formats: of a and of b: e2m1, e4m3, e5m2, bf16 or fp16.
        packed_along_k: for a and for b: whether the two e2m1 of a byte are neighbours along K.
    """

    name = "tt.dot_scaled"
    a = operand_def(TensorType)
    a_scale = opt_operand_def(TensorType)
    b = operand_def(TensorType)
    b_scale = opt_operand_def(TensorType)
    c = operand_def(TensorType)
    formats = prop_def(ArrayAttr[StringAttr])
    packed_along_k = prop_def(ArrayAttr[BoolAttr])
    result = result_def(TensorType)
    traits = traits_def(Pure(), WholeTile())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    @classmethod
    def parse(cls, parser: Parser) -> DotScaledOp:
        operands: list[list[UnresolvedOperand]] = []
        while not operands or parser.parse_optional_punctuation(","):
            operands.append([parser.parse_unresolved_operand()])
            if parser.parse_optional_keyword("scale"):
                operands[-1].append(parser.parse_unresolved_operand())
        if len(operands) == 4:  # 3.2 prints the scale of a as another operand
            operands[:2] = [[*operands[0], *operands[1]]]
        formats: list[Attribute] = []
        for side in ("lhs", "rhs"):
            parser.parse_keyword(side)
            parser.parse_punctuation("=")
            formats.append(StringAttr(parser.parse_identifier()))
        given = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        groups = [[parser.parse_type()]]
        for separator in ("*", "->"):
            if parser.parse_optional_punctuation(","):
                groups[-1].append(parser.parse_type())
            parser.parse_punctuation(separator)
            groups.append([parser.parse_type()])
        resolved = [
            [parser.resolve_operand(name, type) for name, type in zip(names, types, strict=True)]
            for names, types in zip(operands, groups, strict=True)
        ]
        true = IntegerAttr.from_bool(True)
        packed = [given.get(f"{side}_k_pack", true) for side in ("lhs", "rhs")]
        return cls.build(
            operands=[part for group in resolved[:2] for part in (group[:1], group[1:])] + [resolved[2]],
            result_types=[groups[2][0]],
            properties={"formats": ArrayAttr(formats), "packed_along_k": ArrayAttr(packed)},
        )


@irdl_op_definition
class ReduceOp(IRDLOperation):
    """Combine the elements along one axis by the region, whose block takes two sets of scalars and returns one.

    A region of f32 may combine narrower floats (front/sums.py).
    """

    name = "tt.reduce"
    srcs = var_operand_def(TensorType)
    axis = prop_def(IntegerAttr[IntegerType])
    combine = region_def("single_block")
    res = var_result_def()
    traits = traits_def(RecursiveMemoryEffect(), AlongAxis(lambda op: op.axis.value.data, keeps=False))


@irdl_op_definition
class ReduceReturnOp(IRDLOperation):
    """The combined scalars of a tt.reduce."""

    name = "tt.reduce.return"
    values = var_operand_def()
    traits = traits_def(IsTerminator(), Pure())
    assembly_format = "attr-dict ($values^ `:` type($values))?"


@irdl_op_definition
class ScanOp(IRDLOperation):
    """Combine each element along one axis with all elements before it, or behind it if `reverse`.

    The region's block takes the scalars combined so far, then those of the next element.
    """

    name = "tt.scan"
    srcs = var_operand_def(TensorType)
    axis = prop_def(IntegerAttr[IntegerType])
    reverse = prop_def(BoolAttr)
    combine = region_def("single_block")
    res = var_result_def()
    traits = traits_def(RecursiveMemoryEffect(), AlongAxis(lambda op: op.axis.value.data, keeps=True))


@irdl_op_definition
class ScanReturnOp(IRDLOperation):
    """The combined scalars of a tt.scan."""

    name = "tt.scan.return"
    values = var_operand_def()
    traits = traits_def(IsTerminator(), Pure())
    assembly_format = "attr-dict ($values^ `:` type($values))?"


@irdl_op_definition
class HistogramOp(IRDLOperation):
    """Count the elements of each value from 0 to the number of bins, where the mask is set; others are not counted."""

    name = "tt.histogram"
    src = operand_def(TensorType)
    mask = opt_operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure(), WholeTile())

    @classmethod
    def parse(cls, parser: Parser) -> HistogramOp:
        names = parse_operands(parser)
        attributes = parser.parse_optional_attr_dict()
        src, result = parse_conversion(parser)
        types = [src, condition_type(src)]
        operands = [parser.resolve_operand(name, type) for name, type in zip(names, types, strict=False)]
        return cls.build(operands=[operands[0], operands[1:]], result_types=[result], attributes=attributes)

    def print(self, printer: Printer) -> None:
        print_operands(printer, self)
        print_types(printer, self.src.type, " -> ", self.result.type)


@irdl_op_definition
class BitcastOp(_Reshaping):
    """The same bits as another type of the same width; also between pointer types."""

    name = "tt.bitcast"


@irdl_op_definition
class IntToPtrOp(_Reshaping):
    """The pointer to an address that is given as a number."""

    name = "tt.int_to_ptr"


@irdl_op_definition
class PtrToIntOp(_Reshaping):
    """The address that a pointer points to, as a number."""

    name = "tt.ptr_to_int"


@irdl_op_definition
class FpToFpOp(IRDLOperation):
    """A conversion between floating-point types that arith cannot express (fp8, or an explicit rounding mode)."""

    name = "tt.fp_to_fp"
    src = operand_def()
    rounding = opt_prop_def(StringAttr)
    result = result_def()
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> FpToFpOp:
        (name,) = parse_operands(parser)
        properties: dict[str, Attribute] = {}
        if parser.parse_optional_keyword("rounding"):
            parser.parse_punctuation("=")
            properties["rounding"] = StringAttr(parser.parse_identifier())
        parser.parse_optional_attr_dict()
        src, result = parse_conversion(parser)
        return cls.create(operands=[parser.resolve_operand(name, src)], result_types=[result], properties=properties)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.src)
        if self.rounding is not None:
            printer.print_string(f", rounding = {self.rounding.data}")
        print_types(printer, self.src.type, " -> ", self.result.type)


@irdl_op_definition
class ClampFOp(IRDLOperation):
    """min(max(x, low), high); propagates NaN if propagate_nan is `all`."""

    name = "tt.clampf"
    x = operand_def()
    low = operand_def()
    high = operand_def()
    propagate_nan = prop_def(StringAttr)
    result = result_def()
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> ClampFOp:
        names = parse_operands(parser)
        parser.parse_keyword("propagateNan")
        parser.parse_punctuation("=")
        nan = parser.parse_identifier()
        parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        return cls.create(
            operands=[parser.resolve_operand(name, type) for name in names],
            result_types=[type],
            properties={"propagate_nan": StringAttr(nan)},
        )

    def print(self, printer: Printer) -> None:
        print_operands(printer, self)
        printer.print_string(f", propagateNan = {self.propagate_nan.data} : ")
        printer.print_attribute(self.result.type)


@irdl_op_definition
class PreciseSqrtOp(IRDLOperation):
    """Square root, correctly rounded."""

    name = "tt.precise_sqrt"
    _T: ClassVar = VarConstraint("_T", AnyAttr())
    x = operand_def(_T)
    result = result_def(_T)
    traits = traits_def(Pure())
    assembly_format = "$x attr-dict `:` type($x)"


@irdl_op_definition
class PreciseDivFOp(BinaryOperation):
    """lhs / rhs, correctly rounded."""

    name = "tt.precise_divf"


@irdl_op_definition
class MulhiUIOp(BinaryOperation):
    """The upper half of the unsigned product."""

    name = "tt.mulhiui"


@irdl_op_definition
class ExternElementwiseOp(IRDLOperation):
    """A library function applied to each element. Triton's libdevice functions use this, with CUDA's names."""

    name = "tt.extern_elementwise"
    srcs = var_operand_def()
    symbol = prop_def(StringAttr)
    result = result_def()
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> ExternElementwiseOp:
        names = parse_operands(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        assert isinstance(type, FunctionType)
        operands = [parser.resolve_operand(name, t) for name, t in zip(names, type.inputs, strict=True)]
        return cls.create(
            operands=operands, result_types=type.outputs.data, properties={"symbol": attributes["symbol"]}
        )

    def print(self, printer: Printer) -> None:
        print_operands(printer, self)
        printer.print_string(" {symbol = ")
        printer.print_attribute(self.symbol)
        printer.print_string("} : ")
        printer.print_attribute(FunctionType.from_lists([src.type for src in self.srcs], [self.result.type]))


@irdl_op_definition
class PrintOp(IRDLOperation):
    """Print a prefix, and the elements of each operand one to a line (tl.device_print)."""

    name = "tt.print"
    prefix = prop_def(StringAttr)
    hex = prop_def(BoolAttr)
    is_signed = prop_def(DenseArrayBase, prop_name="isSigned")
    args = var_operand_def()
    traits = traits_def(LogEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$prefix attr-dict (`:` $args^ `:` type($args))?"


@irdl_op_definition
class AssertOp(IRDLOperation):
    """A condition that must hold for each element (tl.device_assert). Triton writes it only with debug=True."""

    name = "tt.assert"
    condition = operand_def()
    message = prop_def(StringAttr)
    traits = traits_def(LogEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$condition `,` $message attr-dict `:` type($condition)"


TT = Dialect(
    "tt",
    [
        FuncOp,
        ReturnOp,
        CallOp,
        GetProgramIdOp,
        GetNumProgramsOp,
        MakeRangeOp,
        SplatOp,
        UnsplatOp,
        BroadcastOp,
        ExpandDimsOp,
        TransOp,
        ReshapeOp,
        CatOp,
        JoinOp,
        SplitOp,
        GatherOp,
        MapElementwiseOp,
        MapElementwiseReturnOp,
        AddPtrOp,
        MakeTensorPtrOp,
        AdvanceOp,
        LoadOp,
        StoreOp,
        AtomicRMWOp,
        AtomicCASOp,
        AtomicLoadOp,
        AtomicStoreOp,
        AtomicPollOp,
        DotOp,
        DotScaledOp,
        ReduceOp,
        ReduceReturnOp,
        ScanOp,
        ScanReturnOp,
        HistogramOp,
        BitcastOp,
        IntToPtrOp,
        PtrToIntOp,
        FpToFpOp,
        ClampFOp,
        PreciseSqrtOp,
        PreciseDivFOp,
        MulhiUIOp,
        ExternElementwiseOp,
        PrintOp,
        AssertOp,
    ],
    [PointerType, CachePolicyAttr],
)
