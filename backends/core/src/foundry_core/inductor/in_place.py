"""Let compiled code write to a tensor in place only after all elements that it reads of the tensor were read.

For `x[1:] = x[:-1].clone()` Inductor removes the copy and writes one kernel, whose programs read what others have
written already. Here such an operand is computed by a kernel before. Inductor's scheduler joins the two kernels if each
element is read only where it is written.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
from torch._inductor import inductor_prims
from torch._inductor.dependencies import extract_read_writes
from torch._inductor.ir import FlexibleLayout, TensorBox
from torch._inductor.lowering import lowerings
from torch.utils._pytree import tree_map

aten = torch.ops.aten

# What Inductor computes in place. All else that PyTorch does in place is a new tensor in its graph.
_OPERATORS = (aten.copy_.default, aten.index_put_.default, inductor_prims._unsafe_index_put_)


def register(device: str, applies: Callable[[], bool] = lambda: True) -> None:
    """Compute first what an operation in place reads of its own tensor, for tensors on a device.

    Args:
        device: the type of the device.
        applies: whether this holds for a graph that is being compiled.
    """
    for operator in _OPERATORS:
        lowerings[operator] = partial(_write_last, lowerings[operator], device, applies)


def _write_last(
    lowering: Callable[..., Any], device: str, applies: Callable[[], bool], target: Any, *operands: Any, **options: Any
) -> Any:
    if applies() and target.get_device().type == device:
        target.realize()
        operands = tree_map(partial(_apart, target.get_name()), operands)
    return lowering(target, *operands, **options)


def _apart(name: str, operand: Any) -> Any:
    """Return an operand whose value does not change when the buffer of this name does."""
    if isinstance(operand, TensorBox):
        with patch.object(FlexibleLayout, "allow_indexing", True):
            reads = extract_read_writes(operand.make_loader(), operand.get_size()).reads
        if name in {read.name for read in reads}:
            operand = lowerings[aten.clone.default](operand)
            operand.realize()
    return operand
