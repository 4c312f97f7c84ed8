"""A Triton backend for UPMEM DPUs. Triton finds it by its entry point; no import is needed.

`profile` collects what launches cost: `with triton_dpu_backend.profile() as launches: kernel[grid](...)`.
"""

from foundry_core import triton_first

from .launches import LaunchCost, profile

__all__ = ["LaunchCost", "profile"]

triton_first.install(__name__, "compiler", "driver")
