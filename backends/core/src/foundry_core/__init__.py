"""Code shared by the backends of Triton Foundry: lowering of Triton's IR, and execution on OpenCL devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .triton_hooks import import_order

if TYPE_CHECKING:
    from .tensor import Tensor

__all__ = ["Tensor"]

import_order.install(__name__, "backend.compiler", "backend.driver", "backend.gpu", "triton_hooks.grids")


def __getattr__(name: str) -> Any:
    # NumPy is imported at the first use of Tensor, because parts of this package work without NumPy.
    if name == "Tensor":
        from .tensor import Tensor

        return Tensor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
