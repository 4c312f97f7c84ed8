"""What an operation computes, beside effects (effects.py) and moved elements (elements.py): facts that it declares.

An operation declares a fact once, as a trait. Passes and analyses ask the functions below and never check the
operation's class.

    traits_def(Pure(), PointerSum())                            operand 0, pointers, moved by operand 1, in elements
    traits_def(Pure(), ConsecutiveNumbers(lambda op: 5))        5, 6, 7 and so on
    traits_def(Pure(), SameBits())                              the bits of operand 0 as another type
    traits_def(Pure(), MatrixProduct())                         operand 2 plus operand 0 times operand 1
    traits_def(Pure(), AlongAxis(lambda op: 1, keeps=False))    combines along dimension 1, which the result lacks
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from xdsl.ir import Operation, SSAValue
from xdsl.traits import OpTrait


class PointerSum(OpTrait):
    """The result is operand 0, a pointer or a tile of pointers, moved by operand 1, in elements."""


class SameBits(OpTrait):
    """The result has the bits of operand 0, as another type."""


class MatrixProduct(OpTrait):
    """The result is operand 2 plus operand 0 times operand 1: matrices, or as many of each along a first dimension."""


@dataclass(frozen=True)
class ConsecutiveNumbers(OpTrait):
    """The result is a row of numbers, each one more than the one before it.

    Attributes:
        first: returns the first one for an operation.
    """

    first: Callable[[Any], int]


@dataclass(frozen=True)
class AlongAxis(OpTrait):
    """Region 0 combines the elements of each operand along a dimension.

    Attributes:
        axis: returns the dimension for an operation.
        keeps: whether the results have it.
    """

    axis: Callable[[Any], int]
    keeps: bool


class Axis(NamedTuple):
    """The dimension along which elements are combined, and whether the results have it."""

    number: int
    is_kept: bool


def pointer_sum(op: object) -> tuple[SSAValue, SSAValue] | None:
    """Return the pointers and the offsets in elements that an operation adds; None if it does anything else."""
    found = isinstance(op, Operation) and op.has_trait(PointerSum)
    return (op.operands[0], op.operands[1]) if isinstance(op, Operation) and found else None


def keeps_bits(op: object) -> bool:
    """Return whether an operation only gives the bits of its operand another type."""
    return isinstance(op, Operation) and op.has_trait(SameBits)


def is_product(op: object) -> bool:
    """Return whether an operation is a product of matrices."""
    return isinstance(op, Operation) and op.has_trait(MatrixProduct)


def first_number(op: object) -> int | None:
    """Return the first of the consecutive numbers that an operation makes; None if it makes anything else."""
    found = op.get_trait(ConsecutiveNumbers) if isinstance(op, Operation) else None
    return found.first(op) if found else None


def combined_axis(op: object) -> Axis | None:
    """Return the dimension along which an operation combines elements by its region; None if it does anything else."""
    found = op.get_trait(AlongAxis) if isinstance(op, Operation) else None
    return Axis(found.axis(op), found.keeps) if found else None
