"""Code shared by the backends of Triton Foundry: lowering of Triton's IR, and execution on OpenCL devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import triton_first

if TYPE_CHECKING:
    from .tensor import Tensor

__all__ = ["Tensor"]

triton_first.install(__name__, "compiling", "driver", "gpu", "grids")


def __getattr__(name: str) -> Any:
    # NumPy is imported at the first use of Tensor, because parts of this package work without NumPy.
    if name == "Tensor":
        from .tensor import Tensor

        return Tensor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
