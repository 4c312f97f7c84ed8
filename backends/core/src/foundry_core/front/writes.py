"""Finds the pointer arguments that a kernel may store through, from TTIR or structured form."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Block, SSAValue

from ..analysis.flow import incoming_values
from ..ir import tt
from ..ir.effects import reads, writes
from .structured import kernel


class WriteSet(NamedTuple):
    """The numbers of the arguments through which a kernel may write, in order.

    Attributes:
        by_any: through which any operation may write.
        by_stores: those of them through which a store may: of two elements at one address, any may stay. Atomic
            operations, which also read, change both.
    """

    by_any: list[int]
    by_stores: list[int]


def write_set(module: ModuleOp) -> WriteSet:
    """Return the arguments through which the operations of a kernel may write."""
    function = kernel(module)
    sources = Sources(function)
    writing = [op for op in function.body.walk() if not op.regions and writes(op)]
    return WriteSet(
        *(
            sources.arguments(operand for op in some for operand in op.operands if _is_pointer(operand))
            for some in (writing, [op for op in writing if not reads(op)])
        )
    )


class Sources:
    """Which arguments of a kernel a pointer may come from.

    A pointer that a loop carries, a branch passes or a selection chooses may be any of the possible ones.
    """

    def __init__(self, function: tt.FuncOp) -> None:
        self._parameters = function.body.blocks[0].args

    def arguments(self, pointers: Iterable[SSAValue]) -> list[int]:
        """Return the numbers of the arguments that one of these pointers, or tensors of them, may point into."""
        return self.origins(pointers)[0]

    def origins(self, pointers: Iterable[SSAValue]) -> tuple[list[int], bool]:
        """Return the same numbers, and whether one of the pointers may also be made of a number or be from memory."""
        seen: set[SSAValue] = set()
        pending = list(pointers)
        unknown = False
        while pending:
            value = pending.pop()
            if value not in seen:
                seen.add(value)
                sources = incoming_values(value)
                if sources is None:
                    sources = [] if isinstance(value.owner, Block) else list(value.owner.operands)
                sources = [source for source in sources if _is_pointer(source)]
                unknown |= isinstance(value.owner, tt.LoadOp) or (not sources and value not in self._parameters)
                pending += sources
        return [argument.index for argument in self._parameters if argument in seen], unknown


def _is_pointer(value: SSAValue) -> bool:
    element = value.type.element_type if isinstance(value.type, TensorType) else value.type
    return isinstance(element, tt.PointerType)
