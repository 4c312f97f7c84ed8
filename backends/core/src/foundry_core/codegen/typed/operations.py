"""Translates each operation of the llvm dialect: one function for those that differ only in a word.

Every function takes the body that it writes to and the operation. It raises LoweringError with the part that LLVM 12
lacks; the caller adds the operation's name and source line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, StringAttr
from xdsl.dialects.llvm import LLVMFunctionType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...errors import LoweringError
from . import types
from .body import (
    Body,
    Edge,
    Signature,
    TypedValue,
    attributes,
    dictionaries,
    integer_field,
    integer_fields,
    name_of,
    symbol,
)
from .check import FLAGS, OVERLOADED, PLAIN
from .constants import constant_text, zero

Emitter = Callable[[Body, Operation], None]

# The words of predicates, in the order of their numbers.
_PREDICATES = {
    "icmp": ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"),
    "fcmp": (
        *("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord"),
        *("ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true"),
    ),
}
# This entry of rawConstantIndices means that the index is an operand.
_DYNAMIC = -(1 << 31)

# By the operation's name.
EMITTERS: dict[str, Emitter] = {}


def _emits(*names: str) -> Callable[[Emitter], Emitter]:
    """Decorate the function that translates these operations of the llvm dialect; a name may be several."""

    def register(emitter: Emitter) -> Emitter:
        EMITTERS.update(dict.fromkeys((f"llvm.{name}" for name in " ".join(names).split()), emitter))
        return emitter

    return register


@_emits("add sub mul udiv sdiv urem srem and or xor shl lshr ashr fadd fsub fmul fdiv frem")
def _binary(body: Body, op: Operation) -> None:
    left, right = op.operands
    body.define(op.results[0], f"{_word(op)} {body.operand(left)}, {body.name(right)}")


@_emits(*_PREDICATES)
def _compare(body: Body, op: Operation) -> None:
    left, right = op.operands
    predicate = _PREDICATES[_word(op)][integer_field(attributes(op), "predicate")]
    body.define(op.results[0], f"{_word(op)} {predicate} {body.operand(left)}, {body.name(right)}")


@_emits("fneg freeze select extractelement insertelement extractvalue insertvalue")
def _with_types(body: Body, op: Operation) -> None:
    """Write an operation whose operands all have types; the position in an aggregate follows them."""
    position = map(str, integer_fields(attributes(op), "position"))
    body.define(op.results[0], f"{_word(op)} {', '.join([*map(body.operand, op.operands), *position])}")


@_emits("trunc zext sext fptrunc fpext fptosi fptoui sitofp uitofp inttoptr ptrtoint")
def _cast(body: Body, op: Operation) -> None:
    result = op.results[0]
    body.define(result, f"{_word(op)} {body.operand(op.operands[0])} to {types.type_text(result.type)}")


@_emits("bitcast")
def _bitcast(body: Body, op: Operation) -> None:
    if types.is_pointer(op.operands[0].type):
        body.bind(op.results[0], body.natural(op.operands[0]))
    else:
        _cast(body, op)


@_emits("mlir.constant")
def _constant(body: Body, op: Operation) -> None:
    of = op.results[0].type
    body.bind(op.results[0], TypedValue(constant_text(attributes(op)["value"], of), types.type_text(of)))


@_emits("mlir.poison mlir.undef mlir.zero")
def _undef_or_zero(body: Body, op: Operation) -> None:
    of = op.results[0].type
    text = zero(of) if _word(op) == "mlir.zero" else "undef"
    body.bind(op.results[0], TypedValue(text, "" if types.is_pointer(of) else types.type_text(of)))


@_emits("mlir.addressof")
def _addressof(body: Body, op: Operation) -> None:
    body.bind(op.results[0], body.module.symbol(symbol(attributes(op), "global_name") or ""))


@_emits("alloca")
def _alloca(body: Body, op: Operation) -> None:
    fields = attributes(op)
    if "inalloca" in fields:
        raise LoweringError("inalloca")
    pointee = types.type_text(fields["elem_type"])
    line = f"alloca {pointee}, {body.operand(op.operands[0])}{_align(fields)}"
    space = types.space(op.results[0].type)
    body.define(op.results[0], line + (f", addrspace({space})" if space else ""), types.pointer(pointee, space))


@_emits("getelementptr")
def _getelementptr(body: Body, op: Operation) -> None:
    fields = attributes(op)
    base, dynamic = op.operands[0], iter(op.operands[1:])
    if not types.is_pointer(base.type):
        raise LoweringError("a vector of addresses")
    indices, at = [], fields["elem_type"]
    for position, raw in enumerate(integer_fields(fields, "rawConstantIndices")):
        if raw == _DYNAMIC:
            index = next(dynamic)
            if not types.type_text(index.type).startswith("i"):
                raise LoweringError("a vector of addresses")
            indices.append(body.operand(index))
        else:
            indices.append(f"i32 {raw}")
        if position:
            at = types.member_type(at, raw)
    pointee, space = types.type_text(fields["elem_type"]), types.space(base.type)
    # Bit 0 of noWrapFlags is inbounds; nusw comes with the same bit.
    inbounds = " inbounds" if integer_field(fields, "noWrapFlags") & 1 and not space else ""
    line = f"getelementptr{inbounds} {pointee}, {body.pointer_operand(base, pointee)}, {', '.join(indices)}"
    body.define(op.results[0], line, types.pointer(types.type_text(at), space))


@_emits("load")
def _load(body: Body, op: Operation) -> None:
    fields = attributes(op)
    _refuse_atomic(fields)
    of = types.type_text(op.results[0].type)
    body.define(
        op.results[0], f"load{_volatile(fields)} {of}, {body.pointer_operand(op.operands[0], of)}{_align(fields)}"
    )


@_emits("store")
def _store(body: Body, op: Operation) -> None:
    fields = attributes(op)
    _refuse_atomic(fields)
    value, address = op.operands
    to = body.pointer_operand(address, types.type_text(value.type))
    body.emit(f"store{_volatile(fields)} {body.operand(value)}, {to}{_align(fields)}")


def _refuse_atomic(fields: Mapping[str, Attribute]) -> None:
    if integer_field(fields, "ordering"):
        raise LoweringError("atomic")


@_emits("shufflevector")
def _shufflevector(body: Body, op: Operation) -> None:
    mask = integer_fields(attributes(op), "mask")
    picked = ", ".join("i32 undef" if index < 0 else f"i32 {index}" for index in mask)
    left, right = (body.operand(value) for value in op.operands)
    body.define(op.results[0], f"shufflevector {left}, {right}, <{len(mask)} x i32> <{picked}>")


@_emits("call")
def _call(body: Body, op: Operation) -> None:
    fields = attributes(op)
    sizes = integer_fields(fields, "operandSegmentSizes")
    if len(sizes) > 1 and sizes[1]:
        raise LoweringError("operand bundles")
    operands = list(op.operands)
    name = symbol(fields, "callee")
    if name is not None:
        if name not in body.module.functions:
            raise LoweringError(f"there is no function @{name}")
        signature = body.module.functions[name]
        called = body.module.symbol(name).name
    else:
        address = operands.pop(0)
        signature = _signature_of_call(op, operands, fields.get("var_callee_type"))
        called = body.as_type(body.natural(address), f"{signature.type()}*").name
    passed = []
    for index, value in enumerate(operands):
        if types.is_pointer(value.type) and index < len(signature.parameters):
            wanted = signature.parameters[index]
            passed.append(f"{wanted} {body.as_type(body.natural(value), wanted).name}")
        else:
            passed.append(body.operand(value))
    _finish_call(body, op, signature, called, passed)


@_emits("call_intrinsic")
def _call_intrinsic(body: Body, op: Operation) -> None:
    name = attributes(op)["intrin"]
    assert isinstance(name, StringAttr)
    _intrinsic_call(body, op, name.data, [body.operand(value) for value in op.operands])


def _signature_of_call(op: Operation, operands: Sequence[SSAValue], declared: Attribute | None) -> Signature:
    if isinstance(declared, LLVMFunctionType):
        parameters = tuple(types.type_text(of) for of in declared.inputs)
        return Signature("", types.type_text(declared.output), parameters, declared.is_variadic)
    result = types.type_text(op.results[0].type) if op.results else "void"
    return Signature("", result, tuple(types.type_text(value.type) for value in operands))


def _finish_call(body: Body, op: Operation, signature: Signature, called: str, passed: Sequence[str]) -> None:
    """Write a call: with the full function type for a variadic function, else with the result type."""
    of = signature.type() if signature.variadic else signature.result
    line = f"call {of} {called}({', '.join(passed)})"
    if op.results:
        body.define(op.results[0], line, signature.result)
    else:
        body.emit(line)


def _intrinsic_call(body: Body, op: Operation, name: str, passed: Sequence[str]) -> None:
    result = types.type_text(op.results[0].type) if op.results else "void"
    # Anything passed after the operands is a flag.
    flags = ("i1",) * (len(passed) - len(op.operands))
    signature = Signature(name, result, (*(types.type_text(value.type) for value in op.operands), *flags))
    body.module.intrinsics.setdefault(name, signature)
    _finish_call(body, op, signature, f"@{name}", passed)


@_emits(*(f"intr.{name}" for name in OVERLOADED))
def _overloaded(body: Body, op: Operation) -> None:
    name = _word(op).removeprefix("intr.")
    passed = [body.operand(value) for value in op.operands]
    if name in FLAGS:
        passed.append(f"i1 {'true' if integer_field(attributes(op), FLAGS[name]) else 'false'}")
    _intrinsic_call(body, op, f"llvm.{name}.{types.suffix(op.operands[0].type)}", passed)


@_emits(*(f"intr.{name}" for name in PLAIN))
def _plain(body: Body, op: Operation) -> None:
    _intrinsic_call(body, op, f"llvm.{_word(op).removeprefix('intr.')}", [])


@_emits("intr.memcpy intr.memmove intr.memset")
def _copy(body: Body, op: Operation) -> None:
    """Write memcpy, memmove or memset; the operation's argument attributes give the alignment."""
    fields = attributes(op)
    aligned = dictionaries(fields, "arg_attrs", len(op.operands))
    passed, overloads = [], []
    for index, value in enumerate(op.operands):
        written = body.value(value)
        align = integer_field(aligned[index], "llvm.align") if index < len(aligned) else 0
        passed.append(f"{written.type}{f' align {align}' if align else ''} {written.name}")
        if types.is_pointer(value.type) or index == 2:
            overloads.append(types.suffix(value.type))
    passed.append(f"i1 {'true' if integer_field(fields, 'isVolatile') else 'false'}")
    _intrinsic_call(body, op, ".".join([f"llvm.{_word(op).removeprefix('intr.')}", *overloads]), passed)


@_emits("intr.assume intr.lifetime.start intr.lifetime.end intr.invariant.start")
@_emits("intr.experimental.noalias.scope.decl intr.dbg.value intr.dbg.declare intr.dbg.label")
def _hint(body: Body, op: Operation) -> None:
    """Write nothing for a hint to an optimizer."""
    if op.results and any(result.uses for result in op.results):
        raise LoweringError("its result is used")


@_emits("return unreachable")
def _end(body: Body, op: Operation) -> None:
    if _word(op) == "unreachable":
        body.emit("unreachable")
    else:
        body.emit(f"ret {body.operand(op.operands[0])}" if op.operands else "ret void")


@_emits("br")
def _br(body: Body, op: Operation) -> None:
    (target,) = _targets(body, op, [list(op.operands)])
    body.emit(f"br {target}{_hint_of_loop(body, op)}")


@_emits("cond_br")
def _cond_br(body: Body, op: Operation) -> None:
    _, yes, _ = integer_fields(attributes(op), "operandSegmentSizes")
    condition, *rest = op.operands
    after: list[str] = []
    first, second = _targets(body, op, [rest[:yes], rest[yes:]], after)
    body.emit(f"br {body.operand(condition)}, {first}, {second}{_hint_of_loop(body, op)}")
    body.lines += after


def _hint_of_loop(body: Body, op: Operation) -> str:
    # The only hint of loops that the lowering writes.
    return body.module.metadata.keeps_code() if "llvm.loop_annotation" in op.attributes else ""


@_emits("switch")
def _switch(body: Body, op: Operation) -> None:
    fields = attributes(op)
    _, default, _ = integer_fields(fields, "operandSegmentSizes")
    value, *rest = op.operands
    passed, rest = [rest[:default]], rest[default:]
    for size in integer_fields(fields, "case_operand_segments"):
        passed.append(rest[:size])
        rest = rest[size:]
    values = fields.get("case_values")
    cases = list(values.get_values()) if isinstance(values, DenseIntOrFPElementsAttr) else []
    after: list[str] = []
    otherwise, *targets = _targets(body, op, passed, after)
    of = types.type_text(value.type)
    arms = " ".join(f"{of} {int(case)}, {target}" for case, target in zip(cases, targets, strict=True))
    body.emit(f"switch {body.operand(value)}, {otherwise} [{f' {arms} ' if arms else ''}]")
    body.lines += after


def _targets(
    body: Body, op: Operation, passed: Sequence[Sequence[SSAValue]], after: list[str] | None = None
) -> list[str]:
    """Return the successors as `label %bb1`, and record the values that each edge passes to its block.

    A block has one phi entry per predecessor. So if several edges of one terminator lead to the same block with
    arguments, each edge after the first gets a separate block; the lines of these blocks go to `after`.
    """
    seen: set[Block] = set()
    labels = []
    for number, (block, values) in enumerate(zip(op.successors, passed, strict=True)):
        source = body.label
        if block in seen and block.args:
            source = f"{body.label}.{number}"
            assert after is not None
            after += [f"{source}:", f"  br label %{body.labels[block]}"]
            labels.append(f"label %{source}")
        else:
            labels.append(f"label %{body.labels[block]}")
        seen.add(block)
        body.edges.setdefault(block, []).append(Edge(source, [body.value(value) for value in values]))
    return labels


def _align(fields: Mapping[str, Attribute]) -> str:
    alignment = integer_field(fields, "alignment")
    return f", align {alignment}" if alignment else ""


def _volatile(fields: Mapping[str, Attribute]) -> str:
    return " volatile" if "volatile_" in fields else ""


def _word(op: Operation) -> str:
    return name_of(op).removeprefix("llvm.")
