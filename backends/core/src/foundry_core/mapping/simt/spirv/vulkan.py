"""A workgroup in SPIR-V for Vulkan: the capability Shader, addresses of buffers, and Vulkan's memory model."""

from __future__ import annotations

from collections.abc import Sequence

from ....emit.mlir import WIDTHS, Reg
from ....spirv_numbers import numbers
from ..target import SimtTarget
from .module import STORAGE, SpirvModule
from .workgroup import Workgroup

(_ADDRESSING,) = numbers("AddressingModel", "PhysicalStorageBuffer64")
(_MEMORY,) = numbers("MemoryModel", "Vulkan")
_VERSION = (1, 6)
(_GLCOMPUTE,) = numbers("ExecutionModel", "GLCompute")
_LOCAL_SIZE, _DENORM_PRESERVE, _SIGNED_ZERO, _ROUNDING_RTE = numbers(
    "ExecutionMode", "LocalSize DenormPreserve SignedZeroInfNanPreserve RoundingModeRTE"
)
_ARRAY_STRIDE, _OFFSET, _BLOCK, _ALIASED, _NO_CONTRACTION = numbers(
    "Decoration", "ArrayStride Offset Block Aliased NoContraction"
)
_NUM_WORKGROUPS, _WORKGROUP_ID, _LANE, _WARP = numbers(
    "BuiltIn", "NumWorkgroups WorkgroupId SubgroupLocalInvocationId SubgroupId"
)
# Barriers make what was written available and visible; single accesses need not.
_ALIGNED, _NON_PRIVATE = numbers("MemoryAccess", "Aligned NonPrivatePointer")
_ACQUIRE, _ACQUIRE_RELEASE, _BUFFERS, _WORKGROUP, _AVAILABLE, _VISIBLE = numbers(
    "MemorySemantics", "Acquire AcquireRelease UniformMemory WorkgroupMemory MakeAvailable MakeVisible"
)


class ShaderWorkgroup(Workgroup):
    """What invocations are to a Vulkan device.

    Arguments are push constants. If they are more than the device takes, the only one is the address of a block that
    has them. A zero follows, which the device's compiler cannot know (Code.zero). If a grid may be launched in parts,
    its extents and the number of the part's first program along x come last.
    """

    aligned = _ALIGNED | _NON_PRIVATE
    shared = (_NON_PRIVATE,)
    ordered = _ACQUIRE_RELEASE | _BUFFERS | _AVAILABLE | _VISIBLE
    all_memory = ordered | _WORKGROUP
    workgroup_memory = _ACQUIRE_RELEASE | _WORKGROUP | _AVAILABLE | _VISIBLE

    def __init__(self, target: SimtTarget) -> None:
        super().__init__(target, SpirvModule(_VERSION, _ADDRESSING, _MEMORY, "GLSL.std.450"))
        self._globals: list[int] = []
        self._extents: list[Reg] = []
        self._first: Reg | None = None
        self._views: dict[tuple[str, int], int] = {}
        for capability in ("Shader", "VulkanMemoryModel", "PhysicalStorageBufferAddresses", "Int64"):
            self.module.capability(capability)

    def table(self) -> None:
        super().table()
        self.pointer()

    def begin(self) -> list[Reg]:
        m, code = self.module, self.code
        void = m.type("Void")
        m.do("Function", void, self._function, 0, m.type("Function", void))
        code.label()
        for _ in range(1 + 4 * self._target.splits_grids):
            self.parameter("i32")
        if self.argument_bytes <= self._target.argument_bytes:
            found = self._pushed(self._parameters)
        else:
            (base,), found = self._pushed([("i64", 0)]), []
            for elem, offset in self._parameters:
                address = code.binary("arith.addi", base, code.integer(offset, "i64"))
                found += self.load(address, elem, 1, max(1, WIDTHS[elem] // 8))
        if self._target.splits_grids:
            *found, x, y, z, self._first = found
            self._extents = [x, y, z]
        *found, code.zero = found
        return found

    def _pushed(self, parameters: Sequence[tuple[str, int]]) -> list[Reg]:
        """Read push constants of these types at these offsets."""
        m, code = self.module, self.code
        if not parameters:
            return []
        types = [code.type(elem) for elem, _ in parameters]
        for elem, _ in parameters:
            if elem in ("i8", "i16"):
                m.capability({"i8": "StoragePushConstant8", "i16": "StoragePushConstant16"}[elem])
        block = m.type("Struct", *types, key="arguments")
        m.decorate(block, _BLOCK)
        for number, (_, offset) in enumerate(parameters):
            m.decorate_member(block, number, _OFFSET, offset)
        variable = m.variable(m.type("Pointer", STORAGE["PushConstant"], block), "PushConstant")
        self._globals.append(variable)
        found = []
        for number, ((elem, _), type) in enumerate(zip(parameters, types, strict=True)):
            pointer = m.type("Pointer", STORAGE["PushConstant"], type)
            at = m.result("AccessChain", pointer, variable, code.id(code.integer(number, "i32")))
            found.append(Reg(f"%{m.result('Load', type, at)}", elem))
        return found

    def program_id(self, axis: int) -> Reg:
        number = self._component(_WORKGROUP_ID, "i32", axis)
        return self.code.binary("arith.addi", number, self._first) if self._first and axis == 0 else number

    def num_programs(self, axis: int) -> Reg:
        return self._extents[axis] if self._extents else self._component(_NUM_WORKGROUPS, "i32", axis)

    def _lane(self) -> Reg:
        self.module.capability("GroupNonUniform")
        return Reg(f"%{self._input(_LANE, 'i32')}", "i32")

    def _warp(self) -> Reg:
        self.module.capability("GroupNonUniform")
        return Reg(f"%{self._input(_WARP, 'i32')}", "i32")

    def _pointer(self, address: Reg, elem: str, lanes: int) -> int:
        m = self.module
        if elem in ("i8", "i16", "f16"):
            m.capability("StorageBuffer8BitAccess" if elem == "i8" else "StorageBuffer16BitAccess")
        type = m.type("Pointer", STORAGE["PhysicalStorageBuffer"], self._vector(elem, lanes))
        return m.result("ConvertUToPtr", type, self.code.id(address))

    def atomic(self, name: str, address: Reg, value: Reg, compared: Reg | None = None) -> Reg:
        self.module.capability("VulkanMemoryModelDeviceScope")
        if name == "AtomicFAdd":
            self.module.capability(f"AtomicFloat{WIDTHS[value.elem]}AddEXT", "SPV_EXT_shader_atomic_float_add")
        return super().atomic(name, address, value, compared)

    def fence(self) -> None:
        self.module.capability("VulkanMemoryModelDeviceScope")
        super().fence()

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
            m.late(self._declare_view, array, block, pointer, variable, elem, lanes)
            self._globals.append(variable)
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
        view, first = self._view(elem, lanes), code.id(code.integer(0, "i32"))
        return m.result("AccessChain", pointer, view, first, code.id(index))

    def finish(self, name: str) -> bytes:
        m, known = self.module, self._target
        self._end(name)
        for result in m.exact:
            m.decorate(result, _NO_CONTRACTION)
        modes = [[_LOCAL_SIZE, known.warp_size * known.warps, 1, 1]]
        for capability, mode, widths in (
            ("DenormPreserve", _DENORM_PRESERVE, known.preserves_denormals),
            ("SignedZeroInfNanPreserve", _SIGNED_ZERO, known.preserves_special),
            ("RoundingModeRTE", _ROUNDING_RTE, known.rounds_to_nearest),
        ):
            for width in widths:
                m.capability(capability)
                modes.append([mode, width])
        m.entry(_GLCOMPUTE, self._function, name, [*self._globals, *self._inputs.values()], modes)
        return m.assemble()
