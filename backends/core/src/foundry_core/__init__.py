"""What the backends of Triton Foundry share: the lowering of Triton's IR, and running its result on OpenCL devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .tensor import Tensor

__all__ = ["Tensor"]


def __getattr__(name: str) -> Any:
    # NumPy is imported at the first use of Tensor: parts of this package work without it.
    if name == "Tensor":
        from .tensor import Tensor

        return Tensor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
