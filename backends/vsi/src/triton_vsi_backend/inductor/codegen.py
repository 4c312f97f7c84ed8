"""Generate code for `vsi` with Inductor: Triton kernels of what the compiler lowers, and calls of torch.vsi."""

from __future__ import annotations

from typing import ClassVar

from torch._inductor.codegen.common import BackendFeature, DeviceOpOverrides
from torch._inductor.codegen.triton import TritonScheduling

_REFUSED = (BackendFeature.SCAN, BackendFeature.SORT, BackendFeature.BUCKETIZE, BackendFeature.FOREACH)


class VsiDeviceOps(DeviceOpOverrides):  # type: ignore[misc]
    """Lines of Python in the code that calls the kernels."""

    def import_get_raw_stream_as(self, name: str) -> str:
        return f"from triton_vsi_backend.inductor.interface import VsiInterface\n{name} = VsiInterface.get_raw_stream"

    def set_device(self, device_idx: int) -> str:
        return f"torch.vsi.set_device({device_idx})"

    def synchronize(self) -> str:
        return "torch.vsi.synchronize()"

    def device_guard(self, device_idx: int) -> str:
        return f"torch.vsi.device({device_idx})"


class VsiScheduling(TritonScheduling):  # type: ignore[misc]
    """Triton kernels without what the compiler refuses: scans, sorting, and loops over many tensors in one kernel."""

    backend_features: ClassVar[dict[BackendFeature, None]] = {
        feature: None for feature in TritonScheduling.backend_features if feature not in _REFUSED
    }
