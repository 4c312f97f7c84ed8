"""A Triton backend for UPMEM DPUs. Triton finds it by its entry point; no import is needed.

`profile` collects what launches cost: `with triton_dpu_backend.profile() as launches: kernel[grid](...)`.
"""

from foundry_core.triton_hooks import import_order

from .launches import LaunchCost, profile

__all__ = ["LaunchCost", "profile"]

import_order.install(__name__, "compiler", "driver")
