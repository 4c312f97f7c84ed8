"""SPIR-V as text, for tests: an instruction a line, with types and constants in place of their IDs.

    %57 = Load v4f32 %56 2 16

Decorations, types and constants have no lines of their own. Operands that are no IDs are numbers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from foundry_core.mapping.simt.spirv.module import CAPABILITY, OP, STORAGE

_NAMES = {number: name for name, number in OP.items()}
_CAPABILITIES = {number: name for name, number in CAPABILITY.items()}
_STORAGES = {number: name for name, number in STORAGE.items()}
# Instructions without a result, by what their operands are: i an ID, n a number, * the last kind again.
_WITHOUT_RESULT = {
    "Store": "iin*",
    "ControlBarrier": "iii",
    "MemoryBarrier": "ii",
    "LoopMerge": "iin",
    "SelectionMerge": "in",
    "Branch": "i",
    "BranchConditional": "iii",
    "Return": "",
    "ReturnValue": "i",
    "FunctionEnd": "",
    "Unreachable": "",
    "Line": "inn",
    "AtomicStore": "iiii",
    "CooperativeMatrixStore": "iiiin*",
}
# Instructions with a result and a type, if an operand is a number.
_WITH_RESULT = {
    "Load": "in*",
    "CompositeExtract": "in*",
    "ExtInst": "ini*",
    "Function": "ni",
    "Variable": "ni",
    "CooperativeMatrixLoad": "iiin*",
    "CooperativeMatrixMulAdd": "iiin*",
    "VectorShuffle": "iin*",
}


def _instructions(binary: bytes) -> Iterator[tuple[str, Sequence[int]]]:
    words = struct.unpack(f"<{len(binary) // 4}I", binary)
    at = 5
    while at < len(words):
        count, number = words[at] >> 16, words[at] & 0xFFFF
        yield _NAMES[number], words[at + 1 : at + count]
        at += count


def _string(words: Sequence[int]) -> str:
    return struct.pack(f"<{len(words)}I", *words).split(b"\0")[0].decode()


class _Text:
    """Says what IDs mean, as far as it has been read."""

    def __init__(self) -> None:
        self._known: dict[int, str] = {}

    def name(self, id: int) -> str:
        return self._known.get(id, f"%{id}")

    def line(self, name: str, words: Sequence[int]) -> str | None:
        match name:
            case "Capability":
                return f"Capability {_CAPABILITIES[words[0]]}"
            case "String":
                self._known[words[0]] = f'"{_string(words[1:])}"'
            case "Name":
                return f"Name %{words[0]} {_string(words[1:])}"
            case "EntryPoint":
                return f"EntryPoint %{words[1]} {_string(words[2:])}"
            case "ExecutionMode":
                return f"ExecutionMode {' '.join(map(str, words[1:]))}"
            case "Constant" | "ConstantTrue" | "ConstantFalse" | "ConstantNull":
                self._known[words[1]] = self._constant(name, words)
            case "Extension" | "ExtInstImport" | "MemoryModel" | "Decorate" | "MemberDecorate":
                return None
            case _ if name.startswith("Type"):
                self._known[words[0]] = self._type(name[4:], words[1:])
            case "Label":
                return f"%{words[0]}:"
            case _ if name in _WITHOUT_RESULT:
                return " ".join([name, *self._operands(words, _WITHOUT_RESULT[name])])
            case _:
                operands = self._operands(words[2:], _WITH_RESULT.get(name, "i*"))
                return " ".join([f"%{words[1]} = {name}", self.name(words[0]), *operands])
        return None

    def _operands(self, words: Sequence[int], kinds: str) -> list[str]:
        if kinds.endswith("*"):
            kinds = kinds[:-1] + kinds[-2] * len(words)
        return [self.name(word) if kind == "i" else str(word) for word, kind in zip(words, kinds, strict=False)]

    def _constant(self, name: str, words: Sequence[int]) -> str:
        if name != "Constant":
            return name[8:].lower()
        type, size = self.name(words[0]), 4 * (len(words) - 2)
        code = {"f32": "<f", "f64": "<d"}.get(type, "<q" if size == 8 else "<i")
        (number,) = struct.unpack(code, struct.pack(f"<{size // 4}I", *words[2:]))
        return f"{number:g}" if type[0] == "f" else str(number)

    def _type(self, kind: str, words: Sequence[int]) -> str:
        match kind:
            case "Int" | "Float":
                return f"{kind[0].lower()}{words[0]}"
            case "Vector":
                return f"v{words[1]}{self.name(words[0])}"
            case "Pointer":
                return f"{_STORAGES[words[0]]}*{self.name(words[1])}"
            case "Array":
                return f"{self.name(words[0])}[{self.name(words[1])}]"
            case "Struct" | "Function":
                return f"{kind.lower()}({','.join(map(self.name, words))})"
            case "CooperativeMatrix":
                elem, _, rows, columns, use = map(self.name, words)
                return f"matrix{use}.{elem}.{rows}x{columns}"
        return kind.lower()


def disassembled(binary: bytes) -> str:
    """Return a module as text."""
    text = _Text()
    lines = [text.line(name, words) for name, words in _instructions(binary)]
    return "\n".join(line for line in lines if line is not None) + "\n"
