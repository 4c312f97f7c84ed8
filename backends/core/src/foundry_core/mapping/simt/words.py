"""Writes SPIR-V in its binary form: the sections of a module, its types and constants once each, its instructions.

Numbers of opcodes and enumerants are those of the SPIR-V specification, version 1.6, and its registered extensions.
This module knows the format only. What a kernel does is in code.py.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from ...errors import LoweringError
from ...strings import spirv_string

_MAGIC = 0x07230203

OP: Final = {
    "Undef": 1,
    "Source": 3,
    "Name": 5,
    "String": 7,
    "Line": 8,
    "Extension": 10,
    "ExtInstImport": 11,
    "ExtInst": 12,
    "MemoryModel": 14,
    "EntryPoint": 15,
    "ExecutionMode": 16,
    "Capability": 17,
    "TypeVoid": 19,
    "TypeBool": 20,
    "TypeInt": 21,
    "TypeFloat": 22,
    "TypeVector": 23,
    "TypeArray": 28,
    "TypeStruct": 30,
    "TypePointer": 32,
    "TypeFunction": 33,
    "ConstantTrue": 41,
    "ConstantFalse": 42,
    "Constant": 43,
    "ConstantComposite": 44,
    "ConstantNull": 46,
    "Function": 54,
    "FunctionParameter": 55,
    "FunctionEnd": 56,
    "FunctionCall": 57,
    "Variable": 59,
    "Load": 61,
    "Store": 62,
    "AccessChain": 65,
    "PtrAccessChain": 67,
    "Decorate": 71,
    "MemberDecorate": 72,
    "VectorShuffle": 79,
    "CompositeConstruct": 80,
    "CompositeExtract": 81,
    "CopyObject": 83,
    "ConvertFToU": 109,
    "ConvertFToS": 110,
    "ConvertSToF": 111,
    "ConvertUToF": 112,
    "UConvert": 113,
    "SConvert": 114,
    "FConvert": 115,
    "ConvertPtrToU": 117,
    "ConvertUToPtr": 120,
    "Bitcast": 124,
    "SNegate": 126,
    "FNegate": 127,
    "IAdd": 128,
    "FAdd": 129,
    "ISub": 130,
    "FSub": 131,
    "IMul": 132,
    "FMul": 133,
    "UDiv": 134,
    "SDiv": 135,
    "FDiv": 136,
    "UMod": 137,
    "SRem": 138,
    "FRem": 140,
    "UMulExtended": 151,
    "IsNan": 156,
    "LogicalEqual": 164,
    "LogicalNotEqual": 165,
    "LogicalOr": 166,
    "LogicalAnd": 167,
    "LogicalNot": 168,
    "Select": 169,
    "IEqual": 170,
    "INotEqual": 171,
    "UGreaterThan": 172,
    "SGreaterThan": 173,
    "UGreaterThanEqual": 174,
    "SGreaterThanEqual": 175,
    "ULessThan": 176,
    "SLessThan": 177,
    "ULessThanEqual": 178,
    "SLessThanEqual": 179,
    "FOrdEqual": 180,
    "FUnordEqual": 181,
    "FOrdNotEqual": 182,
    "FUnordNotEqual": 183,
    "FOrdLessThan": 184,
    "FUnordLessThan": 185,
    "FOrdGreaterThan": 186,
    "FUnordGreaterThan": 187,
    "FOrdLessThanEqual": 188,
    "FUnordLessThanEqual": 189,
    "FOrdGreaterThanEqual": 190,
    "FUnordGreaterThanEqual": 191,
    "ShiftRightLogical": 194,
    "ShiftRightArithmetic": 195,
    "ShiftLeftLogical": 196,
    "BitwiseOr": 197,
    "BitwiseXor": 198,
    "BitwiseAnd": 199,
    "Not": 200,
    "BitReverse": 204,
    "BitCount": 205,
    "ControlBarrier": 224,
    "MemoryBarrier": 225,
    "AtomicLoad": 227,
    "AtomicStore": 228,
    "AtomicExchange": 229,
    "AtomicCompareExchange": 230,
    "AtomicIAdd": 234,
    "AtomicSMin": 236,
    "AtomicUMin": 237,
    "AtomicSMax": 238,
    "AtomicUMax": 239,
    "AtomicAnd": 240,
    "AtomicOr": 241,
    "AtomicXor": 242,
    "Phi": 245,
    "LoopMerge": 246,
    "SelectionMerge": 247,
    "Label": 248,
    "Branch": 249,
    "BranchConditional": 250,
    "Return": 253,
    "ReturnValue": 254,
    "Unreachable": 255,
    "GroupNonUniformBroadcast": 337,
    "GroupNonUniformShuffle": 345,
    "GroupNonUniformShuffleXor": 346,
    "CooperativeMatrixLoad": 4457,
    "CooperativeMatrixStore": 4458,
    "CooperativeMatrixMulAdd": 4459,
    "TypeCooperativeMatrix": 4456,
    "AtomicFAdd": 6035,
}
CAPABILITY: Final = {
    "Shader": 1,
    "Addresses": 4,
    "Kernel": 6,
    "SubgroupDispatch": 58,
    "StoragePushConstant16": 4435,
    "StoragePushConstant8": 4450,
    "WorkgroupMemoryExplicitLayoutKHR": 4428,
    "WorkgroupMemoryExplicitLayout8BitAccessKHR": 4429,
    "WorkgroupMemoryExplicitLayout16BitAccessKHR": 4430,
    "Float16": 9,
    "Float64": 10,
    "Int64": 11,
    "Int64Atomics": 12,
    "Int16": 22,
    "Int8": 39,
    "GroupNonUniform": 61,
    "GroupNonUniformShuffle": 65,
    "StorageBuffer16BitAccess": 4433,
    "StorageBuffer8BitAccess": 4448,
    "SignedZeroInfNanPreserve": 4466,
    "DenormPreserve": 4464,
    "RoundingModeRTE": 4467,
    "BFloat16TypeKHR": 5116,
    "BFloat16CooperativeMatrixKHR": 5118,
    "VulkanMemoryModel": 5345,
    "VulkanMemoryModelDeviceScope": 5346,
    "PhysicalStorageBufferAddresses": 5347,
    "CooperativeMatrixKHR": 6022,
    "AtomicFloat32AddEXT": 6033,
    "AtomicFloat64AddEXT": 6034,
}
# Sets of extended instructions. An instruction has the name that OpenCL gives it.
EXTENDED: Final = {
    "GLSL.std.450": {
        "rint": 2,
        "trunc": 3,
        "floor": 8,
        "ceil": 9,
        "exp2": 29,
        "sqrt": 31,
        "fma": 50,
        "fabs": 4,
        "fmin": 79,
        "fmax": 80,
    },
    "OpenCL.std": {
        "ceil": 12,
        "exp2": 20,
        "floor": 25,
        "fma": 26,
        "rint": 53,
        "sqrt": 61,
        "trunc": 66,
        "fabs": 23,
        "fmax": 27,
        "fmin": 28,
    },
}
STORAGE: Final = {
    "Input": 1,
    "Workgroup": 4,
    "CrossWorkgroup": 5,
    "Function": 7,
    "PushConstant": 9,
    "PhysicalStorageBuffer": 5349,
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
