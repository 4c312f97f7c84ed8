"""Counts what a launch of a kernel computes and reaches, from its structured form: each operation times its trips."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects import arith, math, scf
from xdsl.dialects.builtin import IntegerType, TensorType
from xdsl.ir import Attribute, Operation

from ..analysis.interpret import Part
from ..analysis.interval import Interval
from ..ir import tile, tt
from ..ir.facts import combined_axis, is_product
from ..ops.elementwise import is_elementwise
from .accesses import ByteRanges
from .values import Value
from .walk import Walk, loop_trips

# Elementwise operations of floats that a processor has as an instruction. Every other one of the dialect math, and
# every function of libdevice, is a function.
_ARITHMETIC = (
    arith.AddfOp,
    arith.SubfOp,
    arith.MulfOp,
    arith.DivfOp,
    arith.NegfOp,
    arith.MaximumfOp,
    arith.MinimumfOp,
    arith.MaxnumfOp,
    arith.MinnumfOp,
    math.AbsFOp,
    math.SqrtOp,
)
# How the names of others begin.
_FUNCTIONS = ("math.", "tt.extern", "tile.")


@dataclass
class Work:
    """What a launch computes and reaches.

    Attributes:
        operations: on floats, by the type that they are computed with, f32 or f64. A fused multiply-add is two.
            Elements of a block are counted also where a mask leaves them out.
        products: operations of tl.dot by the type of its factors. Each step is two.
        functions: evaluations of functions such as exp.
        bytes: of the arrays, each one that is read, and each one that is written, once.
        exact: whether all loops have a number of iterations that is known from the arguments.
    """

    operations: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    products: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    functions: float = 0.0
    bytes: int = 0
    exact: bool = True


class Count(Walk):
    """A walk that adds up a launch's work.

    Args:
        sizes: how many programs each interval stands for.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        ids: Sequence[Interval],
        grid: Sequence[int],
        reads: ByteRanges,
        writes: ByteRanges,
    ) -> None:
        super().__init__(len(sizes), ids, grid, reads, writes)
        self._times = np.asarray(sizes, np.float64)
        self.work = Work()

    def operation(self, op: Operation) -> None:
        if not self._trial:
            self._count(op)
        super().operation(op)

    def loop(self, op: scf.ForOp, bounds: Sequence[Value], initial: Sequence[Value], body: Part[Value]) -> list[Value]:
        before = self._times
        most = loop_trips(self._number(op.lb), self._number(op.ub), self._number(op.step))[0]
        if not np.all(np.isfinite(most.high)):
            self.work.exact = False
        self._times = before * np.where(np.isfinite(most.high), most.high, 1.0)
        found = super().loop(op, bounds, initial, body)
        self._times = before
        return found

    def repeat(self, op: scf.WhileOp, initial: Sequence[Value], test: Part[Value], body: Part[Value]) -> list[Value]:
        self.work.exact = False
        return super().repeat(op, initial, test, body)

    def _count(self, op: Operation) -> None:
        times = float(np.sum(np.where(self._active, self._times, 0.0)))
        match op:
            case _ if is_product(op) or isinstance(op, tt.DotScaledOp):
                a, result = op.operands[0].type, op.results[0].type
                assert isinstance(a, TensorType)
                # Scaled factors are numbers of f32 before they are multiplied.
                factor = _number(a) if is_product(op) else "f32"
                self.work.products[factor] += 2.0 * a.get_shape()[-1] * _elements(result) * times
            case _ if combined_axis(op):
                steps = [inner for inner in op.regions[0].walk() if isinstance(inner, _ARITHMETIC)]
                for step in steps:
                    self._add(step.results[0].type, _elements(op.operands[0].type) * times)
            case math.FmaOp():
                self._add(op.results[0].type, 2.0 * _elements(op.results[0].type) * times)
            case _ if isinstance(op, _ARITHMETIC):
                self._add(op.results[0].type, _elements(op.results[0].type) * times)
            case _ if is_elementwise(op) and op.name.startswith(_FUNCTIONS) and not isinstance(op, tile.Access):
                self.work.functions += _elements(op.results[0].type) * times

    def _add(self, type: Attribute, operations: float) -> None:
        if (number := _number(type))[0] != "i":
            self.work.operations["f64" if number == "f64" else "f32"] += operations


def _number(type: Attribute) -> str:
    """Return MLIR's name of a number, or of a tile's elements."""
    number = type.get_element_type() if isinstance(type, TensorType) else type
    return f"i{number.width.data}" if isinstance(number, IntegerType) else number.name


def _elements(type: Attribute) -> float:
    return float(np.prod(type.get_shape())) if isinstance(type, TensorType) else 1.0


def covered_bytes(lows: np.ndarray, highs: np.ndarray) -> tuple[float, bool]:
    """Return how many bytes intervals cover together, and whether all their ends are known."""
    present = lows < highs
    lows, highs = lows[present], highs[present]
    if not np.all(np.isfinite(lows) & np.isfinite(highs)):
        return 0.0, False
    order = np.argsort(lows)
    lows, highs = lows[order], np.maximum.accumulate(highs[order])
    starts = np.maximum(lows, np.concatenate([lows[:1], highs[:-1]]))
    return float(np.sum(np.maximum(highs - starts, 0))), True
