"""A Triton backend for VeriSilicon's GPGPUs and NPUs.

Triton finds it by its entry point; importing it does no harm and is needed where a Triton knows no entry points (before
3.3) and where kernels are to come from TorchInductor for tensors of the device type vsi: it registers both.
"""

from __future__ import annotations

from .registration import register

register()
