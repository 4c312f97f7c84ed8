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
    base,
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
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    TypeDirective,
    irdl_custom_directive,
)
from xdsl.parser import AttrParser, Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import (
    CallableOpInterface,
    EffectInstance,
    IsolatedFromAbove,
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
from .facts import AlongAxis, ConsecutiveNumbers, MatrixProduct, PointerSum, SameBits, keeps_bits, pointer_sum
from .syntax import BinaryOperation, EndOfBlock, FollowsFrom, Hints, Unkept, Word, condition_type, defined_operations

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
class ReturnOp(EndOfBlock):
    """End of a function."""

    name = "tt.return"


@irdl_op_definition
class CallOp(IRDLOperation):
    """A call of a function that Triton did not inline. Until it is (front/calls.py), it may have any effect."""

    name = "tt.call"
    callee = prop_def(SymbolRefAttr)
    arguments = var_operand_def()
    res = var_result_def()
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$callee `(` $arguments `)` attr-dict `:` functional-type($arguments, $res)"


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
    _E: ClassVar = VarConstraint("_E", AnyAttr())
    src = operand_def(TensorType.constr(_E))
    result = result_def(_E)
    traits = traits_def(Pure(), WholeTile(), ByDimension(lambda op: [FixedIndex(0)] * len(extents(op.src))))
    assembly_format = "$src attr-dict `:` type($src)"


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
    custom_directives = (Hints, Unkept)
    assembly_format = "$src custom<Hints>() custom<Unkept>() attr-dict `:` type($src) `->` type($result)"


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
class MapElementwiseReturnOp(EndOfBlock):
    """The results of the function of a tt.map_elementwise."""

    name = "tt.map_elementwise.return"


@irdl_op_definition
class AddPtrOp(IRDLOperation):
    """Move a pointer, or each pointer of a tensor, by a number of elements."""

    name = "tt.addptr"
    _T: ClassVar = VarConstraint("_T", AnyAttr())
    ptr = operand_def(_T)
    offset = operand_def()
    result = result_def(_T)
    traits = traits_def(Pure(), PointerSum())
    custom_directives = (Unkept,)
    assembly_format = "$ptr `,` $offset custom<Unkept>() attr-dict `:` type($ptr) `,` type($offset)"

    def __init__(self, ptr: SSAValue, offset: SSAValue) -> None:
        super().__init__(operands=[ptr, offset], result_types=[ptr.type])


def pointer_root(pointer: SSAValue) -> SSAValue:
    """Return the pointer from which sums and casts compute a pointer."""
    while isinstance(pointer.owner, Operation) and (pointer_sum(pointer.owner) or keeps_bits(pointer.owner)):
        pointer = pointer.owner.operands[0]
    return pointer


def _pointer(pointee: Attribute) -> PointerType:
    return PointerType(pointee, IntegerAttr(1, 32))


def _pointee(type: Attribute) -> Attribute:
    if isinstance(type, TensorType):
        return TensorType(_pointee(type.element_type), type.get_shape(), type.encoding)
    assert isinstance(type, PointerType)
    return type.pointee


def _first_pointer(block: Attribute) -> PointerType:
    tile = _pointee(block)
    assert isinstance(tile, TensorType)
    return _pointer(tile.element_type)


# The operands of an access; the text has the type of the pointers only.
_POINTER = VarConstraint("_POINTER", AnyAttr())
_POINTEE, _MASK = FollowsFrom("_POINTER", _pointee), FollowsFrom("_POINTER", condition_type)


@irdl_custom_directive
class Order(CustomDirective):
    """The order of an atomic operation, and its scope, which is not kept: every mapping uses the widest one."""

    order: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.order.set(state, StringAttr(parser.parse_identifier()))
        parser.parse_punctuation(",")
        parser.parse_identifier()
        parser.parse_punctuation(",")

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        order = self.order.get(op)
        assert order is None or isinstance(order, StringAttr)
        state.print_whitespace(printer)
        printer.print_string(f"{order.data if order else 'acq_rel'}, gpu,")


@irdl_op_definition
class AtomicRMWOp(IRDLOperation):
    """Change what each pointer whose mask is set points to, as one step; the result is what was there before.

    A mapping may use a stronger order than `order`, which is that without one: acq_rel.
    """

    name = "tt.atomic_rmw"
    ptr = operand_def()
    value = operand_def()
    mask = opt_operand_def()
    kind = prop_def(StringAttr)
    order = opt_prop_def(StringAttr)
    result = result_def()
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    custom_directives = (Word, Order)
    assembly_format = (
        "custom<Word>($kind) `,` custom<Order>($order) $ptr `,` $value (`,` $mask^)?"
        " attr-dict `:` functional-type(operands, results)"
    )


@irdl_op_definition
class AtomicCASOp(IRDLOperation):
    """Store `value` where a pointer points to the bits of `compare`, as one step; the result is what was there."""

    name = "tt.atomic_cas"
    ptr = operand_def()
    compare = operand_def()
    value = operand_def()
    result = result_def()
    order = opt_prop_def(StringAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    custom_directives = (Order,)
    assembly_format = (
        "custom<Order>($order) $ptr `,` $compare `,` $value attr-dict `:` functional-type(operands, results)"
    )


@irdl_op_definition
class AtomicLoadOp(IRDLOperation):
    """Read through each pointer whose mask is set, at this position."""

    name = "tt.atomic_load"
    ptr = operand_def()
    mask = opt_operand_def()
    result = result_def()
    order = opt_prop_def(StringAttr)
    traits = traits_def(MemoryReadEffect(), OrderingEffect())
    custom_directives = (Order,)
    assembly_format = "custom<Order>($order) $ptr (`,` $mask^)? attr-dict `:` functional-type(operands, results)"


@irdl_op_definition
class AtomicStoreOp(IRDLOperation):
    """Write through each pointer whose mask is set, as one step."""

    name = "tt.atomic_store"
    ptr = operand_def(_POINTER)
    value = operand_def(_POINTEE)
    mask = opt_operand_def(_MASK)
    order = opt_prop_def(StringAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    custom_directives = (Order,)
    assembly_format = "custom<Order>($order) $ptr `,` $value (`,` $mask^)? attr-dict `:` type($ptr)"


@irdl_op_definition
class AtomicPollOp(IRDLOperation):
    """Wait until each pointer points to the expected number; the result is true, or false after the time in ns."""

    name = "tt.atomic_poll"
    ptr = operand_def()
    expected = operand_def()
    timeout = opt_operand_def(i64)
    result = result_def()
    order = opt_prop_def(StringAttr)
    traits = traits_def(MemoryReadEffect(), OrderingEffect())
    custom_directives = (Order,)
    assembly_format = (
        "custom<Order>($order) $ptr `,` $expected (`timeout` $timeout^)?"
        " attr-dict `:` type($ptr) `,` type($expected) `->` type($result)"
    )


class _LoadEffect(MemoryEffect):
    """A volatile load has an effect even if nobody uses its result."""

    @classmethod
    def get_effects(cls, op: Operation) -> frozenset[EffectInstance]:
        assert isinstance(op, LoadOp)
        return frozenset([EffectInstance(MemoryEffectKind.READ), *([ORDERING] if op.is_volatile else [])])


@irdl_custom_directive
class BlockType(CustomDirective):
    """The type of a block pointer: `<tensor<16x32xf32>>`."""

    result: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        with parser.in_angle_brackets():
            self.result.set(state, [_pointer(parser.parse_type())])

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        (type,) = self.result.get(op)
        printer.print_string(" <")
        printer.print_attribute(_pointee(type))
        printer.print_string(">")


@irdl_op_definition
class MakeTensorPtrOp(IRDLOperation):
    """A block pointer: a tile at offsets in an array of this shape and these strides. front/blocks.py replaces it."""

    name = "tt.make_tensor_ptr"
    _T: ClassVar = VarConstraint("_T", base(PointerType))
    base = operand_def(FollowsFrom("_T", _first_pointer))
    shape = var_operand_def(i64)
    strides = var_operand_def(i64)
    offsets = var_operand_def(i32)
    result = result_def(_T)
    traits = traits_def(Pure())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    custom_directives = (BlockType,)
    assembly_format = (
        "$base `,` `[` $shape `]` `,` `[` $strides `]` `,` `[` $offsets `]`"
        " attr-dict `:` custom<BlockType>(type($result))"
    )


@irdl_op_definition
class AdvanceOp(IRDLOperation):
    """A block pointer moved by these offsets. front/blocks.py replaces it."""

    name = "tt.advance"
    _T: ClassVar = VarConstraint("_T", base(PointerType))
    ptr = operand_def(_T)
    offsets = var_operand_def(i32)
    result = result_def(_T)
    traits = traits_def(Pure())
    custom_directives = (BlockType,)
    assembly_format = "$ptr `,` `[` $offsets `]` attr-dict `:` custom<BlockType>(type($result))"


@irdl_op_definition
class LoadOp(IRDLOperation):
    """Read through each pointer whose mask is set; elsewhere the result is `other`, or undefined without `other`."""

    name = "tt.load"
    ptr = operand_def(_POINTER)
    mask = opt_operand_def(_MASK)
    other = opt_operand_def(_POINTEE)
    is_volatile = opt_prop_def(BoolAttr, prop_name="isVolatile")
    # Of block pointers, which front/blocks.py replaces: the dimensions that are checked, and what stands outside.
    boundary_check = opt_prop_def(DenseArrayBase, prop_name="boundaryCheck")
    padding = opt_prop_def(IntegerAttr[IntegerType])
    result = result_def(_POINTEE)
    traits = traits_def(_LoadEffect())
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    custom_directives = (Hints,)
    assembly_format = "$ptr (`,` $mask^)? (`,` $other^)? custom<Hints>() attr-dict `:` type($ptr)"


@irdl_op_definition
class StoreOp(IRDLOperation):
    """Write through each pointer whose mask is set."""

    name = "tt.store"
    ptr = operand_def(_POINTER)
    value = operand_def(_POINTEE)
    mask = opt_operand_def(_MASK)
    boundary_check = opt_prop_def(DenseArrayBase, prop_name="boundaryCheck")
    traits = traits_def(MemoryWriteEffect())
    irdl_options = (ParsePropInAttrDict(),)
    custom_directives = (Hints,)
    assembly_format = "$ptr `,` $value (`,` $mask^)? custom<Hints>() attr-dict `:` type($ptr)"


@irdl_op_definition
class DotOp(IRDLOperation):
    """c + a * b on tiles (M, K), (K, N), (M, N), or on as many of each along a first dimension."""

    name = "tt.dot"
    a = operand_def(TensorType)
    b = operand_def(TensorType)
    _T: ClassVar = VarConstraint("_T", base(TensorType))
    c = operand_def(_T)
    input_precision = prop_def(StringAttr, default_value=StringAttr("ieee"))
    result = result_def(_T)
    traits = traits_def(Pure(), WholeTile(), MatrixProduct())
    custom_directives = (Word, Unkept)
    assembly_format = (
        "$a `,` $b `,` $c (`,` `inputPrecision` `=` custom<Word>($input_precision)^)?"
        " custom<Unkept>() attr-dict `:` type($a) `*` type($b) `->` type($c)"
    )


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
class ReduceReturnOp(EndOfBlock):
    """The combined scalars of a tt.reduce."""

    name = "tt.reduce.return"


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
class ScanReturnOp(EndOfBlock):
    """The combined scalars of a tt.scan."""

    name = "tt.scan.return"


@irdl_op_definition
class HistogramOp(IRDLOperation):
    """Count the elements of each value from 0 to the number of bins, where the mask is set; others are not counted."""

    name = "tt.histogram"
    _T: ClassVar = VarConstraint("_T", base(TensorType))
    src = operand_def(_T)
    mask = opt_operand_def(FollowsFrom("_T", condition_type))
    result = result_def(TensorType)
    traits = traits_def(Pure(), WholeTile())
    custom_directives = (Unkept,)
    assembly_format = "$src (`,` $mask^)? custom<Unkept>() attr-dict `:` type($src) `->` type($result)"


@irdl_op_definition
class BitcastOp(_Reshaping):
    """The same bits as another type of the same width; also between pointer types."""

    name = "tt.bitcast"
    traits = traits_def(Pure(), SameBits())


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
    custom_directives = (Word, Unkept)
    assembly_format = (
        "$src (`,` `rounding` `=` custom<Word>($rounding)^)?"
        " custom<Unkept>() attr-dict `:` type($src) `->` type($result)"
    )


@irdl_op_definition
class ClampFOp(IRDLOperation):
    """min(max(x, low), high); propagates NaN if propagate_nan is `all`."""

    name = "tt.clampf"
    _T: ClassVar = VarConstraint("_T", AnyAttr())
    x = operand_def(_T)
    low = operand_def(_T)
    high = operand_def(_T)
    propagate_nan = prop_def(StringAttr)
    result = result_def(_T)
    traits = traits_def(Pure())
    custom_directives = (Word, Unkept)
    assembly_format = (
        "$x `,` $low `,` $high `,` `propagateNan` `=` custom<Word>($propagate_nan)"
        " custom<Unkept>() attr-dict `:` type($result)"
    )


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


@irdl_custom_directive
class Symbol(CustomDirective):
    """`{libname = "", symbol = "name"}`: the other attributes are not kept."""

    symbol: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.symbol.set(state, parser.parse_optional_attr_dict()["symbol"])

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        printer.print_op_attributes({"symbol": op.properties["symbol"]})


@irdl_op_definition
class ExternElementwiseOp(IRDLOperation):
    """A library function applied to each element. Triton's libdevice functions use this, with CUDA's names."""

    name = "tt.extern_elementwise"
    srcs = var_operand_def()
    symbol = prop_def(StringAttr)
    result = result_def()
    traits = traits_def(Pure())
    custom_directives = (Symbol,)
    assembly_format = "$srcs custom<Symbol>($symbol) attr-dict `:` functional-type(operands, results)"


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


TT = Dialect("tt", defined_operations(globals(), "tt"), [PointerType, CachePolicyAttr])
