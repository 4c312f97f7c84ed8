"""Writes a module as text: target lines, globals, functions, and declarations of the intrinsics they call."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from xdsl.dialects.builtin import FileLineColLoc, StringAttr
from xdsl.dialects.llvm import LLVMFunctionType
from xdsl.ir import Attribute, Block, Operation

from ...errors import LoweringError, UnsupportedOperation, source_line, unsupported
from . import types
from .body import (
    Body,
    LLVMModule,
    Signature,
    TypedValue,
    attributes,
    dictionaries,
    integer_field,
    name_of,
    quote_symbol,
)
from .constants import constant_text, zero
from .operations import EMITTERS
from .reading import read_module

# MLIR's linkages that LLVM 12 has and writes as a word; external is written as no word.
_LINKAGES = (
    *("private", "internal", "available_externally", "linkonce", "weak"),
    *("common", "linkonce_odr", "weak_odr", "extern_weak"),
)
_FUNCTION_WORDS = {"no_inline": "noinline", "always_inline": "alwaysinline", "no_unwind": "nounwind"}
_PARAMETER_WORDS = {
    "llvm.noalias": "noalias",
    "llvm.nonnull": "nonnull",
    "llvm.signext": "signext",
    "llvm.zeroext": "zeroext",
}
# These would change how an argument is passed, so they are refused.
_REFUSED_PARAMETERS = ("byval", "byref", "sret", "inalloca", "inreg", "nest", "preallocated")
# The file that mlir-opt gives to what has no place.
_UNPLACED = "<stdin>"
# The operations that an initializer may consist of.
_CONSTANTS = frozenset(f"llvm.mlir.{word}" for word in ("constant", "undef", "poison", "zero", "addressof"))


def write_typed_llvm(mlir: str, *, triple: str, datalayout: str) -> str:
    """Translate a module in the llvm dialect to LLVM IR with typed pointers; see the package's docstring.

    Args:
        mlir: the module in MLIR's generic form (mlir-opt --mlir-print-op-generic).
        triple, datalayout: for the target lines; the module's own entries are ignored.

    Raises:
        UnsupportedOperation: an operation, or a form of it, that LLVM 12 cannot express.
        LoweringError: the text is not the generic form of the llvm dialect.
    """
    module = LLVMModule()
    functions, globals_ = [], []
    for op in read_module(mlir).body.ops:
        with naming(op):
            if name_of(op) == "llvm.func":
                functions.append(op)
                _note_function(module, op)
            elif name_of(op) == "llvm.mlir.global":
                globals_.append(op)
                fields = attributes(op)
                type = types.pointer(types.type_text(fields["global_type"]), integer_field(fields, "addr_space"))
                module.globals[_name(op)] = TypedValue(f"@{quote_symbol(_name(op))}", type)
            else:
                raise LoweringError("only functions and globals stand in a module")
    parts = [
        [f'target datalayout = "{datalayout}"', f'target triple = "{triple}"'],
        [_global(module, op) for op in globals_],
        *([_function(module, op)] for op in functions),
    ]
    used = [signature for name, signature in sorted(module.intrinsics.items()) if name not in module.functions]
    parts.append([f"declare {_head(signature, signature.parameters)}" for signature in used])
    parts.append(module.metadata.write())
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


@contextmanager
def naming(op: Operation) -> Iterator[None]:
    """Add the operation and its source line to errors raised in the context."""
    try:
        yield
    except UnsupportedOperation:
        raise
    except LoweringError as error:
        raise unsupported(op, str(error), name_of(op)) from error


def _name(op: Operation) -> str:
    name = attributes(op)["sym_name"]
    assert isinstance(name, StringAttr)
    return name.data


def _linkage(fields: Mapping[str, Attribute]) -> str:
    said = str(fields.get("linkage", "external"))
    word = said.removeprefix("#llvm.linkage<").removesuffix(">")
    if word not in _LINKAGES and word != "external":
        raise LoweringError(f"the linkage {word}")
    return "" if word == "external" else f"{word} "


def _section(fields: Mapping[str, Attribute]) -> str:
    section = fields.get("section")
    return f', section "{section.data}"' if isinstance(section, StringAttr) else ""


def _function_type(op: Operation) -> LLVMFunctionType:
    of = attributes(op)["function_type"]
    assert isinstance(of, LLVMFunctionType)
    return of


def _parameters(op: Operation) -> list[Mapping[str, Attribute]]:
    return dictionaries(attributes(op), "arg_attrs", len(_function_type(op).inputs))


def _note_function(module: LLVMModule, op: Operation) -> None:
    of = _function_type(op)
    parameters = [
        types.pointer(types.type_text(fields["foundry.elem"]), types.space(each))
        if "foundry.elem" in fields and types.is_pointer(each)
        else types.type_text(each)
        for each, fields in zip(of.inputs, _parameters(op), strict=True)
    ]
    signature = Signature(_name(op), types.type_text(of.output), tuple(parameters), of.is_variadic)
    module.functions[signature.name] = signature


def _global(module: LLVMModule, op: Operation) -> str:
    fields = attributes(op)
    with naming(op):
        of, space = fields["global_type"], integer_field(fields, "addr_space")
        linkage, value = _linkage(fields), ""
        if "value" in fields:
            value = f" {constant_text(fields['value'], of)}"
        elif any(region.blocks for region in op.regions):
            value = f" {_initialiser(module, op)}"
        elif linkage:
            value = f" {zero(of) if linkage == 'common ' else 'undef'}"
        else:
            linkage = "external "
        words = f"addrspace({space}) " if space else ""
        words += "constant" if "constant" in fields else "global"
        align = f", align {alignment}" if (alignment := integer_field(fields, "alignment")) else ""
        return f"@{quote_symbol(_name(op))} = {linkage}{words} {types.type_text(of)}{value}{_section(fields)}{align}"


def _initialiser(module: LLVMModule, op: Operation) -> str:
    body = Body(module, Signature("", "", ()))
    for inner in op.regions[0].block.ops:
        with naming(inner):
            if name_of(inner) == "llvm.return":
                return body.name(inner.operands[0])
            if name_of(inner) not in _CONSTANTS:
                raise LoweringError("in an initialiser")
            EMITTERS[name_of(inner)](body, inner)
    raise LoweringError("an initialiser without a value")


def _words(fields: Mapping[str, Attribute]) -> str:
    """Return a parameter's attributes that LLVM 12 has and that matter; ignore those of other dialects."""
    for word in _REFUSED_PARAMETERS:
        if f"llvm.{word}" in fields:
            raise LoweringError(f"a parameter that is {word}")
    words = [word for key, word in _PARAMETER_WORDS.items() if key in fields]
    if alignment := integer_field(fields, "llvm.align"):
        words.append(f"align {alignment}")
    return "".join(f" {word}" for word in words)


def _function(module: LLVMModule, op: Operation) -> str:
    with naming(op):
        signature, fields = module.functions[_name(op)], attributes(op)
        linkage, section = _linkage(fields), _section(fields)
        words = "".join(f" {word}" for key, word in _FUNCTION_WORDS.items() if key in fields)
        attributed = [_words(parameter) for parameter in _parameters(op)]
        if not op.regions or not op.regions[0].blocks:
            parameters = [f"{of}{word}" for of, word in zip(signature.parameters, attributed, strict=True)]
            return f"declare {linkage}{_head(signature, parameters)}{words}"
    body = Body(module, signature)
    names = _parameter_names(op)
    blocks = _in_order(op.regions[0].blocks[0])
    for value, name, of in zip(blocks[0].args, names, signature.parameters, strict=True):
        body.bind(value, TypedValue(name, of))
    named = zip(signature.parameters, attributed, names, strict=True)
    head = _head(signature, [f"{of}{word} {name}" for of, word, name in named])
    at = source_line(op.location)
    if at is not None and at.filename.data == _UNPLACED:
        at = None
    scope = module.metadata.scope(signature.name, at)
    debug = "" if scope is None else f" !dbg !{scope}"
    opening = f"define {linkage}{head}{words}{section}{debug} {{"
    return "\n".join([opening, *_blocks(body, blocks, _debug_locations(module, at, scope)), "}"])


def _head(signature: Signature, parameters: Sequence[str]) -> str:
    """Return the text of a function's result, name and parameters."""
    texts = [*parameters, "..."] if signature.variadic else parameters
    return f"{signature.result} @{quote_symbol(signature.name)}({', '.join(texts)})"


def _debug_locations(module: LLVMModule, at: FileLineColLoc | None, scope: int | None) -> Callable[[Operation], str]:
    """Return a function that writes the debug location of an operation.

    An operation without a location in the function's file gets that of the function: an instruction without a location
    must not call a function that has locations.
    """

    def location(op: Operation) -> str:
        if at is None or scope is None:
            return ""
        place = source_line(op.location)
        if place is None or place.filename != at.filename:
            place = at
        return module.metadata.place(place.line.data, place.column.data, scope)

    return location


def _parameter_names(op: Operation) -> list[str]:
    """Return the names from foundry.name; a number if it is missing, a duplicate, or could be one of our own names."""
    names: list[str] = []
    for index, fields in enumerate(_parameters(op)):
        wanted = fields.get("foundry.name")
        name = f"%{quote_symbol(wanted.data)}" if isinstance(wanted, StringAttr) and wanted.data else f"%arg{index}"
        reserved = re.fullmatch(r"%(v|bb|arg)\d+(\.\d+)?|%entry", name)
        names.append(f"%arg{index}" if name in names or reserved else name)
    return names


def _in_order(entry: Block) -> list[Block]:
    """Return the reachable blocks, each after the blocks that dominate it: reverse postorder."""
    seen, order = {entry}, []
    stack = [(entry, iter(_successors(entry)))]
    while stack:
        block, rest = stack[-1]
        for successor in rest:
            if successor not in seen:
                seen.add(successor)
                stack.append((successor, iter(_successors(successor))))
                break
        else:
            order.append(block)
            stack.pop()
    return order[::-1]


def _successors(block: Block) -> list[Block]:
    # In reverse, so that the first target of a condition comes first in the order.
    return list(block.last_op.successors)[::-1] if block.last_op is not None else []


def _blocks(body: Body, blocks: list[Block], place: Callable[[Operation], str]) -> list[str]:
    body.labels = {block: f"bb{index}" if index else "entry" for index, block in enumerate(blocks)}
    written: list[tuple[Block, list[str]]] = []
    for block in blocks:
        body.label, body.lines = body.labels[block], []
        if block is not blocks[0]:
            for argument in block.args:
                body.bind(argument, TypedValue(body.fresh(), types.type_text(argument.type)))
        for op in block.ops:
            with naming(op):
                emitter = EMITTERS.get(name_of(op))
                if emitter is None:
                    raise LoweringError("LLVM 12 has none, or there is no rule for it")
                body.place = place(op)
                emitter(body, op)
        written.append((block, body.lines))
    lines: list[str] = []
    for block, inside in written:
        lines.append(f"{body.labels[block]}:")
        if block is not blocks[0]:
            for index, argument in enumerate(block.args):
                incoming = ", ".join(f"[ {edge.values[index].name}, %{edge.source} ]" for edge in body.edges[block])
                lines.append(f"  {body.name(argument)} = phi {types.type_text(argument.type)} {incoming}")
        lines += inside
    return lines
