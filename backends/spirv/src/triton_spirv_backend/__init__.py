"""A Triton backend for devices that accept SPIR-V, through OpenCL or Vulkan. Triton finds it by its entry point.

No import is needed, unless another backend is active, too: then `activate()` chooses this one.
`python -m triton_spirv_backend` says what this machine has, and runs a check.
"""

from __future__ import annotations

from foundry_core.triton_hooks import import_order

import_order.install(__name__, "compiler", "conflicts", "driver", "opencl", "apis", "simt", "vulkan")


def activate(api: str = "vulkan") -> None:
    """Launch kernels on this backend's device from now on, whatever other backends are active.

    Triton keeps what it compiled for a kernel per device number, not per backend: call this before the first launch.

    Args:
        api: `vulkan` or `opencl`.

    Raises:
        ApiError: there is no such road, or its Python packages are missing.
    """
    from triton.runtime import driver

    from .apis import api_driver

    driver.set_active(api_driver(api)())
