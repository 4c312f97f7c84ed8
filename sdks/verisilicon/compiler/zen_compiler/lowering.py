"""Lower TTIR to SPIR-V by foundry_core; tl.dot runs on the tensor core if there is one.

    threads == 1    one work-item a program     foundry_core.mapping.workitem
    threads > 1     one work-group a program    foundry_core.mapping.workgroup

A tl.dot that the tensor core takes becomes a call of one routine (tensor_core.mlir), which is told by a command what to
do. Commands come in buffers that the kernel takes after the grid, one for each such tl.dot, with one command a program.
A kernel that prints or asserts takes foundry_core's log after them.
"""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass
from pathlib import Path
from string import Template

from foundry_core.codegen.pipeline import read_kernel, to_llvm, to_spirv
from foundry_core.emit.mlir import GLOBAL, LLVM_INTRINSIC, Reg
from foundry_core.front.structured import kernel
from foundry_core.ir import tt
from foundry_core.ir.depth import deep_expressions
from foundry_core.ir.parse import read_structured
from foundry_core.log import Site
from foundry_core.mapping.base.buffers import Buffer
from foundry_core.mapping.base.mapping import Part
from foundry_core.mapping.base.target import WorkGroupTarget, WorkItemTarget
from foundry_core.mapping.base.tiles import Tiles
from foundry_core.mapping.workgroup import program as workgroup
from foundry_core.mapping.workitem import program as workitem
from foundry_core.ops.numeric import element_name
from xdsl.ir import Operation

from .bridge import COMMAND_BYTES, Bridge, Matmul

_ROUTINE = "zen_tc_matmul"
_FMA = f"{LLVM_INTRINSIC}fma.v16f32"
_VECTOR = "vector<16xf32>"


@dataclass(frozen=True)
class Lowered:
    """A compiled kernel.

    Attributes:
        spirv: the module.
        name: of the kernel.
        parameters: its parameters but the grid and the command buffers: "ptr", "i1" to "i64", "f16", "bf16", "f32".
        matmuls: a command template for each command buffer that the kernel takes.
        sites: where it prints and asserts, see foundry_core.log; with any, the kernel takes a log.
    """

    spirv: bytes
    name: str
    parameters: tuple[str, ...]
    matmuls: tuple[bytes, ...]
    sites: tuple[Site, ...]


def lower(ttir: str, *, threads: int, bridge: Bridge | None, check: bool = False) -> Lowered:
    """Compile a kernel.

    Args:
        ttir: a module with one kernel.
        threads: work-items a program.
        bridge: what knows the tensor core's commands; None to do without it.
        check: whether the kernel checks its accesses (foundry_core.checked).

    Raises:
        UnsupportedOperation, LoweringError: what the kernel asks for is not there, with the source line.
        ToolError: one of LLVM's tools refused what it was given.
    """
    read = read_kernel(ttir, check=check)
    vector_bytes, registers = _vectors()
    with deep_expressions():
        function = kernel(read_structured(read.text))
        program: _Commanded
        if threads > 1:
            group = WorkGroupTarget(vector_bytes, llvm_intrinsics=True, vector_registers=registers, work_items=threads)
            program = _WorkGroup(function, workgroup.work_group_tiles(function, group))
        else:
            item = WorkItemTarget(vector_bytes, llvm_intrinsics=True, vector_registers=registers)
            program = _WorkItem(function, workitem.work_item_tiles(function, item))
        program.bridge = bridge
        # The tensor core reads rows and columns with one stride each, and all of them.
        program.tiles.panels = bridge is None
        mlir = program.write()
    return Lowered(
        to_spirv(to_llvm(mlir)),
        function.sym_name.data,
        tuple(
            "ptr" if isinstance(type, tt.PointerType) else element_name(type, function)
            for type in function.body.block.arg_types
        ),
        tuple(program.commands),
        tuple(read.sites),
    )


class _Commanded(workitem.WorkItem):
    """A kernel whose tl.dot may be commands to the tensor core.

    Attributes:
        bridge: to the tensor core; None without one.
        commands: templates, one for each command buffer.
    """

    bridge: Bridge | None = None

    def __init__(self, function: tt.FuncOp, tiles: Tiles) -> None:
        super().__init__(function, tiles)
        self.commands: list[bytes] = []

    def more_parameters(self) -> list[str]:
        return super().more_parameters() + [f"%matmul_{index}: {GLOBAL}" for index in range(len(self.commands))]

    def accumulate(self, op: Operation, a: Buffer, b: Buffer, c: Buffer, part: Part) -> None:
        (m, k), n = a.extents, b.extents[1]
        a_strides, b_strides, c_strides = ((buffer.stride(0), buffer.stride(1)) for buffer in (a, b, c))
        matmul = Matmul(m, n, k, a_strides, b_strides, c_strides)
        if {a.elem, b.elem, c.elem} != {"f32"} or self.bridge is None or self.bridge.refuses(matmul):
            super().accumulate(op, a, b, c, part)
            return
        index = len(self.commands)
        self.commands.append(self.bridge.encode(matmul, index))
        t = self.text
        t.define(_FMA, f'llvm.func spir_funccc @"{_FMA}"({_VECTOR}, {_VECTOR}, {_VECTOR}) -> {_VECTOR}')
        t.define(_ROUTINE, _routine(self.bridge, self.commands[-1], c.space))
        program = [self.program_id(axis) for axis in range(len(tt.AXES))]
        tiles = [Reg(buffer.name, buffer.space) for buffer in (a, b, c)]
        command = Reg(t.address(f"%matmul_{index}", self._place(program), "i8", GLOBAL), GLOBAL)
        # There is one tensor core a program.
        with self.tiles.space.single_work_item():
            t.call_void(_ROUTINE, [command, *tiles, t.integer(index, "i32"), *program, t.integer(m), t.integer(n)])

    def _place(self, program: list[Reg]) -> Reg:
        """Return where a program's command is, in bytes: x varies fastest."""
        space = self.tiles.space
        x, y, z = (self.text.to_index(number) for number in program)
        width, height = (self.text.to_index(self.num_programs(axis)) for axis in (0, 1))
        linear = space.plus(x, space.times(width, space.plus(y, space.times(height, z))))
        return space.times(linear, self.text.integer(COMMAND_BYTES))


class _WorkItem(_Commanded, workitem.WorkItem):
    """On one work-item."""


class _WorkGroup(_Commanded, workgroup.WorkGroup):
    """On a work-group."""


def _routine(bridge: Bridge, command: bytes, pointer: str) -> str:
    """Return the tensor core's routine for tiles behind pointers of a type. The bridge knows a command's layout."""
    places = {name: bridge.field(name) for name in ("magic", "opcode", "index", "m", "n", "k", "checksum")}
    for axis, name in enumerate("xyz"):
        places[name] = bridge.field("program") + 4 * axis
    for name in "abc":
        first = bridge.field(f"{name}_strides")
        places |= {f"{name}_row": first, f"{name}_column": first + 4}
    loads = [
        line
        for name, place in places.items()
        for line in (
            f"  %at_{name} = llvm.getelementptr %command[{place}] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8",
            f"  %is_{name} = llvm.load %at_{name} {{alignment = 4 : i64}} : !llvm.ptr<1> -> i32",
        )
    ]
    template = pkgutil.get_data(__package__, "tensor_core.mlir")
    assert template is not None
    return Template(template.decode()).substitute(
        pointer=pointer,
        fma=_FMA,
        loads="\n".join(loads),
        words=places["checksum"] // 4,
        # MLIR takes a word as a signed number.
        **{
            f"{name}_value": int.from_bytes(command[places[name] :][:4], "little", signed=True)
            for name in ("magic", "opcode")
        },
    )


def _vectors() -> tuple[int, int]:
    """Return the width and number of this machine's vector registers: PoCL, the reference SDK's device, runs on it."""
    flags = Path("/proc/cpuinfo").read_text().split()
    return (64, 32) if "avx512f" in flags else (32 if "avx2" in flags else 16, 16)
