"""Writes SPIR-V in its binary form: the sections of a module, its types and constants once each, its instructions.

This module knows the format only. What a kernel does is in instructions.py.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Iterable, Mapping

from ....errors import LoweringError
from ....spirv_numbers import NUMBERS
from ....strings import spirv_string

_MAGIC = 0x07230203

OP, CAPABILITY, STORAGE = NUMBERS["Op"], NUMBERS["Capability"], NUMBERS["StorageClass"]
# What the set of Vulkan calls an instruction of OpenCL's set.
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
# Sets of extended instructions. An instruction has the name that OpenCL gives it.
EXTENDED = {
    "GLSL.std.450": {name: NUMBERS["GLSL.std.450"][other] for name, other in _GLSL.items()},
    "OpenCL.std": NUMBERS["OpenCL.std"],
}


def _string(text: str) -> list[int]:
    return list(struct.unpack(f"<{len(spirv_string(text)) // 4}I", spirv_string(text)))


class SpirvModule:
    """A SPIR-V module in the making. Sections grow independently; `assemble` puts them in the order of the format.

    An ID is the number of a result. Types and constants are declared at their first use.

    Attributes:
        body: the instructions of the function that is being written.
        exact: results that must not be computed together with others, as a product and a sum in one instruction.
        named: results of the function, with names for a person.

    Args:
        version: of SPIR-V, such as (1, 6).
        addressing, memory: the addressing model and the memory model, as SPIR-V numbers them.
        functions: the set of extended instructions, one of EXTENDED.
    """

    def __init__(self, version: tuple[int, int], addressing: int, memory: int, functions: str) -> None:
        self._version = version
        self._model = (addressing, memory)
        self._set = functions
        self._bound = 1
        self.lacks: Mapping[str, str] = {}
        self._capabilities: dict[int, None] = {}
        self._extensions: dict[str, None] = {}
        self._imports: dict[str, int] = {}
        self._heads: list[int] = []
        self._strings: list[int] = []
        self._names: list[int] = []
        self._decorations: list[int] = []
        self._decorated: set[tuple[int, ...]] = set()
        self._declarations: list[int] = []
        self._declared: dict[tuple[object, ...], int] = {}
        self._functions: list[int] = []
        self._late: list[tuple[Callable[..., None], tuple[object, ...]]] = []
        self.body: list[int] = []
        self.exact: list[int] = []
        self.named: list[tuple[int, str]] = []

    def new(self) -> int:
        """Return an ID that nothing else has."""
        found = self._bound
        self._bound += 1
        return found

    @staticmethod
    def _instruction(section: list[int], name: str, operands: Iterable[int]) -> None:
        words = [0, *operands]
        words[0] = len(words) << 16 | OP[name]
        section += words

    # The head of the module.

    def capability(self, name: str, extension: str = "") -> None:
        """Declare that the module uses a capability, and the extension that it comes with.

        Raises:
            LoweringError: it is among `lacks`.
        """
        if name in self.lacks:
            raise LoweringError(f"needs {self.lacks[name]} (capability {name}), which the device does not have")
        self._capabilities[CAPABILITY[name]] = None
        if extension:
            self._extensions[extension] = None

    def extended_instruction(self, name: str) -> tuple[int, int]:
        """Return the ID of the module's set of extended instructions, and the number of one in it."""
        if self._set not in self._imports:
            self._imports[self._set] = self.new()
        return self._imports[self._set], EXTENDED[self._set][name]

    def entry(
        self, model: int, function: int, name: str, interface: Iterable[int], modes: Iterable[Iterable[int]]
    ) -> None:
        """Declare the entry point, the global variables that it uses, and its execution modes."""
        self._instruction(self._heads, "EntryPoint", [model, function, *_string(name), *interface])
        for mode in modes:
            self._instruction(self._heads, "ExecutionMode", [function, *mode])

    def name(self, target: int, text: str) -> None:
        self._instruction(self._names, "Name", [target, *_string(text)])

    def string(self, text: str) -> int:
        """Return the ID of a string, for OpLine."""
        return self._once(("String", text), self._strings, "String", None, _string(text))

    def decorate(self, *operands: int) -> None:
        if operands not in self._decorated:
            self._decorated.add(operands)
            self._instruction(self._decorations, "Decorate", operands)

    def decorate_member(self, *operands: int) -> None:
        self._instruction(self._decorations, "MemberDecorate", operands)

    # Types, constants and global variables.

    def _once(
        self, key: tuple[object, ...], section: list[int], name: str, type: int | None, operands: Iterable[int]
    ) -> int:
        found = self._declared.get(key)
        if found is None:
            found = self._declared[key] = self.new()
            self._instruction(section, name, [found, *operands] if type is None else [type, found, *operands])
        return found

    def type(self, name: str, *operands: int, key: object = None) -> int:
        """Return a type, such as type("Int", 32, 0).

        Args:
            key: types with the same operands are one type, unless this differs (for structures, whose decorations
            may).
        """
        return self._once(("Type", name, operands, key), self._declarations, f"Type{name}", None, operands)

    def constant(self, type: int, bits: int, width: int) -> int:
        """Return a number from its bits, of which those above its width are zero."""
        words = [bits & 0xFFFFFFFF] if width <= 32 else [bits & 0xFFFFFFFF, bits >> 32 & 0xFFFFFFFF]
        return self._once(("Constant", type, *words), self._declarations, "Constant", type, words)

    def boolean(self, type: int, value: bool) -> int:
        name = "ConstantTrue" if value else "ConstantFalse"
        return self._once((name, type), self._declarations, name, type, ())

    def composite(self, type: int, *parts: int) -> int:
        return self._once(("Composite", type, parts), self._declarations, "ConstantComposite", type, parts)

    def undef(self, type: int) -> int:
        """Return any value of a type."""
        return self._once(("Undef", type), self._declarations, "Undef", type, ())

    def variable(self, type: int, storage: str) -> int:
        """Return a new global variable of a pointer type."""
        found = self.new()
        self._instruction(self._declarations, "Variable", [type, found, STORAGE[storage]])
        return found

    def declare(self, name: str, *operands: int) -> None:
        """Declare a type or variable whose ID, among the operands, is taken already."""
        self._instruction(self._declarations, name, operands)

    def late(self, write: Callable[..., None], *arguments: object) -> None:
        """Call a function when the module is assembled: for declarations that depend on the whole."""
        self._late.append((write, arguments))

    # Functions.

    def do(self, name: str, *operands: int) -> None:
        """Append an instruction without a result to the function that is being written."""
        body = self.body
        body.append(len(operands) + 1 << 16 | OP[name])
        body += operands

    def result(self, name: str, type: int, *operands: int) -> int:
        """Append an instruction; return the ID of its result."""
        found = self._bound
        self._bound = found + 1
        body = self.body
        body += (len(operands) + 3 << 16 | OP[name], type, found, *operands)
        return found

    def length(self) -> tuple[int, int, int]:
        """Return how much has been written of the function, for `cut`."""
        return len(self.body), len(self.exact), len(self.named)

    def cut(self, length: tuple[int, int, int]) -> None:
        """Take back what was written since `length`."""
        del self.body[length[0] :]
        del self.exact[length[1] :]
        del self.named[length[2] :]

    def finish_function(self) -> None:
        """Append the function that has been written to the module, and begin the next one."""
        self._functions += self.body
        self.body = []

    def assemble(self) -> bytes:
        """Return the module in the binary form, in the byte order of this machine."""
        for write, arguments in self._late:
            write(*arguments)
        # A register has the name of the value that it was made for.
        for result, text in dict(reversed(self.named)).items():
            self.name(result, text)
        major, minor = self._version
        head: list[int] = [_MAGIC, major << 16 | minor << 8, 0, self._bound, 0]
        for capability in sorted(self._capabilities):
            self._instruction(head, "Capability", [capability])
        for extension in sorted(self._extensions):
            self._instruction(head, "Extension", _string(extension))
        for name, found in self._imports.items():
            self._instruction(head, "ExtInstImport", [found, *_string(name)])
        self._instruction(head, "MemoryModel", self._model)
        return array(
            "I",
            [
                *head,
                *self._heads,
                *self._strings,
                *self._names,
                *self._decorations,
                *self._declarations,
                *self._functions,
            ],
        ).tobytes()
