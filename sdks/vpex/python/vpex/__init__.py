"""PyTorch's device type `vsi` in host memory: what VeriSilicon's vpex is for their devices, for machines without it.

`import vpex` makes `torch.vsi` and lets `device="vsi"` be said. Tensors are made, viewed and copied here; Triton's
kernels work on them through the plugin triton_vsi_backend; every other operator is computed on the CPU, and counted
(`torch.vsi.fallbacks()`).
"""

from __future__ import annotations

from pathlib import Path

import torch

from .built_for import TORCH

__all__ = ["IS_REFERENCE"]

# The vendor's vpex does not have this name, so programs can tell this replacement from hardware.
IS_REFERENCE = True


def _load() -> None:
    library = Path(__file__).resolve().parents[2] / "lib/libvpex_reference.so"
    release = ".".join(torch.__version__.split("+")[0].split(".")[:2])
    if release != TORCH:
        raise ImportError(
            f"this vpex was compiled for PyTorch {TORCH}, not {torch.__version__}\n"
            f"  why:  {library} uses PyTorch's C++ interface, which changes from release to release\n"
            f"  next: use PyTorch {TORCH}, or build the recipe vsi-vpex-reference against {torch.__version__}"
        )
    torch.ops.load_library(library)
    torch.utils.rename_privateuse1_backend("vsi")
    from . import vsi

    torch._register_device_module("vsi", vsi)
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)


_load()
