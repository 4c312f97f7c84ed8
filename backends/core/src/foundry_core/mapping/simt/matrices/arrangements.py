"""Finds which invocation holds which element of a cooperative matrix, by trying: no standard says it.

A kernel loads a matrix of its own indices, adds a product of zeros, and stores the components that each invocation
holds. Drivers arrange the matrices of one type alike in all kernels: products would need other instructions else. They
may do it otherwise in another version, so it is tried on the driver that will run the kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ....emit.mlir import WIDTHS, Reg
from ....ops.numeric import in_memory
from ..spirv.vulkan import ShaderWorkgroup
from ..target import Arrangement, Fragment, SimtTarget
from .instructions import Matrices, Matrix, Use


class Probe(NamedTuple):
    """A kernel that writes the indices of components to an array of i32, whose address is its only argument.

    Attributes:
        module: the binary.
        argument_bytes: the size of its arguments.
        kinds: the sums that it tries, one after the other; of each, component by component, a number for each lane.
        shared: the bytes of workgroup memory that it uses.
    """

    module: bytes
    argument_bytes: int
    kinds: list[Fragment]
    shared: int

    @property
    def words(self) -> int:
        """Return the length of the array."""
        return sum(kind.rows * kind.columns for kind in self.kinds)


def write_probe(target: SimtTarget) -> Probe:
    """Write the kernel, for one subgroup of a device that multiplies matrices."""
    kinds = list({(kind.total, kind.rows, kind.columns): kind for kind in target.fragments}.values())
    kinds = [kind for kind in kinds if kind.rows * kind.columns >= target.warp_size]
    group = ShaderWorkgroup(target)
    t, writer = group.code, Matrices(group)
    group.pointer()
    (base,) = group.begin()
    # Indices at the beginning of workgroup memory, zeros behind them.
    zeros = max((kind.rows * kind.columns * 4 for kind in kinds), default=0)
    longest = max((kind.depth * max(kind.rows, kind.columns) * 2 for kind in kinds), default=0)
    group.local_bytes = zeros + longest
    for first in range(0, longest // 4, target.warp_size):
        place = t.binary("arith.addi", group.lane(), t.integer(zeros // 4 + first, "i32"))
        inside = t.compare("slt", place, t.integer(group.local_bytes // 4, "i32"))
        t.do_when(inside, lambda place=place: group.write_shared(place, [t.integer(0, "i32")]))  # type: ignore[misc]
    written = 0
    for kind in kinds:
        _try_one(
            group, writer, kind, target.warp_size, zeros, t.binary("arith.addi", base, t.integer(4 * written, "i64"))
        )
        written += kind.rows * kind.columns
    return Probe(group.finish("arrangements"), group.argument_bytes, kinds, group.local_bytes)


def _try_one(group: ShaderWorkgroup, writer: Matrices, kind: Fragment, lanes: int, zeros: int, base: Reg) -> None:
    """Write where the elements of one kind of sums are."""
    t, elem = group.code, kind.total
    total, left, right = (
        Matrix(Use.TOTAL, elem, kind.rows, kind.columns),
        Matrix(Use.LEFT, kind.factor, kind.rows, kind.depth),
        Matrix(Use.RIGHT, kind.factor, kind.depth, kind.columns),
    )
    places = [
        t.binary("arith.addi", group.lane(), t.integer(first, "i32"))
        for first in range(0, kind.rows * kind.columns, lanes)
    ]
    group.barrier()
    for place in places:
        number = place if elem == "i32" else t.cast("arith.sitofp", place, "f32")
        if elem == "f16":
            number = t.cast("arith.bitcast", t.cast("arith.truncf", number, "f16"), "i16")
        group.write_shared(place, [number])
    group.barrier()
    nothing = t.integer(8 * zeros // WIDTHS[in_memory(kind.factor)], "i32")
    factors = writer.load(left, nothing, kind.depth), writer.load(right, nothing, kind.columns)
    indices = writer.load(total, t.integer(0, "i32"), kind.columns)
    found = writer.multiply_add(*factors, indices, signed=kind.factor == "i8")
    for at, place in enumerate(places):
        component = t.component(found, at, elem)
        if elem == "f16":
            component = t.cast("arith.extf", component, "f32")
        index = component if elem == "i32" else t.cast("arith.fptosi", component, "i32")
        moved = t.binary("arith.muli", t.cast("arith.extsi", place, "i64"), t.integer(4, "i64"))
        group.store(t.binary("arith.addi", base, moved), [index], 4)


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
        # From the lane's bits upwards, as the numbers are.
        sums = [0]
        for basis in (*of_lanes, *components):
            sums += [basis ^ each for each in sums]
        if sums == list(own) and sorted(own) == list(range(len(own))):
            found.append(Arrangement(kind.total, kind.rows, kind.columns, components, of_lanes))
    return tuple(found)
