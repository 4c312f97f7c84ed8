"""Walks a kernel in structured form, with its loops and branches. A domain defines what a value is.

The domains are intervals for all programs at once (footprint/walk.py), runs of neighbours (axes.py), C code for a host
without Python (footprint/code.py), and plain numbers for one program (ir/plain_numbers.py, of the tests), which define
what the others compute. The meaning of operations on integers is one table for all of them (integers.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeAlias, TypeVar

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import IsTerminator

from ..errors import unsupported
from ..ir import tile, tt
from ..ir.effects import reads, writes

V = TypeVar("V")
# Walks a block with values for its arguments, and returns what it passes on.
Part: TypeAlias = Callable[[Sequence[V]], "list[V]"]


class Interpreter(ABC, Generic[V]):
    """One walk over a kernel. A domain derives from it.

    Attributes:
        values: what is known of each value so far.
    """

    def __init__(self) -> None:
        self.values: dict[SSAValue, V] = {}

    def interpret(self, body: Block, arguments: Iterable[V]) -> list[V]:
        """Walk a block with values for its arguments; return the operands of the operation that ends it."""
        self.bind(body.args, arguments)
        for op in body.ops:
            self.operation(op)
        return self.lookup(body.last_op.operands) if body.last_op is not None else []

    def bind(self, values: Iterable[SSAValue], found: Iterable[V]) -> None:
        self.values.update(zip(values, found, strict=True))

    def lookup(self, values: Iterable[SSAValue]) -> list[V]:
        return [self.values[value] for value in values]

    def operation(self, op: Operation) -> None:
        """Walk one operation."""
        if not op.has_trait(IsTerminator):
            self.bind(op.results, self._results(op))

    def _results(self, op: Operation) -> Sequence[V]:
        match op:
            case tile.Access():
                return self.access(op)
            case scf.ForOp():
                return self.loop(
                    op, self.lookup([op.lb, op.ub, op.step]), self.lookup(op.iter_args), self._part(op.body)
                )
            case scf.IfOp():
                ways = [self._part(region) for region in op.regions if region.blocks]
                return self.branch(op, self.values[op.cond], ways)
            case scf.WhileOp():
                parts = self._part(op.before_region), self._part(op.after_region)
                return self.repeat(op, self.lookup(op.arguments), *parts)
            case tt.MapElementwiseOp():
                return self.map(op, self.lookup(op.srcs), self._part(op.function))
            case _ if reads(op) or writes(op):
                raise unsupported(op, "what it reaches in memory is not known")
        return self.compute(op, [self.values[operand] for operand in op.operands])

    def _part(self, region: Region) -> Part[V]:
        return lambda arguments: self.interpret(region.block, arguments)

    @abstractmethod
    def access(self, op: tile.Access) -> Sequence[V]:
        """Make an access; return its results."""

    @abstractmethod
    def compute(self, op: Operation, operands: Sequence[V]) -> Sequence[V]:
        """Return the results of an operation that does not reach memory and has no block to walk."""

    @abstractmethod
    def branch(self, op: scf.IfOp, condition: V, ways: Sequence[Part[V]]) -> Sequence[V]:
        """Return the results of a branch; without an else, there is one way."""

    @abstractmethod
    def loop(self, op: scf.ForOp, bounds: Sequence[V], initial: Sequence[V], body: Part[V]) -> Sequence[V]:
        """Return the results of a loop.

        Args:
            bounds: the counter's first value, its end and its step.
            initial: what the loop carries at first.
            body: takes the counter and what is carried; returns what is carried on.
        """

    @abstractmethod
    def repeat(self, op: scf.WhileOp, initial: Sequence[V], test: Part[V], body: Part[V]) -> Sequence[V]:
        """Return the results of a `while`.

        Args:
            initial: what the test takes at first.
            test: returns the condition, then what it passes to the body, or to the results.
            body: returns what the test takes next.
        """

    @abstractmethod
    def map(self, op: tt.MapElementwiseOp, tiles: Sequence[V], function: Part[V]) -> Sequence[V]:
        """Return the results of a function that is applied to `pack` elements of each tile at a time."""
