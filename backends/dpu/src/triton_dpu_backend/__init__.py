"""A Triton backend for UPMEM DPUs; Triton finds it by its entry point, nothing needs importing.

`profile` collects what launches cost: `with triton_dpu_backend.profile() as launches: kernel[grid](...)`.
"""

from .launches import LaunchCost, profile

__all__ = ["LaunchCost", "profile"]
