"""Tensor descriptors that the host makes (triton.tools.tensor_descriptor.TensorDescriptor), as arguments of a launch.

Triton's passes rewrite a descriptor to a pointer and numbers. `descriptor_types` and `descriptor_arguments` know their
order. `install` lets a descriptor describe a NumPy array or a foundry_core.Tensor: Triton's class asks the base for
torch's methods.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from ..tensor import Tensor

_TYPE = re.compile(r"tensordesc<([^\[<>]+)\[([^\]]*)\]")
# In the IR, `!tt.tensordesc<16x32xf32>`; until 3.6 `!tt.tensordesc<tensor<16x32xf32>>`.
_IR_TYPE = re.compile(r"!tt\.tensordesc<(?:tensor<)?((?:\d+x)+)")


def is_descriptor(type: str) -> bool:
    """Return whether a type in a signature is a tensor descriptor's, as tensordesc<fp32[16, 32]>."""
    return type.startswith("tensordesc")


def descriptor_types(type: str) -> list[str]:
    """Return the types of the arguments that a compiled kernel takes for one descriptor.

    They are the pointer, shape and strides that Triton's pass takes from the descriptor, its flags, and shape and
    strides once more, which the front end of Triton passes next to every descriptor.

    Raises:
        NotImplementedError: a descriptor of a kind that has no meaning without a GPU, such as that of im2col.
    """
    found = _TYPE.match(type)
    if found is None:
        raise NotImplementedError(f"a kernel cannot take a {type}\n  why:  only a GPU's copy engine reads it")
    extents = len(found[2].split(","))
    flags = ["i1"] * (size(extents) - 2 * extents - 1)
    return [f"*{found[1]}", *["i64"] * (2 * extents), *flags, *["i32"] * extents, *["i64"] * extents]


def rank(type: str) -> int | None:
    """Return the rank of a descriptor by its type in the IR; None for any other type."""
    found = _IR_TYPE.match(type)
    return found[1].count("x") if found else None


def size(rank: int) -> int:
    """Return how many arguments Triton's pass makes of a descriptor: a pointer, shape, strides and flags."""
    return 1 + 2 * rank + (2 if _rounds() else 1)


def descriptor_arguments(descriptor: Any) -> list[Any]:
    """Return the arguments for one descriptor, in the order of `descriptor_types`."""
    extents = [*descriptor.shape, *descriptor.strides]
    flags = [descriptor.padding == "nan", *([descriptor.round_f32_to_tf32] if _rounds() else [])]
    return [descriptor.base, *extents, *flags, *extents]


@functools.cache
def _rounds() -> bool:
    """Return whether this release's descriptors can round to tf32."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    return "round_f32_to_tf32" in TensorDescriptor.__dataclass_fields__


def install(_: type) -> None:
    """Let Triton's TensorDescriptor take a NumPy array, or a Tensor; a second call does nothing."""
    try:
        from triton.tools.tensor_descriptor import TensorDescriptor
    except ImportError:  # 3.2
        return
    native: Callable[[Any], None] = TensorDescriptor.__post_init__
    if hasattr(native, "takes_arrays"):
        return
    from_tensor = TensorDescriptor.from_tensor

    def check(self: Any) -> None:
        self.base = base = _tensor(self.base)
        if isinstance(base, Tensor):
            self.base = _Base(base)
        try:
            native(self)
        finally:
            self.base = base

    def of_tensor(tensor: Any, *arguments: Any, **named: Any) -> Any:
        return from_tensor(_tensor(tensor), *arguments, **named)

    check.takes_arrays = True  # type: ignore[attr-defined]
    TensorDescriptor.__post_init__ = check
    TensorDescriptor.from_tensor = staticmethod(of_tensor)


def _tensor(base: Any) -> Any:
    return Tensor(base) if isinstance(base, np.ndarray) else base


class _Base:
    """What TensorDescriptor asks its base when it checks itself: an address, and a dtype with torch's attributes."""

    def __init__(self, tensor: Tensor) -> None:
        self.data_ptr = tensor.data_ptr
        self.dtype = self
        self.itemsize = tensor.element_size()
        self.is_floating_point = "float" in tensor.dtype.name
        self._name: str = tensor.dtype.name

    def __str__(self) -> str:
        return self._name
