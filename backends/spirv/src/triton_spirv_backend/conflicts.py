"""Two backends that are both active: Triton chooses neither."""

from __future__ import annotations

import os

import triton
from foundry_core.backend.driver import SynchronousDriver
from foundry_core.failure import Failure
from foundry_core.triton_hooks.drivers import BACKEND_VARIABLE, reads_variable

API_VARIABLE = "FOUNDRY_SPIRV_API"


class ApiError(Failure):
    """No road to a device, or Triton could not choose it."""


def refuse_two(driver: type[SynchronousDriver], vulkan: type[SynchronousDriver]) -> None:
    """Refuse to be one of two active backends, which Triton does not choose between.

    Triton's own message names classes and no remedy.

    Args:
        driver: the one that Triton asks, `vulkan` or derived from that. Another of these is as active as this one.

    Raises:
        ApiError: another backend is active, and nothing chooses.
    """
    if os.environ.get(BACKEND_VARIABLE) and reads_variable():
        return
    others = [
        name
        for name, backend in triton.backends.backends.items()
        if backend.driver is not driver
        and (vulkan in getattr(backend.driver, "__mro__", ()) or backend.driver.is_active())
    ]
    if not others:
        return
    chooses = f"set {BACKEND_VARIABLE}=spirv, or " if reads_variable() else ""
    ignores = "" if reads_variable() else f", and this release does not read {BACKEND_VARIABLE}"
    raise ApiError(
        f"{API_VARIABLE}=vulkan asks for Vulkan, and Triton's backend {', '.join(others)} is active, too",
        why=f"Triton {triton.__version__} needs exactly one active backend{ignores}",
        next=f"{chooses}call triton_spirv_backend.activate() before the first launch, or hide the other backend's "
        "device, such as by CUDA_VISIBLE_DEVICES= for CUDA",
    )
