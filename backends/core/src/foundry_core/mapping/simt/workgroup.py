"""One Triton program as a workgroup of invocations: their numbers, and the memory that they share.

How this is written in SPIR-V for Vulkan is here, and nowhere else in this package: an OpenCL device needs a second
class with these methods.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..base.mlir import WIDTHS, Reg
from .code import Code
from .target import SimtTarget
from .words import STORAGE, Module

_ADDRESSING, _MEMORY = 5348, 3  # PhysicalStorageBuffer64, Vulkan
_GLCOMPUTE = 5
_LOCAL_SIZE, _DENORM_PRESERVE, _SIGNED_ZERO, _ROUNDING_RTE = 17, 4459, 4461, 4462
_ARRAY_STRIDE, _BUILTIN, _OFFSET, _BLOCK, _ALIASED = 6, 11, 35, 2, 20
_NUM_WORKGROUPS, _WORKGROUP_ID, _LOCAL_INDEX, _LANE, _WARP = 24, 26, 29, 41, 40
_SCOPE_DEVICE, _SCOPE_WORKGROUP, _SCOPE_SUBGROUP = 1, 2, 3
# Acquire and release of buffers, made available and visible; and acquire only, where nothing is exchanged.
_ATOMIC, _ATOMIC_UNEQUAL = 0x8 | 0x40 | 0x2000 | 0x4000, 0x2 | 0x40 | 0x4000
# Acquire and release, of buffers and of workgroup memory, made available and visible to the others.
_ALL_MEMORY = 0x8 | 0x40 | 0x100 | 0x2000 | 0x4000
# Barriers make what was written available and visible; single accesses need not.
_ALIGNED, _NON_PRIVATE = 0x2, 0x20
# A vector of Vulkan's SPIR-V has no more components.
_COMPONENTS = 4


def _form(elem: str, lanes: int) -> tuple[str, int]:
    """Return the type and number of components in which neighbouring elements are read and written."""
    return (elem, lanes) if lanes <= _COMPONENTS else ("i32", lanes * WIDTHS[elem] // 32)


class Workgroup:
    """What invocations are to a Vulkan device.

    Attributes:
        code: the body of the kernel.
        local_bytes: the workgroup memory that is used, in bytes.
    """

    def __init__(self, target: SimtTarget) -> None:
        self._target = target
        self.module = Module(_ADDRESSING, _MEMORY)
        self.code = Code(self.module)
        self.local_bytes = 0
        self._interface: list[int] = []
        self._views: dict[tuple[str, int], int] = {}
        self._view_types: list[tuple[int, str, int]] = []
        self._parameters: list[tuple[str, int]] = []
        m = self.module
        m.capability("Shader")
        m.capability("VulkanMemoryModel")
        m.capability("PhysicalStorageBufferAddresses")
        m.capability("Int64")
        self._function = m.new()
        void = m.type("Void")
        m.do("Function", void, self._function, 0, m.type("Function", void))
        self.code.label()
        self._inputs: dict[int, int] = {}
        self._constants: dict[str, Reg] = {}

    # What an invocation is told.

    def _input(self, builtin: int, rank: int) -> int:
        m = self.module
        if builtin not in self._inputs:
            type = self.code.type("i32")
            type = m.type("Vector", type, rank) if rank > 1 else type
            variable = m.variable(m.type("Pointer", STORAGE["Input"], type), "Input")
            m.decorate(variable, _BUILTIN, builtin)
            self._interface.append(variable)
            self._inputs[builtin] = variable
        return self._inputs[builtin]

    def _component(self, builtin: int, axis: int) -> Reg:
        m, i32 = self.module, self.code.type("i32")
        whole = m.result("Load", m.type("Vector", i32, 3), self._input(builtin, 3))
        return Reg(f"%{m.result('CompositeExtract', i32, whole, axis)}", "i32")

    def program_id(self, axis: int) -> Reg:
        """Return the index of this program in the grid along an axis, an i32."""
        return self._component(_WORKGROUP_ID, axis)

    def num_programs(self, axis: int) -> Reg:
        return self._component(_NUM_WORKGROUPS, axis)

    def _once(self, key: str, builtin: int) -> Reg:
        if key not in self._constants:
            m = self.module
            m.capability("GroupNonUniform")
            self._constants[key] = Reg(f"%{m.result('Load', self.code.type('i32'), self._input(builtin, 1))}", "i32")
        return self._constants[key]

    def lane(self) -> Reg:
        """Return the number of this invocation in its subgroup."""
        return self._once("lane", _LANE)

    def warp(self) -> Reg:
        """Return the number of this subgroup in the workgroup."""
        return self._once("warp", _WARP)

    # Arguments.

    def parameter(self, elem: str) -> int:
        """Declare the next parameter; return its number. A pointer is an i64."""
        size = max(1, WIDTHS[elem] // 8)
        offset = -(-self.argument_bytes // size) * size
        self._parameters.append((elem, offset))
        return len(self._parameters) - 1

    @property
    def argument_bytes(self) -> int:
        """Return the size of the block of arguments so far."""
        return max((offset + max(1, WIDTHS[elem] // 8) for elem, offset in self._parameters), default=0)

    @property
    def argument_offsets(self) -> list[int]:
        return [offset for _, offset in self._parameters]

    def arguments(self) -> list[Reg]:
        """Read all arguments. Called once, after the last parameter is declared."""
        m, code = self.module, self.code
        if not self._parameters:
            return []
        types = [code.type(elem) for elem, _ in self._parameters]
        for elem, _ in self._parameters:
            if elem in ("i8", "i16"):
                m.capability({"i8": "StoragePushConstant8", "i16": "StoragePushConstant16"}[elem])
        block = m.type("Struct", *types, apart="arguments")
        m.decorate(block, _BLOCK)
        for number, (_, offset) in enumerate(self._parameters):
            m.decorate_member(block, number, _OFFSET, offset)
        variable = m.variable(m.type("Pointer", STORAGE["PushConstant"], block), "PushConstant")
        self._interface.append(variable)
        found = []
        for number, ((elem, _), type) in enumerate(zip(self._parameters, types, strict=True)):
            pointer = m.type("Pointer", STORAGE["PushConstant"], type)
            at = m.result("AccessChain", pointer, variable, code.id(code.integer(number, "i32")))
            found.append(Reg(f"%{m.result('Load', type, at)}", elem))
        return found

    # Global memory: an address is an i64.

    def _vector(self, elem: str, lanes: int) -> int:
        type = self.code.type(elem)
        return self.module.type("Vector", type, lanes) if lanes > 1 else type

    def _pointer(self, address: Reg, elem: str, lanes: int) -> int:
        m = self.module
        if elem in ("i8", "i16", "f16"):
            m.capability("StorageBuffer8BitAccess" if elem == "i8" else "StorageBuffer16BitAccess")
        type = m.type("Pointer", STORAGE["PhysicalStorageBuffer"], self._vector(elem, lanes))
        return m.result("ConvertUToPtr", type, self.code.id(address))

    def load(self, address: Reg, elem: str, lanes: int, alignment: int) -> list[Reg]:
        """Read neighbouring elements of global memory, 1 to 16 bytes."""
        kind, count = _form(elem, lanes)
        pointer = self._pointer(address, kind, count)
        flags = (_ALIGNED | _NON_PRIVATE, alignment)
        return self._unpacked(self.module.result("Load", self._vector(kind, count), pointer, *flags), elem, lanes)

    def _unpacked(self, vector: int, elem: str, lanes: int) -> list[Reg]:
        """Return the elements of what was read."""
        kind, count = _form(elem, lanes)
        if kind == elem:
            return self._split(vector, elem, lanes)
        part = lanes // count
        type = self._vector(elem, part)
        words = [self.module.result("Bitcast", type, self.code.id(word)) for word in self._split(vector, kind, count)]
        return [reg for word in words for reg in self._split(word, elem, part)]

    def _packed(self, values: Sequence[Reg]) -> tuple[int, str, int]:
        """Return what is written, and the type and number of its components."""
        elem = values[0].elem
        kind, count = _form(elem, len(values))
        if kind != elem:
            part, word = len(values) // count, self.code.type(kind)
            joined = [self._joined(values[k : k + part]) for k in range(0, len(values), part)]
            values = [Reg(f"%{self.module.result('Bitcast', word, each)}", kind) for each in joined]
        return self._joined(values), kind, count

    def _scope(self, number: int) -> int:
        return self.code.id(self.code.integer(number, "i32"))

    def _split(self, vector: int, elem: str, lanes: int) -> list[Reg]:
        if lanes == 1:
            return [Reg(f"%{vector}", elem)]
        m, type = self.module, self.code.type(elem)
        return [Reg(f"%{m.result('CompositeExtract', type, vector, lane)}", elem) for lane in range(lanes)]

    def _joined(self, values: Sequence[Reg]) -> int:
        ids = [self.code.id(value) for value in values]
        if len(ids) == 1:
            return ids[0]
        return self.module.result("CompositeConstruct", self._vector(values[0].elem, len(ids)), *ids)

    def store(self, address: Reg, values: Sequence[Reg], alignment: int) -> None:
        """Write neighbouring elements of global memory, 1 to 16 bytes."""
        value, kind, count = self._packed(values)
        flags = (_ALIGNED | _NON_PRIVATE, alignment)
        self.module.do("Store", self._pointer(address, kind, count), value, *flags)

    def atomic(self, name: str, address: Reg, value: Reg, compared: Reg | None = None) -> Reg:
        """Change an i32 or i64 of global memory in one step, before and after everything else; return the old one."""
        m, code = self.module, self.code
        if value.elem == "i64":
            m.capability("Int64Atomics")
        pointer = self._pointer(address, value.elem, 1)
        scope, order = self._scope(_SCOPE_DEVICE), self._scope(_ATOMIC)
        operands = [pointer, scope, order]
        if compared is not None:
            operands += [self._scope(_ATOMIC_UNEQUAL), code.id(value), code.id(compared)]
        else:
            operands.append(code.id(value))
        m.capability("VulkanMemoryModelDeviceScope")
        return Reg(f"%{m.result(name, code.type(value.elem), *operands)}", value.elem)

    def count_shared(self, index: Reg) -> None:
        """Add one to an i32 of workgroup memory in one step."""
        m, code = self.module, self.code
        operands = (self._place(index, "i32", 1), self._scope(_SCOPE_WORKGROUP), self._scope(0), self._scope(1))
        m.result("AtomicIAdd", code.type("i32"), *operands)

    # Workgroup memory, one range of bytes that is read and written as any type.

    def _view(self, elem: str, lanes: int) -> int:
        """Return the variable that shows workgroup memory as an array of vectors; its size is known at the end."""
        m = self.module
        if (elem, lanes) not in self._views:
            m.capability("WorkgroupMemoryExplicitLayoutKHR", "SPV_KHR_workgroup_memory_explicit_layout")
            if WIDTHS[elem] == 16:
                m.capability("WorkgroupMemoryExplicitLayout16BitAccessKHR")
            if WIDTHS[elem] == 8:
                m.capability("WorkgroupMemoryExplicitLayout8BitAccessKHR")
            array, block, pointer, variable = (m.new() for _ in range(4))
            self._vector(elem, lanes)
            self._views[elem, lanes] = variable
            self._view_types.append((array, elem, lanes))
            m.late(self._declare_view, array, block, pointer, variable, elem, lanes)
            self._interface.append(variable)
        return self._views[elem, lanes]

    def _declare_view(self, array: int, block: int, pointer: int, variable: int, elem: str, lanes: int) -> None:
        m, code = self.module, self.code
        size = lanes * WIDTHS[elem] // 8
        length = code.id(code.integer(-(-self.local_bytes // size), "i32"))
        m.declare("TypeArray", array, self._vector(elem, lanes), length)
        m.decorate(array, _ARRAY_STRIDE, size)
        m.declare("TypeStruct", block, array)
        m.decorate(block, _BLOCK)
        m.decorate_member(block, 0, _OFFSET, 0)
        m.declare("TypePointer", pointer, STORAGE["Workgroup"], block)
        m.declare("Variable", pointer, variable, STORAGE["Workgroup"])
        m.decorate(variable, _ALIASED)

    def _place(self, index: Reg, elem: str, lanes: int) -> int:
        m, code = self.module, self.code
        pointer = m.type("Pointer", STORAGE["Workgroup"], self._vector(elem, lanes))
        return m.result(
            "AccessChain", pointer, self._view(elem, lanes), code.id(code.integer(0, "i32")), code.id(index)
        )

    def read_shared(self, index: Reg, elem: str, lanes: int = 1) -> list[Reg]:
        """Read workgroup memory as an array of vectors of `lanes` elements."""
        kind, count = _form(elem, lanes)
        place = self._place(index, kind, count)
        return self._unpacked(self.module.result("Load", self._vector(kind, count), place, _NON_PRIVATE), elem, lanes)

    def write_shared(self, index: Reg, values: Sequence[Reg]) -> None:
        """Write workgroup memory as an array of vectors."""
        value, kind, count = self._packed(values)
        place = self._place(index, kind, count)
        self.module.do("Store", place, value, _NON_PRIVATE)

    def barrier(self) -> None:
        """Wait for all invocations of the workgroup; what they wrote before is visible after it."""
        scope = self._scope(_SCOPE_WORKGROUP)
        self.module.do("ControlBarrier", scope, scope, self._scope(_ALL_MEMORY))

    # Subgroups.

    def shuffle_xor(self, x: Reg, mask: int) -> Reg:
        """Return a register of the invocation whose lane differs in the bits of a mask."""
        m, code = self.module, self.code
        m.capability("GroupNonUniformShuffle")
        operands = (self._scope(_SCOPE_SUBGROUP), code.id(x), code.id(code.integer(mask, "i32")))
        return Reg(f"%{m.result('GroupNonUniformShuffleXor', code.type(x.elem), *operands)}", x.elem)

    def shuffle(self, x: Reg, lane: Reg) -> Reg:
        """Return a register of the invocation with this lane."""
        m, code = self.module, self.code
        m.capability("GroupNonUniformShuffle")
        operands = (self._scope(_SCOPE_SUBGROUP), code.id(x), code.id(lane))
        return Reg(f"%{m.result('GroupNonUniformShuffle', code.type(x.elem), *operands)}", x.elem)

    # The end.

    def finish(self, name: str) -> bytes:
        """Return the module."""
        m = self.module
        m.do("Return")
        m.do("FunctionEnd")
        m.finish_function()
        known = self._target
        modes = [[_LOCAL_SIZE, known.warp_size * known.warps, 1, 1]]
        for capability, mode, widths in (
            ("DenormPreserve", _DENORM_PRESERVE, known.preserves_denormals),
            ("SignedZeroInfNanPreserve", _SIGNED_ZERO, known.preserves_special),
            ("RoundingModeRTE", _ROUNDING_RTE, known.rounds_to_nearest),
        ):
            for width in widths:
                m.capability(capability)
                modes.append([mode, width])
        m.entry(_GLCOMPUTE, self._function, name, self._interface, modes)
        m.name(self._function, name)
        return m.assemble()
