"""A workgroup in SPIR-V for OpenCL: the capability Kernel, 64-bit pointers, and OpenCL's memory model.

A kernel has the parameters that runtime.opencl.Launcher passes: those of the Triton function, the grid's x, y and z as
i32, then the tables. Its loops and branches name where their paths meet, as Vulkan's must; OpenCL ignores it.
"""

from __future__ import annotations

from typing import ClassVar

from ....emit.mlir import Reg
from ....spirv_numbers import numbers
from ..target import SimtTarget
from .module import STORAGE, SpirvModule
from .workgroup import Workgroup

(_ADDRESSING,) = numbers("AddressingModel", "Physical64")
(_MEMORY,) = numbers("MemoryModel", "OpenCL")
# Subgroup operations are newer than what an OpenCL device must accept.
_VERSION, _VERSION_OF_SUBGROUPS = (1, 2), (1, 3)
(_KERNEL,) = numbers("ExecutionModel", "Kernel")
_LOCAL_SIZE, _CONTRACTION_OFF, _SUBGROUP_SIZE = numbers("ExecutionMode", "LocalSize ContractionOff SubgroupSize")
(_ALIGNMENT,) = numbers("Decoration", "Alignment")
_WORKGROUP_ID, _LOCAL_ID, _LANE, _WARP = numbers(
    "BuiltIn", "WorkgroupId LocalInvocationId SubgroupLocalInvocationId SubgroupId"
)
(_ALIGNED,) = numbers("MemoryAccess", "Aligned")
_ACQUIRE, _ACQUIRE_RELEASE, _WORKGROUP, _CROSS_WORKGROUP = numbers(
    "MemorySemantics", "Acquire AcquireRelease WorkgroupMemory CrossWorkgroupMemory"
)
# Bytes of the widest access, to which workgroup memory is aligned.
_WIDEST = 16


class KernelWorkgroup(Workgroup):
    """What invocations, OpenCL's work-items, are to an OpenCL device. Pointers are arguments of their own."""

    aligned = _ALIGNED
    shared: ClassVar[tuple[int, ...]] = ()
    ordered = _ACQUIRE_RELEASE | _CROSS_WORKGROUP
    all_memory = _ACQUIRE_RELEASE | _CROSS_WORKGROUP | _WORKGROUP
    workgroup_memory = _ACQUIRE_RELEASE | _WORKGROUP

    def __init__(self, target: SimtTarget) -> None:
        version = _VERSION_OF_SUBGROUPS if target.shuffles else _VERSION
        super().__init__(target, SpirvModule(version, _ADDRESSING, _MEMORY, "OpenCL.std"))
        self._pointers: set[int] = set()
        self._grid: list[Reg] = []
        self._memory = 0
        for capability in ("Kernel", "Addresses", "Int64"):
            self.module.capability(capability)

    def pointer(self) -> None:
        self._pointers.add(len(self._parameters))
        super().pointer()

    def begin(self) -> list[Reg]:
        m, code = self.module, self.code
        bytes = m.type("Pointer", STORAGE["CrossWorkgroup"], code.type("i8"))
        elems = [elem for elem, _ in self._parameters]
        types = [bytes if number in self._pointers else code.type(elem) for number, elem in enumerate(elems)]
        types += [code.type("i32")] * 3 + [bytes] * self.tables
        elems += ["i32"] * 3 + ["i64"] * self.tables
        void = m.type("Void")
        m.do("Function", void, self._function, 0, m.type("Function", void, *types))
        parameters = [m.result("FunctionParameter", type) for type in types]
        code.label()
        regs = [
            Reg(f"%{m.result('ConvertPtrToU', code.type('i64'), parameter) if type == bytes else parameter}", elem)
            for parameter, type, elem in zip(parameters, types, elems, strict=True)
        ]
        count = len(self._parameters)
        self._grid = regs[count : count + 3]
        return regs[:count] + regs[count + 3 :]

    def _narrow(self, x: Reg) -> Reg:
        """Return a number of OpenCL's, which has the width of an address, as an i32."""
        return self.code.cast("arith.trunci", x, "i32")

    def program_id(self, axis: int) -> Reg:
        return self._narrow(self._component(_WORKGROUP_ID, "i64", axis))

    def num_programs(self, axis: int) -> Reg:
        return self._grid[axis]

    def _lane(self) -> Reg:
        if self._target.shuffles:
            return Reg(f"%{self._input(_LANE, 'i32')}", "i32")
        t = self.code
        return t.binary("arith.andi", self._number(), t.integer(self._target.warp_size - 1, "i32"))

    def _warp(self) -> Reg:
        if self._target.shuffles:
            return Reg(f"%{self._input(_WARP, 'i32')}", "i32")
        t = self.code
        return t.binary("arith.shrui", self._number(), t.integer(self._target.warp_size.bit_length() - 1, "i32"))

    def _number(self) -> Reg:
        """Return the number of this invocation in the workgroup."""
        return self._narrow(self._component(_LOCAL_ID, "i64", 0))

    def _pointer(self, address: Reg, elem: str, lanes: int) -> int:
        type = self.module.type("Pointer", STORAGE["CrossWorkgroup"], self._vector(elem, lanes))
        return self.module.result("ConvertUToPtr", type, self.code.id(address))

    def _place(self, index: Reg, elem: str, lanes: int) -> int:
        m = self.module
        if not self._memory:
            array, pointer, self._memory = (m.new() for _ in range(3))
            self._vector("i32", _WIDEST // 4)
            m.late(self._declare_memory, array, pointer)
        type = m.type("Pointer", STORAGE["Workgroup"], self._vector(elem, lanes))
        return m.result("PtrAccessChain", type, m.result("Bitcast", type, self._memory), self.code.id(index))

    def _declare_memory(self, array: int, pointer: int) -> None:
        m, code = self.module, self.code
        length = code.id(code.integer(-(-self.local_bytes // _WIDEST), "i32"))
        m.declare("TypeArray", array, self._vector("i32", _WIDEST // 4), length)
        m.declare("TypePointer", pointer, STORAGE["Workgroup"], array)
        m.declare("Variable", pointer, self._memory, STORAGE["Workgroup"])
        m.decorate(self._memory, _ALIGNMENT, _WIDEST)

    def finish(self, name: str) -> bytes:
        m, known = self.module, self._target
        self._end(name)
        if self._memory:
            m.name(self._memory, f"{name}.memory")
        modes = [[_LOCAL_SIZE, known.warp_size * known.warps, 1, 1], [_CONTRACTION_OFF]]
        if known.shuffles:
            m.capability("SubgroupDispatch")
            modes.append([_SUBGROUP_SIZE, known.warp_size])
        m.entry(_KERNEL, self._function, name, self._inputs.values(), modes)
        return m.assemble()


def swap_lanes(size: int) -> bytes:
    """Return a kernel that finds out whether subgroups are what the mapping takes them for.

    It is launched as one workgroup of two subgroups of `size`. Each invocation writes to its place the number of
    the one whose lane differs in all bits.
    """
    group = KernelWorkgroup(SimtTarget(size, 2, flavour="kernel"))
    t = group.code
    group.pointer()
    (base,) = group.begin()
    first = t.binary("arith.muli", group.warp(), t.integer(size, "i32"))
    number = t.binary("arith.addi", first, group.lane())
    other = group.shuffle_xor(number, size - 1)
    offset = t.cast("arith.extsi", t.binary("arith.muli", number, t.integer(4, "i32")), "i64")
    group.store(t.binary("arith.addi", base, offset), [other], 4)
    return group.finish("swap_lanes")
