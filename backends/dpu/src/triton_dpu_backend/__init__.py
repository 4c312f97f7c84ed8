"""A Triton backend for UPMEM DPUs. Triton finds it by its entry point; no import is needed.

`profile` collects what launches cost: `with triton_dpu_backend.profile() as launches: kernel[grid](...)`.
"""

from .launches import LaunchCost, profile

__all__ = ["LaunchCost", "profile"]
