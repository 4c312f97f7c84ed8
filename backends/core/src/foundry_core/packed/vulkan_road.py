"""The road to Vulkan: what a compiled kernel needs of the device that it will run on; vulkan_road.c checks it.

devices.json describes devices to pack kernels for that are not here: what SimtTarget says, where it differs from its
defaults. any-N relies on nothing but subgroups of N invocations, 32 KiB of workgroup memory, floats that keep special
values and round to nearest and, of those with 16 invocations and more, a fused multiplication and addition that rounds
once. The library tries the last; the others a device promises. any-8 fits lavapipe on processors with 256 bits, and
some of Intel's GPUs; any-16 Intel's; any-32 NVIDIA's, and AMD's since RDNA; any-64 AMD's.
"""

from __future__ import annotations

import ctypes
import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any, TypeAlias

from ..codegen.spirv import instructions, reading, words_of
from ..mapping.arch import arch, read_arch
from ..mapping.simt.fused import fused_probe
from ..mapping.simt.matrices.arrangements import expected_numbers, probed_kinds, write_probe
from ..mapping.simt.matrices.instructions import Matrix
from ..mapping.simt.target import SimtTarget
from ..spirv_numbers import numbers
from ..vulkan.array import DeviceStorage
from ..vulkan.memory import NVIDIA
from .roads import Form, PackError, Road, Storage, c_sources

_EXT_INST, _TYPE_INT, _TYPE_FLOAT, _TYPE_VECTOR, _TYPE_MATRIX, _CONSTANT = numbers(
    "Op", "ExtInst TypeInt TypeFloat TypeVector TypeCooperativeMatrix Constant"
)
_FMA, _EXP2 = numbers("GLSL.std.450", "Fma Exp2")
# What a matrix is in a product, as SPIR-V numbers it; the type of its elements, its rows and columns.
_Shape: TypeAlias = tuple[int, str, int, int]


@dataclass(frozen=True)
class StorageOnDevice(Storage):
    """The memory of a tensor on the device, which `source` copies."""

    source: DeviceStorage

    def content(self) -> bytes:
        return ctypes.string_at(self.source.cpu().data_ptr(), self.size)


@dataclass(frozen=True)
class VulkanRoad(Road):
    """SPIR-V on a device of Vulkan 1.3."""

    name: str = "vulkan"
    sources: Mapping[str, str] = field(
        default_factory=lambda: {
            **c_sources("vulkan_road.c", "vulkan_needs.h", "vulkan/vulkan.h"),
            "vulkan_calls.h": files("foundry_core").joinpath("vulkan", "vulkan.c").read_text(),
        }
    )
    head: str = "extern const struct packed_road vulkan_road;"

    def named_device(self, device: str, launched: Any) -> Any:
        """See Road; the device is a name in devices.json, or a description as mapping.arch writes it."""
        known = json.loads(files(__package__).joinpath("devices.json").read_text())
        try:
            target = read_arch(f"vulkan {json.dumps(known[device])}" if device in known else device)
        except ValueError as error:
            raise PackError(
                f"kernels cannot be packed for {device!r}", why=str(error), next=f"name one of {', '.join(known)}"
            ) from None
        if not isinstance(target, SimtTarget) or target.flavour != "shader":
            raise PackError(
                f"kernels cannot be packed for {device!r}",
                why="it is no device of Vulkan",
                next=f"name one of {', '.join(known)}",
            )
        return type(launched)(launched.backend, arch(target), target.warp_size)

    def form(self, compiled: Any) -> Form:
        target = read_arch(compiled.metadata.target.arch)
        assert isinstance(target, SimtTarget), "the arch of a kernel for Vulkan describes a SimtTarget"
        return form(compiled.asm["spv"], target, compiled.metadata)

    def storage(self, tensor: Any) -> Storage:
        storage = tensor.untyped_storage()
        if isinstance(storage, DeviceStorage):
            return StorageOnDevice(storage.data_ptr(), storage.nbytes(), storage)
        return super().storage(tensor)


def form(module: bytes, target: SimtTarget, metadata: Any) -> Form:
    """Return what a folder gets of a kernel that was compiled for a device: its module, and the probes of that."""
    words = [f"subgroup={target.warp_size}", f"local={metadata.shared}", f"pushed={target.argument_bytes}"]
    words += ["in_parts"] * target.splits_grids
    widths, exponentiates, matrices = _relies(module)
    words += [f"vendor={NVIDIA}"] * (exponentiates and target.accurate_exp2)
    added = [8] * metadata.tables + [4] * (1 + 4 * target.splits_grids)
    offsets: list[int] = list(metadata.argument_offsets)
    end: int = metadata.argument_bytes
    count = len(offsets) - len(added)
    assert offsets[count:] == [end - sum(added[at:]) for at in range(len(added))], "what the road adds is at the end"
    probes = {f"f{width}.probe": _fused(target.warp_size, width) for width in sorted(widths)}
    if arranged := _arranged(target, matrices):
        probes["matrices.probe"] = arranged
    return Form(
        symbol=metadata.name,
        files={"spv": module, **probes},
        needs=" ".join(words),
        threads=metadata.threads,
        buffers=metadata.tables,
        argument_bytes=end,
        offsets=offsets[:count],
    )


def _probe(module: bytes, argument_bytes: int, before: bytes, after: bytes) -> bytes:
    """Return a file of a probe, as vulkan_road.c reads it."""
    return struct.pack("<III", argument_bytes, len(module), len(before)) + module + before + after


def _fused(lanes: int, width: int) -> bytes:
    probe = fused_probe(lanes, width)
    return _probe(probe.module, probe.argument_bytes, probe.before, probe.after)


def _arranged(target: SimtTarget, matrices: set[_Shape]) -> bytes:
    """Return the probe of those matrices of a kernel whose arrangement is known; b"" if there are none."""
    known = {(each.use, each.elem, each.rows, each.columns): each for each in target.arrangements}
    kinds = {kind: of for kind, of in probed_kinds(target).items() if _shape(kind) in matrices & known.keys()}
    if not kinds:
        return b""
    probe = write_probe(replace(target, warps=1), kinds)
    expected = [number for kind in probe.kinds for number in expected_numbers(known[_shape(kind)])]
    after = struct.pack(f"<{probe.words}i", *expected)
    return _probe(probe.module, probe.argument_bytes, b"\xff" * len(after), after)


def _shape(kind: Matrix) -> _Shape:
    return kind.use.value, kind.elem, kind.rows, kind.columns


def _relies(module: bytes) -> tuple[set[int], bool, set[_Shape]]:
    """Return the widths of fused multiplications and additions, whether there is an exp2, and shapes of matrices."""
    widths: set[int] = set()
    shapes: set[_Shape] = set()
    exponentiates = False
    elems: dict[int, str] = {}
    constants: dict[int, int] = {}
    for opcode, operands in _instructions(module):
        if opcode == _TYPE_FLOAT:
            elems[operands[0]] = "bf16" if len(operands) > 2 else f"f{operands[1]}"
        elif opcode == _TYPE_INT:
            elems[operands[0]] = f"i{operands[1]}"
        elif opcode == _TYPE_VECTOR and operands[1] in elems:
            elems[operands[0]] = elems[operands[1]]
        elif opcode == _CONSTANT:
            constants[operands[1]] = operands[2]
        elif opcode == _TYPE_MATRIX:
            rows, columns, use = (constants[operand] for operand in operands[3:6])
            shapes.add((use, elems[operands[1]], rows, columns))
        elif opcode == _EXT_INST and operands[3] == _FMA:
            widths.add(int(elems[operands[0]][1:]))
        elif opcode == _EXT_INST and operands[3] == _EXP2:
            exponentiates = True
    return widths, exponentiates, shapes


def _instructions(module: bytes) -> Iterator[tuple[int, Sequence[int]]]:
    with reading():
        words = words_of(module)
        for at, opcode, end in instructions(words):
            yield opcode, words[at + 1 : end]
