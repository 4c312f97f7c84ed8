"""Find what the atomic operations of a kernel need of DPUs, which share no memory.

Each DPU has its own copy of an array. If a kernel changes an array only by atomic operations of one kind, whose order
does not matter, and uses no result of them, the copies of several DPUs can be merged after the launch (merging.py).
Otherwise all programs that reach the same elements must run on one DPU.
"""

from __future__ import annotations

from foundry_core.emit.mlir import WIDTHS
from foundry_core.front.structured import kernel
from foundry_core.front.writes import Sources
from foundry_core.ir import tile, tt
from foundry_core.ir.parse import parse
from foundry_core.ops.numeric import element_name, in_memory
from xdsl.ir import SSAValue

# Triton writes the maximum and the minimum of floats as two operations on their bits: one for values without a sign,
# one for those with it. Together they compute the maximum or minimum.
_PAIRS = {frozenset(("max", "umin")): "fmax", frozenset(("min", "umax")): "fmin"}
_ORDERED = {"exch": "an exchange", "cas": "a compare-and-swap"}


def merge_rules(structured: str) -> tuple[dict[int, str], dict[int, str]]:
    """Read a kernel in structured form (the stage `tile`).

    Returns:
        The arrays whose copies can be merged, with the operation and the element type (`add i32`, `fmax f64`), and
        those that must be on one DPU, with the reason; both by the parameter's index.
    """
    function = kernel(parse(structured))
    sources = Sources(function)
    pointers = [argument.index for argument in function.body.block.args if isinstance(argument.type, tt.PointerType)]
    accesses: dict[int, list[tile.Access]] = {}
    unknown = set[int]()
    for op in function.body.walk():
        if isinstance(op, tile.Access):
            reached = sources.arguments([op.base]) or pointers
            for index in reached:
                accesses.setdefault(index, []).append(op)
            if len(reached) > 1:
                unknown.update(reached)
    merged: dict[int, str] = {}
    apart: dict[int, str] = {}
    for index, ops in accesses.items():
        if not any(isinstance(op, tile.Executed) for op in ops):
            continue
        reason = "the pointer of an access is chosen at run time" if index in unknown else _order(ops)
        how = None if reason else _merge(function.body.block.args[index], ops)
        if how is not None:
            merged[index] = how
        else:
            apart[index] = reason or "its atomic operations are of several kinds, or on another type than its elements"
    return merged, apart


def _order(accesses: list[tile.Access]) -> str:
    """Return why the order of accesses to an array matters; "" if it does not."""
    for op in accesses:
        if isinstance(op, tile.VolatileLoadOp | tile.PollOp):
            return "a volatile or atomic load waits for other programs"
        if not isinstance(op, tile.AtomicOp):
            return "it is loaded or stored, too"
        if op.kind.data in _ORDERED:
            return f"the order of {_ORDERED[op.kind.data]} matters"
        if op.result.uses:
            return f"the result of an atomic {op.kind.data} is used"
    return ""


def _merge(argument: SSAValue, accesses: list[tile.Access]) -> str | None:
    """Return the operation and the element type of an array's atomic operations; None if there are several."""
    assert isinstance(argument.type, tt.PointerType)
    changes = [op for op in accesses if isinstance(op, tile.AtomicOp)]
    types = {element_name(op.value.type, op) for op in changes}
    if len(types) != 1:
        return None
    (elem,) = types
    own = element_name(argument.type.pointee, changes[0])
    if WIDTHS[in_memory(own)] != WIDTHS[in_memory(elem)]:
        return None
    kinds = frozenset(op.kind.data for op in changes)
    if len(kinds) == 1:
        return f"{next(iter(kinds))} {elem}"
    if kinds in _PAIRS and own in ("f32", "f64") and _are_pairs(changes):
        return f"{_PAIRS[kinds]} {own}"
    return None


def _are_pairs(changes: list[tile.AtomicOp]) -> bool:
    """Return whether operations come in twos that change the same place by the same value, as Triton writes them."""
    if len(changes) % 2:
        return False
    return all(
        one.value is other.value and one.kind != other.kind and one.parent_block() is other.parent_block()
        for one, other in zip(changes[::2], changes[1::2], strict=True)
    )
