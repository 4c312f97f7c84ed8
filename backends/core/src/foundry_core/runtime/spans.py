"""The memory that the arguments of a launch reach."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


class TensorLike(Protocol):
    """The methods of a pointer argument; `foundry_core.tensor.Tensor` and torch's CPU tensors have them."""

    def data_ptr(self) -> int: ...

    def untyped_storage(self) -> Any: ...


def memory_spans(tensors: Sequence[TensorLike], *, whole_allocations: bool = False) -> list[tuple[int, int]]:
    """Return the memory that `tensors` reach, as disjoint ranges of addresses (first byte, one past the last).

    Each tensor reaches from its first element to the end of its allocation: a kernel may step over its strides.

    Args:
        whole_allocations: each reaches from the beginning of its allocation, because a kernel may also step backwards.
    """
    reached = []
    for tensor in tensors:
        storage = tensor.untyped_storage()
        low = storage.data_ptr() if whole_allocations else tensor.data_ptr()
        high = storage.data_ptr() + storage.nbytes()
        if low < high:
            reached.append((low, high))
    spans: list[tuple[int, int]] = []
    for low, high in sorted(reached):
        if spans and low < spans[-1][1]:
            spans[-1] = spans[-1][0], max(high, spans[-1][1])
        else:
            spans.append((low, high))
    return spans
