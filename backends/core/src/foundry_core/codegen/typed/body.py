"""The text of one function under construction: the names of its values, and the types of its pointers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FileLineColLoc,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...errors import LoweringError
from ...strings import llvm_string
from . import types


@dataclass(frozen=True)
class TypedValue:
    """A value in the text: `name` is a literal or begins with % or @; `type` is its type in the text.

    A pointer literal (null, undef) can point to any type: its `type` is "".
    """

    name: str
    type: str


@dataclass(frozen=True)
class Signature:
    """A function's declaration. Types are those of the text, so a pointer's type includes its pointee."""

    name: str
    result: str
    parameters: tuple[str, ...]
    variadic: bool = False

    def type(self) -> str:
        return types.function(self.result, self.parameters, self.variadic)


class Metadata:
    """What follows instructions: source places, as LLVM's debug information (line tables only), and hints of loops."""

    def __init__(self) -> None:
        self._nodes: dict[str, int] = {}

    def scope(self, name: str, place: FileLineColLoc | None) -> int | None:
        """Return the number of a function's DISubprogram; None if it has no place."""
        if place is None:
            return None
        path, line = place.filename.data, place.line.data
        folder, _, base = path.rpartition("/")
        file = self._node(f"!DIFile(filename: {llvm_string(base)}, directory: {llvm_string(folder)})")
        unit = self._node(
            f'distinct !DICompileUnit(language: DW_LANG_C99, file: !{file}, producer: "Triton", isOptimized: true, '
            "runtimeVersion: 0, emissionKind: LineTablesOnly)"
        )
        of = self._node(f"!DISubroutineType(types: !{self._node('!{}')})")
        return self._node(
            f"distinct !DISubprogram(name: {llvm_string(name)}, scope: !{file}, file: !{file}, line: {line}, "
            f"type: !{of}, scopeLine: {line}, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !{unit})"
        )

    def place(self, line: int, column: int, scope: int) -> str:
        """Return what follows an instruction that comes from a place."""
        return f", !dbg !{self._node(f'!DILocation(line: {line}, column: {column}, scope: !{scope})')}"

    def keeps_code(self) -> str:
        """Return the metadata to append to a loop's branch back, so that LLVM hoists nothing out of the loop."""
        hint = self._node('!{!"llvm.licm.disable"}')
        return f", !llvm.loop !{self._node(f'distinct !{{!{len(self._nodes)}, !{hint}}}')}"

    def write(self) -> list[str]:
        """Return the metadata, a node a line."""
        if not self._nodes:
            return []
        units = ", ".join(f"!{number}" for text, number in self._nodes.items() if "!DICompileUnit(" in text)
        flags = ", ".join(
            f"!{self._node(text)}"
            for text in ('!{i32 7, !"Dwarf Version", i32 4}', '!{i32 2, !"Debug Info Version", i32 3}')
        )
        named = [f"!llvm.dbg.cu = !{{{units}}}", f"!llvm.module.flags = !{{{flags}}}"]
        return [*named, *(f"!{number} = {text}" for text, number in self._nodes.items())]

    def _node(self, text: str) -> int:
        return self._nodes.setdefault(text, len(self._nodes))


@dataclass
class LLVMModule:
    """Facts shared by all functions: the source's symbols, and the intrinsics that the text must declare."""

    functions: dict[str, Signature] = field(default_factory=dict)
    globals: dict[str, TypedValue] = field(default_factory=dict)
    intrinsics: dict[str, Signature] = field(default_factory=dict)
    metadata: Metadata = field(default_factory=Metadata)

    def symbol(self, name: str) -> TypedValue:
        """Return a global or a function as a value."""
        if name in self.globals:
            return self.globals[name]
        if name in self.functions:
            return TypedValue(f"@{quote_symbol(name)}", f"{self.functions[name].type()}*")
        raise LoweringError(f"there is no symbol @{name}")


@dataclass
class Edge:
    """An edge to a block: the label of the block that it comes from, and the values of the block's arguments."""

    source: str
    values: list[TypedValue]


class Body:
    """The lines of one function. Values are numbered in the order of definition."""

    def __init__(self, module: LLVMModule, signature: Signature) -> None:
        self.module = module
        self.signature = signature
        self.lines: list[str] = []
        self.label = ""
        self.labels: dict[Block, str] = {}
        self.edges: dict[Block, list[Edge]] = {}
        # What follows each line: where it comes from.
        self.place = ""
        self._values: dict[SSAValue, TypedValue] = {}
        self._count = 0

    def fresh(self) -> str:
        self._count += 1
        return f"%v{self._count - 1}"

    def emit(self, line: str) -> None:
        self.lines.append(f"  {line}{self.place}")

    def bind(self, value: SSAValue, typed: TypedValue) -> None:
        """Record a value that needs no instruction: a parameter, a constant, another value."""
        self._values[value] = typed

    def define(self, value: SSAValue, instruction: str, type: str = "") -> None:
        """Write the instruction that computes a value; `type` is its type if it is a pointer with a known pointee."""
        name = self.fresh()
        self.emit(f"{name} = {instruction}")
        self.bind(value, TypedValue(name, type or types.type_text(value.type)))

    def value(self, value: SSAValue) -> TypedValue:
        """Return the value; a pointer is an i8*, as the MLIR type says."""
        return self.as_type(self._values[value], types.type_text(value.type))

    def natural(self, value: SSAValue) -> TypedValue:
        """Return the value; a pointer has the type with which it was created."""
        return self._values[value]

    def name(self, value: SSAValue) -> str:
        return self.value(value).name

    def operand(self, value: SSAValue) -> str:
        """Return a value with its type: `i32 %v1`."""
        operand = self.value(value)
        return f"{operand.type} {operand.name}"

    def pointer_operand(self, value: SSAValue, pointee: str) -> str:
        """Return a pointer to `pointee` with its type, after a cast if necessary: `float* %v1`."""
        wanted = types.pointer(pointee, types.space(value.type))
        return f"{wanted} {self.as_type(self._values[value], wanted).name}"

    def as_type(self, typed: TypedValue, wanted: str) -> TypedValue:
        """Return the value as another type, which may differ from its own in pointees only."""
        if not typed.type:
            return TypedValue(typed.name, wanted)
        if typed.type == wanted:
            return typed
        if typed.name.startswith("@"):
            return TypedValue(f"bitcast ({typed.type} {typed.name} to {wanted})", wanted)
        if not typed.name.startswith("%"):
            raise LoweringError(f"{typed.name} as {wanted}")
        name = self.fresh()
        self.emit(f"{name} = bitcast {typed.type} {typed.name} to {wanted}")
        return TypedValue(name, wanted)


def name_of(op: Operation) -> str:
    """Return an operation's name, even if xDSL has no definition of the operation."""
    name = op.attributes.get("op_name__")
    return name.data if isinstance(name, StringAttr) else op.name


def attributes(op: Operation) -> Mapping[str, Attribute]:
    return {**op.attributes, **op.properties}


def integer_field(fields: Mapping[str, Attribute], key: str, default: int = 0) -> int:
    found = fields.get(key)
    return found.value.data if isinstance(found, IntegerAttr) else default


def integer_fields(fields: Mapping[str, Attribute], key: str) -> list[int]:
    found = fields.get(key)
    return [int(value) for value in found.get_values()] if isinstance(found, DenseArrayBase) else []


def symbol(fields: Mapping[str, Attribute], key: str) -> str | None:
    found = fields.get(key)
    return found.root_reference.data if isinstance(found, SymbolRefAttr) else None


def dictionaries(fields: Mapping[str, Attribute], key: str, count: int) -> list[Mapping[str, Attribute]]:
    """Return an array of dictionaries such as arg_attrs; `count` empty ones if the attribute is missing."""
    found = fields.get(key)
    if not isinstance(found, ArrayAttr):
        return [{}] * count
    return [item.data if isinstance(item, DictionaryAttr) else {} for item in found]


def quote_symbol(name: str) -> str:
    """Return a symbol's name as the text needs it after @ or %, quoted if necessary."""
    plain = name.replace("_", "").replace(".", "").replace("$", "").replace("-", "")
    if plain.isalnum() and plain.isascii() and not name[0].isdigit():
        return name
    return llvm_string(name)
