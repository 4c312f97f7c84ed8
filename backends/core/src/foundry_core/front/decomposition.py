"""Replaces operations such as tt.split and tt.cat by simpler ones, which say which element is which."""

from __future__ import annotations

from xdsl.ir import Block
from xdsl.rewriter import Rewriter

from ..ir.build import builder_before
from ..ir.elements import Decomposition


def decompose_operations(body: Block) -> None:
    """Replace each operation that declares what it is in simpler ones (elements.Decomposition)."""
    for op in list(body.walk()):
        composed = op.get_trait(Decomposition)
        if composed is None:
            continue
        for old, new in zip(op.results, composed.write(op, builder_before(op)), strict=True):
            new.name_hint = old.name_hint
            old.replace_all_uses_with(new)
        Rewriter.erase_op(op)
