"""The effects of an operation besides its results, from the MemoryEffect traits that it declares.

Code that moves, repeats or removes an operation uses these functions and never checks the operation's class. A new
operation declares its effects and is then treated like the others. An operation that declares none, from our dialects
or from xDSL's, is refused by name when a kernel is read (`refuse_undeclared`).

    traits_def(Pure())                                          computes only
    traits_def(MemoryReadEffect())                              reads memory; removed if nobody uses its result
    traits_def(MemoryWriteEffect())                             writes memory
    traits_def(MemoryReadEffect(), MemoryWriteEffect())         both, as an atomic operation does
    traits_def(RecursiveMemoryEffect())                         has the effects of the operations in its regions
    traits_def(OrderingEffect())                                does not access memory, and keeps its position
    traits_def(LogEffect())                                     writes to the launch's log, which no operation reads
    traits_def(MemoryReadEffect(), OrderingEffect())            a load that may wait for another program
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

from ..errors import unsupported

# The attribute of a loop out of which nothing is to be hoisted: tl.range(disable_licm=True).
KEEPS_CODE = "foundry.keeps_code"


@dataclass(frozen=True)
class _Order(Resource):
    """A resource that nothing reads. A write to it keeps an operation from being deleted and changes no bytes."""

    def name(self) -> str:
        return "<Order>"


@dataclass(frozen=True)
class _Log(Resource):
    """The log of a launch (log.py): memory that is no argument's, and that no operation of a kernel reads."""

    def name(self) -> str:
        return "<Log>"


_ORDER, _LOG = _Order(), _Log()
ORDERING = EffectInstance(MemoryEffectKind.WRITE, resource=_ORDER)
_LOGGING = EffectInstance(MemoryEffectKind.WRITE, resource=_LOG)


class OrderingEffect(MemoryEffect):
    """An effect without a memory access: a barrier, a promise to the compiler."""

    @classmethod
    def get_effects(cls, op: Operation) -> frozenset[EffectInstance]:
        return frozenset((ORDERING,))


class LogEffect(MemoryEffect):
    """An effect that a user sees after the launch: a line that is printed, an assertion that may fail."""

    @classmethod
    def get_effects(cls, op: Operation) -> frozenset[EffectInstance]:
        return frozenset((_LOGGING,))


class WholeTile(OpTrait):
    """An operation that needs all elements of its operands at once: they are evaluated at its position."""


# Operations whose effects xDSL 0.74 does not declare.
_UNDECLARED_BY_XDSL: dict[type[Operation], MemoryEffect] = {
    arith.RemUIOp: NoMemoryEffect(),
    cf.BranchOp: NoMemoryEffect(),
    cf.ConditionalBranchOp: NoMemoryEffect(),
    ModuleOp: RecursiveMemoryEffect(),
}


def effects(op: Operation) -> frozenset[EffectInstance]:
    """Return all effects of an operation, including those of all operations in its regions.

    Raises:
        UnsupportedOperation: the operation, or one in its regions, declares no effects.
    """
    known = _UNDECLARED_BY_XDSL.get(type(op))
    declared = [known] if known is not None else [trait for trait in op.traits if isinstance(trait, MemoryEffect)]
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
    return any(effect.kind is kind and effect.resource not in (_ORDER, _LOG) for effect in effects(op))


def reads(op: Operation) -> bool:
    """Return whether an operation, or one in its regions, reads memory."""
    return _has(op, MemoryEffectKind.READ)


def writes(op: Operation) -> bool:
    """Return whether an operation, or one in its regions, writes memory that a kernel can read."""
    return _has(op, MemoryEffectKind.WRITE)


def logs(op: Operation) -> bool:
    """Return whether an operation, or one in its regions, writes to the launch's log."""
    return _LOGGING in effects(op)


def waits(op: Operation) -> bool:
    """Return whether an operation, or one in its regions, reads what another program may write meanwhile.

    No other load may be moved across it: that program may write elsewhere first.
    """

    def is_wait(inner: Operation) -> bool:
        found = effects(inner)
        return ORDERING in found and any(effect.kind is MemoryEffectKind.READ for effect in found)

    return any(is_wait(inner) for inner in op.walk() if not inner.regions)


def is_pure(op: Operation) -> bool:
    """Return whether an operation only computes its results."""
    return not effects(op)


def is_sink(op: Operation) -> bool:
    """Return whether the tiles that an operation takes are evaluated at its position, not where its results are used.

    This holds for operations that need whole tiles, that pass values to another block, or that have any effect except
    reading.
    """
    if op.regions or op.has_trait(IsTerminator) or op.has_trait(WholeTile):
        return True
    return any(effect.kind is not MemoryEffectKind.READ for effect in effects(op))


def refuse_undeclared(module: Operation) -> None:
    """Refuse a module that contains an operation without declared effects.

    Raises:
        UnsupportedOperation: names the first such operation, with its source line.
    """
    effects(module)
