"""What an operation does besides computing its results, by the MemoryEffect traits that it declares.

All that moves, repeats or leaves out an operation asks here, and never for its class: an operation that is added later
declares its effects, and is then treated like the others. One that declares none, of our dialects or of xDSL's, is
refused by name when a kernel is read (`refuse_undeclared`).

    traits_def(Pure())                                          computes
    traits_def(MemoryReadEffect())                              reads memory; left out if nobody uses its result
    traits_def(MemoryWriteEffect())                             writes memory
    traits_def(MemoryReadEffect(), MemoryWriteEffect())         both, as an atomic operation does
    traits_def(RecursiveMemoryEffect())                         what the operations in its regions do
    traits_def(OrderingEffect())                                is no access to memory, and stays where it is
    traits_def(Pure(), WholeTile())                             needs all elements of its operands at once
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, cf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.traits import (
    EffectInstance,
    IsTerminator,
    MemoryEffect,
    MemoryEffectKind,
    NoMemoryEffect,
    OpTrait,
    RecursiveMemoryEffect,
    Resource,
)

from .errors import unsupported


@dataclass(frozen=True)
class _Order(Resource):
    """What nothing reads: a write to it keeps an operation from being deleted, and changes no bytes."""

    def name(self) -> str:
        return "<Order>"


_ORDER = _Order()
ORDERING = EffectInstance(MemoryEffectKind.WRITE, resource=_ORDER)


class OrderingEffect(MemoryEffect):
    """An effect that is none on memory: a barrier, a promise to the compiler."""

    @classmethod
    def get_effects(cls, op: Operation) -> frozenset[EffectInstance]:
        return frozenset((ORDERING,))


class WholeTile(OpTrait):
    """An operation that needs all elements of its operands at once: they are evaluated where it stands."""


# Operations of which xDSL 0.74 does not say it.
_UNDECLARED_BY_XDSL: dict[type[Operation], MemoryEffect] = {
    arith.RemUIOp: NoMemoryEffect(),
    cf.BranchOp: NoMemoryEffect(),
    cf.ConditionalBranchOp: NoMemoryEffect(),
    ModuleOp: RecursiveMemoryEffect(),
}


def _declared(op: Operation) -> list[MemoryEffect]:
    known = _UNDECLARED_BY_XDSL.get(type(op))
    return [known] if known is not None else [trait for trait in op.traits if isinstance(trait, MemoryEffect)]


def effects(op: Operation) -> frozenset[EffectInstance]:
    """All effects of an operation, of one with regions also those of all operations in them.

    Raises:
        UnsupportedOperation: it, or one in its regions, declares none.
    """
    declared = _declared(op)
    if not declared:
        raise unsupported(op, "an operation whose effects on memory are not declared")
    found: set[EffectInstance] = set()
    for trait in declared:
        if isinstance(trait, RecursiveMemoryEffect):
            found.update(*(effects(inner) for region in op.regions for block in region.blocks for inner in block.ops))
        else:
            of_trait = trait.get_effects(op)
            if of_trait is None:
                raise unsupported(op, "an operation whose effects on memory are not declared")
            found |= of_trait
    return frozenset(found)


def _has(op: Operation, kind: MemoryEffectKind) -> bool:
    return any(effect.kind is kind and effect.resource != _ORDER for effect in effects(op))


def reads(op: Operation) -> bool:
    """Whether an operation, or one in its regions, reads memory."""
    return _has(op, MemoryEffectKind.READ)


def writes(op: Operation) -> bool:
    """Whether an operation, or one in its regions, writes memory."""
    return _has(op, MemoryEffectKind.WRITE)


def is_pure(op: Operation) -> bool:
    """Whether an operation only computes its results."""
    return not effects(op)


def is_sink(op: Operation) -> bool:
    """Whether the tiles that an operation takes are evaluated where it stands, and not where its results are used.

    That is what needs whole tiles, what hands values to another block, and what has any effect but that of reading.
    """
    if op.regions or op.has_trait(IsTerminator) or op.has_trait(WholeTile):
        return True
    return any(effect.kind is not MemoryEffectKind.READ for effect in effects(op))


def refuse_undeclared(module: Operation) -> None:
    """Refuse what is in a module and declares no effects.

    Raises:
        UnsupportedOperation: names the first such operation, with its source line.
    """
    effects(module)
