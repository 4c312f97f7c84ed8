"""Gives Triton the driver of the API that FOUNDRY_SPIRV_API names.

Triton refuses a module with two classes of drivers, so what chooses among them is in apis.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .apis import environment_driver

if TYPE_CHECKING:
    # Classes that derive from it have the interface of this road.
    from .opencl import SpirvDriver
else:
    SpirvDriver = environment_driver()

__all__ = ["SpirvDriver"]
