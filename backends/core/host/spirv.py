"""Reads a SPIR-V module: its types, its constants, and the blocks of its functions in the order of execution."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from foundry_core.spirv_numbers import NUMBERS, numbers

NAMES = {number: name for name, number in NUMBERS["Op"].items()}
# Extended instructions under the names that OpenCL gives them. The lowering has this table, too: with a shared one, the
# machine would share its faults.
_GLSL = {
    "rint": "RoundEven",
    "trunc": "Trunc",
    "fabs": "FAbs",
    "floor": "Floor",
    "ceil": "Ceil",
    "exp2": "Exp2",
    "sqrt": "Sqrt",
    "fma": "Fma",
    "fmin": "NMin",
    "fmax": "NMax",
}
EXTENDED = {
    "GLSL.std.450": {NUMBERS["GLSL.std.450"][name]: ours for ours, name in _GLSL.items()},
    "OpenCL.std": {number: name for name, number in NUMBERS["OpenCL.std"].items()},
}
WORKGROUP, PRIVATE, PUSH = numbers("StorageClass", "Workgroup Function PushConstant")
(_LOCAL_SIZE,) = numbers("ExecutionMode", "LocalSize")
_BUILTIN, _STRIDE, _OFFSET = numbers("Decoration", "BuiltIn ArrayStride Offset")


@dataclass
class Type:
    """A type.

    Attributes:
        parts: the types and numbers that it is made of.
        dtype: of an element.
        lanes: the elements of a vector, or of a cooperative matrix.
        size: in bytes.
        shape: the rows and columns of a cooperative matrix.
        is_bf16: NumPy has no bf16: a number of it is the upper half of an f32, a u2.
    """

    kind: str
    parts: tuple[int, ...] = ()
    dtype: Any = None
    lanes: int = 1
    size: int = 0
    shape: tuple[int, int] = (0, 0)
    is_bf16: bool = False


Instruction = tuple[str, Sequence[int]]


@dataclass
class Function:
    """A function: its parameters, and its blocks, each with its ID, in the order of execution."""

    parameters: list[int] = field(default_factory=list)
    blocks: list[tuple[int, list[Instruction]]] = field(default_factory=list)


class Module:
    """What a module declares, and its functions."""

    def __init__(self, binary: bytes) -> None:
        self.types: dict[int, Type] = {}
        self.type_of: dict[int, int] = {}
        self.constants: dict[int, Any] = {}
        self.builtins: dict[int, int] = {}
        self.strides: dict[int, int] = {}
        self.offsets: dict[tuple[int, int], int] = {}
        self.variables: dict[int, int] = {}
        self.functions: dict[int, Function] = {}
        self.sets: dict[int, dict[int, str]] = {}
        self.entry = self.invocations = 0
        function: Function | None = None
        words = struct.unpack(f"<{len(binary) // 4}I", binary)
        at = 5
        while at < len(words):
            name, operands = NAMES[words[at] & 0xFFFF], words[at + 1 : at + (words[at] >> 16)]
            at += words[at] >> 16
            if name == "Function":
                function = self.functions[operands[1]] = Function()
            elif function is None:
                self._declare(name, operands)
            elif name == "FunctionParameter":
                function.parameters.append(operands[1])
                self.type_of[operands[1]] = operands[0]
            elif name == "FunctionEnd":
                _sort(function)
                function = None
            elif name == "Label":
                function.blocks.append((operands[0], []))
            elif name not in ("Line", "NoLine", "SelectionMerge", "LoopMerge"):
                function.blocks[-1][1].append((name, operands))
                if len(operands) > 1 and operands[0] in self.types:
                    self.type_of[operands[1]] = operands[0]

    def pointee(self, pointer: int) -> int:
        """Return the type that a pointer points to."""
        return self.types[self.type_of[pointer]].parts[1]

    def _declare(self, name: str, words: Sequence[int]) -> None:
        if name.startswith("Type"):
            self.types[words[0]] = self._type(name[4:], words)
        elif name.startswith("Constant") or name == "Undef":
            self.type_of[words[1]] = words[0]
            self.constants[words[1]] = self._constant(name, self.types[words[0]], words[2:])
        elif name == "Variable":
            self.type_of[words[1]] = words[0]
            self.variables[words[1]] = words[2]
        elif name == "ExtInstImport":
            text = struct.pack(f"<{len(words) - 1}I", *words[1:]).split(b"\0")[0].decode()
            self.sets[words[0]] = EXTENDED[text]
        elif name == "EntryPoint":
            self.entry = words[1]
        elif name == "ExecutionMode" and words[1] == _LOCAL_SIZE:
            self.invocations = words[2] * words[3] * words[4]
        elif name == "Decorate" and words[1] == _BUILTIN:
            self.builtins[words[0]] = words[2]
        elif name == "Decorate" and words[1] == _STRIDE:
            self.strides[words[0]] = words[2]
        elif name == "MemberDecorate" and words[2] == _OFFSET:
            self.offsets[words[0], words[1]] = words[3]

    def _type(self, kind: str, words: Sequence[int]) -> Type:
        match kind:
            case "Bool":
                return Type(kind, dtype=np.dtype(bool), size=1)
            case "Int" | "Float":
                is_bf16 = kind == "Float" and len(words) > 2
                name = "u2" if is_bf16 else f"{kind[0].lower()}{words[1] // 8}"
                return Type(kind, dtype=np.dtype(name), size=words[1] // 8, is_bf16=is_bf16)
            case "Vector":
                part = self.types[words[1]]
                return Type(kind, (words[1],), part.dtype, words[2], part.size * words[2])
            case "CooperativeMatrix":
                part, rows, columns = self.types[words[1]], *(int(self.constants[word]) for word in words[3:5])
                return Type(
                    kind, tuple(words[1:]), part.dtype, rows * columns, part.size, (rows, columns), is_bf16=part.is_bf16
                )
            case "Array":
                stride = self.strides.get(words[0], self.types[words[1]].size)
                return Type(kind, (words[1],), size=stride * int(self.constants[words[2]]))
            case "Struct":
                return Type(kind, tuple(words[1:]), size=sum(self.types[word].size for word in words[1:]))
            case "Pointer":
                return Type(kind, (words[1], words[2]), np.dtype("i8"), size=8)
        return Type(kind, tuple(words[1:]))

    def _constant(self, name: str, type: Type, words: Sequence[int]) -> Any:
        match name:
            case "ConstantTrue":
                return np.bool_(True)
            case "ConstantComposite":
                return np.array([self.constants[word] for word in words])
            case "Constant":
                return np.frombuffer(struct.pack(f"<{len(words)}I", *words)[: type.size], type.dtype)[0]
        if type.dtype is None:
            return np.int64(0)
        return np.zeros(type.lanes, type.dtype) if type.kind == "Vector" else np.zeros((), type.dtype)[()]


def _sort(function: Function) -> None:
    """Put the blocks in the order in which they are executed."""
    blocks: dict[int, list[Instruction]] = dict(function.blocks)
    if blocks:
        after = {id: successors(instructions) for id, instructions in function.blocks}
        function.blocks = [(id, blocks[id]) for id in execution_order([function.blocks[0][0]], after, set(blocks))]


def successors(block: Sequence[Instruction]) -> Sequence[int]:
    """Return the blocks that may follow one."""
    name, words = block[-1]
    return {"Branch": words[:1], "BranchConditional": words[1:3]}.get(name, ())


def execution_order(entries: Sequence[int], successors: Mapping[int, Sequence[int]], within: set[int]) -> list[int]:
    """Return blocks in a weak topological order, so that paths of invocations meet again as early as they can: what
    follows a loop comes after all blocks of the loop."""
    found: list[int] = []
    for head, *rest in _components(entries, successors, within):
        # A loop: its header first, then the same for what is left without it.
        inside = set(rest)
        following = [block for block in successors[head] if block in inside]
        found = [head, *(execution_order(following, successors, inside) if rest else []), *found]
    return found


def _components(entries: Sequence[int], successors: Mapping[int, Sequence[int]], within: set[int]) -> list[list[int]]:
    """Return strongly connected components, the last first (Tarjan); each begins with what is reached first."""
    numbers: dict[int, int] = {}
    lows: dict[int, int] = {}
    stack: list[int] = []
    found: list[list[int]] = []

    # A path has as many blocks as a kernel, so the way back is kept in a list: blocks, and what is left to visit.
    way: list[tuple[int, Iterator[int]]] = []

    def enter(block: int) -> None:
        numbers[block] = lows[block] = len(numbers)
        stack.append(block)
        way.append((block, iter([after for after in successors[block] if after in within])))

    for entry in entries:
        if entry not in numbers:
            enter(entry)
        while way:
            block, left = way[-1]
            after = next(left, None)
            if after is None:
                way.pop()
                if way:
                    lows[way[-1][0]] = min(lows[way[-1][0]], lows[block])
                if lows[block] == numbers[block]:
                    at = stack.index(block)
                    found.append(stack[at:])
                    del stack[at:]
            elif after not in numbers:
                enter(after)
            elif after in stack:
                lows[block] = min(lows[block], numbers[after])
    return found
