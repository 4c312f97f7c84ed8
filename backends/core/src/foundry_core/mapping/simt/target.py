"""What the mapping must know of a device."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple


class Fragment(NamedTuple):
    """Matrices that one subgroup multiplies: `rows` x `depth` by `depth` x `columns`, added to `rows` x `columns`.

    Attributes:
        factor, total: the types of the elements of both factors, and of the sum.
    """

    factor: str
    total: str
    rows: int
    columns: int
    depth: int


class Arrangement(NamedTuple):
    """Which element of a cooperative matrix is which component of which invocation; see layouts.py.

    Attributes:
        use: what the matrix is in a product, as SPIR-V numbers it.
        elem, rows, columns: its elements and extents.
        components, lanes: for each bit of the component's number and of the lane, the row-major index that it adds.
    """

    use: int
    elem: str
    rows: int
    columns: int
    components: tuple[int, ...]
    lanes: tuple[int, ...]


# The capabilities of SPIR-V that some kernels need and not every device has, with Vulkan's names of the features, which
# Properties in vulkan.c has too.
FEATURES = {
    "Float16": "shaderFloat16",
    "Float64": "shaderFloat64",
    "Int8": "shaderInt8",
    "Int16": "shaderInt16",
    "Int64Atomics": "shaderBufferInt64Atomics",
    "StorageBuffer8BitAccess": "storageBuffer8BitAccess",
    "StorageBuffer16BitAccess": "storageBuffer16BitAccess",
    "StoragePushConstant8": "storagePushConstant8",
    "StoragePushConstant16": "storagePushConstant16",
    "WorkgroupMemoryExplicitLayout8BitAccessKHR": "workgroupMemoryExplicitLayout8BitAccess",
    "WorkgroupMemoryExplicitLayout16BitAccessKHR": "workgroupMemoryExplicitLayout16BitAccess",
}


# The most registers that an invocation has of one tile, where more subgroups can execute the program: on a device whose
# compiler is slow, and on others, which keep no more in registers.
REGISTERS_OF_SLOW_COMPILER, _REGISTERS = 32, 512
# The most bytes of SPIR-V that a slow compiler gets: lavapipe's takes a minute for half of it, and four for all.
MOST_FOR_SLOW_COMPILER = 1 << 20
# Workgroup memory for each invocation, in bytes, for that. A reduction may keep a partial result of 8 of them.
_LEAST_BYTES = 32


@dataclass(frozen=True)
class SimtTarget:
    """A device whose workgroups consist of subgroups of invocations.

    Attributes:
        warp_size: the number of invocations in a subgroup: 32 on NVIDIA's GPUs, 8 on lavapipe.
        warps: the number of subgroups that execute one program.
        workgroup_bytes: the workgroup memory that a program may use.
        argument_bytes: how many bytes of arguments a launch can pass.
        fuses: the widths of floats on which its fused multiply and add rounds once.
        splits_grids: whether a grid may have more programs along x than the device takes in a dispatch.
        accurate_exp2: whether its exp2 of an f32 errs by 2 units in the last place at most, as NVIDIA's does.
        preserves_denormals, preserves_special, rounds_to_nearest: the widths of floats for which the device can be told
            to keep subnormals; to keep signed zeros, infinities and NaNs; to round to nearest, ties to even.
        fragments: the cooperative matrices that it multiplies.
        arrangements: which invocation holds which element, of the matrices of which that is known.
        flavour: how SPIR-V is written, by the capability that it declares: `shader` for Vulkan, `kernel` for OpenCL.
        shuffles: whether invocations of a subgroup read each other's registers. If not, lanes and warps are parts of
            the workgroup only, and exchange through its memory.
        converts_f16: whether it converts to and from f16.
        atomic_adds: the widths of floats that it adds to memory in one step; 16 stands for two or four f16 at once.
        lacks: the capabilities among FEATURES that it does not have.
        invocations: the most invocations of a workgroup.
        compiles_slowly: whether its compiler takes much more time for straight code of twice the length, as Mesa's for
            CPUs does. It is then not asked to unroll loops, programs have more subgroups with fewer registers each, and
            a kernel is refused whose code is longer than MOST_FOR_SLOW_COMPILER.
    """

    warp_size: int = 32
    warps: int = 4
    workgroup_bytes: int = 48 << 10
    argument_bytes: int = 128
    fuses: tuple[int, ...] = (32, 64)
    splits_grids: bool = False
    accurate_exp2: bool = False
    preserves_denormals: tuple[int, ...] = ()
    preserves_special: tuple[int, ...] = ()
    rounds_to_nearest: tuple[int, ...] = ()
    fragments: tuple[Fragment, ...] = ()
    arrangements: tuple[Arrangement, ...] = ()
    flavour: str = "shader"
    shuffles: bool = True
    converts_f16: bool = True
    atomic_adds: tuple[int, ...] = ()
    lacks: tuple[str, ...] = ()
    invocations: int = 1024
    compiles_slowly: bool = False

    def widen(self, elements: int) -> SimtTarget:
        """Return the target with as many subgroups as a program needs whose largest tile has this many elements.

        A launch's `num_warps` is the least. Workgroups do not get larger than the device takes, or than has workgroup
        memory for what reductions exchange.
        """
        most = min(self.invocations, self.workgroup_bytes // _LEAST_BYTES)
        registers = REGISTERS_OF_SLOW_COMPILER if self.compiles_slowly else _REGISTERS
        warps = self.warps
        while elements > registers * self.warp_size * warps and 2 * warps * self.warp_size <= most:
            warps *= 2
        return replace(self, warps=warps)
