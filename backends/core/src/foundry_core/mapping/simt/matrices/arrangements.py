"""Finds which invocation holds which element of a cooperative matrix, by trying: no standard says it.

A kernel loads a matrix of its own indices, adds a product of zeros, and stores the components that each invocation
holds. Drivers arrange the matrices of one type alike in all kernels: products would need other instructions else. They
may do it otherwise in another version, so it is tried on the driver that will run the kernels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ....emit.mlir import WIDTHS, Reg
from ....ops.numeric import Numeric, in_memory
from ..spirv.vulkan import ShaderWorkgroup
from ..target import Arrangement, Fragment, SimtTarget
from .instructions import Matrices, Matrix, Use

# Up to this number, a type has all integers.
_EXACT = {"f32": 1 << 24, "i32": (1 << 31) - 1, "f16": 1 << 11, "bf16": 1 << 8, "i8": 127}


class Probe(NamedTuple):
    """A kernel that writes the indices of components to an array of i32, whose address is its only argument.

    Attributes:
        module: the binary; its entry point is `probe`.
        argument_bytes: the size of its arguments.
        kinds: the matrices that it tries, one after the other; of each, component by component, a number for each lane.
        shared: the bytes of workgroup memory that it uses.
    """

    module: bytes
    argument_bytes: int
    kinds: list[Matrix]
    shared: int

    @property
    def words(self) -> int:
        """Return the length of the array."""
        return sum(kind.rows * kind.columns for kind in self.kinds)


def probed_kinds(target: SimtTarget) -> dict[Matrix, Fragment]:
    """Return the matrices whose elements can be numbered, and a product that each is for: sums, and left factors."""
    kinds: dict[Matrix, Fragment] = {}
    for each in target.fragments:
        for kind in (
            Matrix(Use.TOTAL, each.total, each.rows, each.columns),
            Matrix(Use.LEFT, each.factor, each.rows, each.depth),
        ):
            if target.warp_size <= kind.rows * kind.columns <= _EXACT[kind.elem]:
                kinds[kind] = each
    return kinds


def write_probe(target: SimtTarget, kinds: Mapping[Matrix, Fragment]) -> Probe:
    """Write the kernel, for one subgroup of a device that multiplies matrices."""
    group = ShaderWorkgroup(target)
    t, lane = group.code, target.warp_size
    group.pointer()
    (base,) = group.begin()
    group.lane()
    # Indices at the beginning of workgroup memory, zeros behind them.
    zeros = max((4 * kind.rows * kind.columns for kind in kinds), default=0)
    longest = max((2 * each.depth * max(each.rows, each.columns) for each in kinds.values()), default=0)
    group.local_bytes = zeros + -(-longest // (4 * lane)) * 4 * lane
    for first in range(zeros // 4, group.local_bytes // 4, lane):
        group.write_shared(t.binary("arith.addi", group.lane(), t.integer(first, "i32")), [t.integer(0, "i32")])
    written = 0
    for kind, each in kinds.items():
        _try_one(group, kind, each, lane, zeros, t.binary("arith.addi", base, t.integer(4 * written, "i64")))
        written += kind.rows * kind.columns
    return Probe(group.finish("probe"), group.argument_bytes, list(kinds), group.local_bytes)


def _try_one(group: ShaderWorkgroup, kind: Matrix, of: Fragment, lanes: int, zeros: int, base: Reg) -> None:
    """Write where the elements of one kind of matrices are."""
    t, writer = group.code, Matrices(group)
    numeric = Numeric(t)
    places = [
        t.binary("arith.addi", group.lane(), t.integer(first, "i32"))
        for first in range(0, kind.rows * kind.columns, lanes)
    ]
    group.barrier()
    for place in places:
        number = place if kind.elem[0] == "i" else t.cast("arith.sitofp", place, "f32")
        group.write_shared(place, [numeric.to_memory(number, kind.elem)])
    group.barrier()
    found = writer.load(kind, t.integer(0, "i32"), kind.columns)
    if kind.use is Use.TOTAL:
        nothing = t.integer(8 * zeros // WIDTHS[in_memory(of.factor)], "i32")
        left, right = Matrix(Use.LEFT, of.factor, of.rows, of.depth), Matrix(Use.RIGHT, of.factor, of.depth, of.columns)
        factors = writer.load(left, nothing, of.depth), writer.load(right, nothing, of.columns)
        found = writer.multiply_add(*factors, found, signed=of.factor == "i8")
    for at, place in enumerate(places):
        number = numeric.from_memory(writer.component(kind, found, at), kind.elem)
        index = number if kind.elem[0] == "i" else t.cast("arith.fptosi", number, "i32")
        moved = t.binary("arith.muli", t.cast("arith.extsi", place, "i64"), t.integer(4, "i64"))
        index = t.cast("arith.extsi", index, "i32")
        group.store(t.binary("arith.addi", base, moved), [index], 4)


def expected_numbers(arrangement: Arrangement) -> list[int]:
    """Return what a kernel writes of matrices that are arranged in this way; read_probe is the other direction."""
    # From the lane's bits upwards, as the numbers are.
    numbers = [0]
    for basis in (*arrangement.lanes, *arrangement.components):
        numbers += [basis ^ each for each in numbers]
    return numbers


def read_probe(probe: Probe, numbers: Sequence[int], lanes: int) -> tuple[Arrangement, ...]:
    """Return the arrangements that a kernel found; none of a kind whose elements are where no layout can say it."""
    found, at = [], 0
    for kind in probe.kinds:
        own = numbers[at : at + kind.rows * kind.columns]
        at += len(own)
        components, of_lanes = (
            tuple(own[step << bit] for bit in range((count - 1).bit_length()))
            for step, count in ((lanes, len(own) // lanes), (1, lanes))
        )
        said = Arrangement(kind.use.value, kind.elem, kind.rows, kind.columns, components, of_lanes)
        if expected_numbers(said) == list(own) and sorted(own) == list(range(len(own))):
            found.append(said)
    return tuple(found)
