"""Cooperative matrices, in SPIR-V for Vulkan: values that the invocations of a subgroup hold together.

Which invocation holds which element is the driver's secret, if it was not found by trying (arrangements.py). So there
are loads and stores of whole matrices, products, and operations that treat all elements alike. A register of one has a
type such as `matrix2.f32.16x16`: its use, its elements and its extents.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from ....emit.mlir import WIDTHS, Reg
from ....spirv_numbers import numbers
from ..spirv.workgroup import SCOPE_SUBGROUP, Workgroup

_ROW_MAJOR, _COLUMN_MAJOR = numbers("CooperativeMatrixLayout", "RowMajorKHR ColumnMajorKHR")
# All operands and the result of a product are signed.
_SIGNED = sum(
    numbers("CooperativeMatrixOperands", " ".join(f"Matrix{x}SignedComponentsKHR" for x in ("A", "B", "C", "Result")))
)
(_BFLOAT16,) = numbers("FPEncoding", "BFloat16KHR")
# The most bytes of one element of workgroup memory, as loads and stores see it.
_WIDEST = 16


class Use(enum.IntEnum):
    """What a matrix is in a product, as SPIR-V numbers it."""

    LEFT, RIGHT, TOTAL = numbers("CooperativeMatrixUse", "MatrixAKHR MatrixBKHR MatrixAccumulatorKHR")


@dataclass(frozen=True)
class Matrix:
    """The type of a cooperative matrix."""

    use: Use
    elem: str
    rows: int
    columns: int

    @property
    def name(self) -> str:
        return f"matrix{self.use.value}.{self.elem}.{self.rows}x{self.columns}"


class Matrices:
    """Writes instructions on cooperative matrices."""

    def __init__(self, group: Workgroup) -> None:
        self._group, self._module, self._code = group, group.module, group.code

    def type(self, matrix: Matrix) -> str:
        """Return the name of a type, which is declared at its first use."""
        m, code = self._module, self._code
        if matrix.name not in code.opaque:
            m.capability("CooperativeMatrixKHR", "SPV_KHR_cooperative_matrix")
            if matrix.elem == "bf16":
                m.capability("BFloat16TypeKHR", "SPV_KHR_bfloat16")
                m.capability("BFloat16CooperativeMatrixKHR")
                elem = code.opaque["bf16"] = m.type("Float", 16, _BFLOAT16)
            else:
                elem = code.type(matrix.elem)
            shape = (SCOPE_SUBGROUP, matrix.rows, matrix.columns, matrix.use.value)
            operands = [code.id(code.integer(number, "i32")) for number in shape]
            code.opaque[matrix.name] = m.type("CooperativeMatrix", elem, *operands)
        return matrix.name

    def barrier(self) -> None:
        """Wait for the invocations of the subgroup; what they wrote to workgroup memory before is visible after it."""
        order = self._group.workgroup_memory
        scope, order = (self._code.id(self._code.integer(n, "i32")) for n in (SCOPE_SUBGROUP, order))
        self._module.do("ControlBarrier", scope, scope, order)

    def splat(self, matrix: Matrix, x: Reg, *, constant: bool) -> Reg:
        """Return a matrix whose elements are all the same number."""
        m, code, elem = self._module, self._code, self.type(matrix)
        if constant:
            return Reg(f"%{m.composite(code.type(elem), code.id(x))}", elem)
        return Reg(f"%{m.result('CompositeConstruct', code.type(elem), code.id(x))}", elem)

    def _view(self, index: Reg, elem: str, strides: tuple[int, ...]) -> tuple[int, int]:
        """Return a pointer to an element of workgroup memory, and how many elements are one of its array.

        Args:
            strides: distances, in elements, that the array must be able to express.
        """
        code, size = self._code, WIDTHS[elem] // 8
        base, step = code.parts(index)
        count = _WIDEST // size
        while any(number % count for number in (*strides, step, code.multiple(base))):
            count //= 2
        shift = code.integer(count.bit_length() - 1, "i32")
        place = base if count == 1 else code.binary("arith.shrui", base, shift)
        place = code.binary("arith.addi", place, code.integer(step // count, "i32"))
        lanes = count * size // 4
        if lanes == 0:
            return self._group.place(place, f"i{8 * size * count}", 1), count
        return self._group.place(place, "i32", lanes), count

    def load(self, matrix: Matrix, index: Reg, stride: int, *, column_major: bool = False) -> Reg:
        """Read a matrix from workgroup memory.

        Args:
            index: where it begins, in elements.
            stride: the distance of its rows, in elements; of its columns if `column_major`.
        """
        m, code, elem = self._module, self._code, self.type(matrix)
        extent = matrix.rows if column_major else matrix.columns
        pointer, count = self._view(index, _stored(matrix.elem), (stride, extent))
        order = code.integer(_COLUMN_MAJOR if column_major else _ROW_MAJOR, "i32")
        operands = (pointer, code.id(order), code.id(code.integer(stride // count, "i32")), *self._group.shared)
        return Reg(f"%{m.result('CooperativeMatrixLoad', code.type(elem), *operands)}", elem)

    def store(self, matrix: Matrix, x: Reg, index: Reg, stride: int, *, column_major: bool = False) -> None:
        """Write a matrix to workgroup memory; see `load`."""
        m, code = self._module, self._code
        extent = matrix.rows if column_major else matrix.columns
        pointer, count = self._view(index, _stored(matrix.elem), (stride, extent))
        order = code.integer(_COLUMN_MAJOR if column_major else _ROW_MAJOR, "i32")
        distance = code.integer(stride // count, "i32")
        m.do(
            "CooperativeMatrixStore",
            pointer,
            code.id(x),
            code.id(order),
            code.id(distance),
            *self._group.shared,
        )

    def multiply_add(self, left: Reg, right: Reg, total: Reg, *, signed: bool) -> Reg:
        """Return left * right + total."""
        m, code = self._module, self._code
        operands = [code.id(x) for x in (left, right, total)]
        found = m.result("CooperativeMatrixMulAdd", code.type(total.elem), *operands, *([_SIGNED] if signed else []))
        return Reg(f"%{found}", total.elem)

    def component(self, matrix: Matrix, x: Reg, number: int) -> Reg:
        """Return an element of a matrix that this invocation holds; of a float of 16 bits, its bits."""
        found = self._code.component(x, number, matrix.elem)
        return self._code.cast("arith.bitcast", found, "i16") if matrix.elem in ("f16", "bf16") else found

    def compose(self, matrix: Matrix, regs: Sequence[Reg]) -> Reg:
        """Return a matrix of which this invocation holds these elements."""
        found = self.splat(matrix, regs[0], constant=False)
        for number, reg in enumerate(regs):
            if reg != regs[0]:
                found = self._code.with_component(found, number, reg)
        return found

    def combine(self, name: str, x: Reg, y: Reg) -> Reg:
        """Return the result of an instruction on each pair of elements, such as FMul."""
        found = self._code.opaque_result(name, x.elem, x, y)
        if name[0] == "F":
            self._module.exact.append(self._code.id(found))
        return found

    def convert(self, x: Reg, matrix: Matrix) -> Reg:
        """Return a matrix of floats with elements of another type."""
        elem = self.type(matrix)
        return x if elem == x.elem else self._code.opaque_result("FConvert", elem, x)


def _stored(elem: str) -> str:
    """Return the integer type that has the size of an element."""
    return f"i{16 if elem == 'bf16' else WIDTHS[elem]}"
