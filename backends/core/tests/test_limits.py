"""Each driver answers for its own device, where a process has several."""

from __future__ import annotations

import pytest
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.errors import OutOfResources

LIMIT = 200_000


@triton.jit
def store_kernel(x_ptr):
    tl.store(x_ptr, 1.0)


class OtherDevice:
    """Another driver's device and utils: its programs share up to `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.utils = self

    def get_current_device(self) -> int:
        return 0

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("other", 0, 32)

    def launcher_cls(self, source: object, metadata: object) -> None:
        pass

    def get_device_properties(self, device: int) -> dict[str, int]:
        return {"max_shared_mem": self.limit}

    def load_binary(self, *_: object) -> tuple[object, ...]:
        return (None, None, 1, 0, 1 << 20)[: 5 if hasattr(triton, "knobs") else 4]


@pytest.mark.parametrize("smaller_first", [True, False])
def test_a_kernel_is_held_to_the_memory_of_the_active_drivers_device(smaller_first: bool) -> None:
    compiled = store_kernel.warmup(triton.MockTensor(tl.float32), grid=(1,))
    compiled.metadata = compiled.metadata._replace(shared=LIMIT)
    before = driver.active

    def load() -> None:
        compiled.module = None
        compiled._init_handles()

    devices = [OtherDevice(LIMIT - 1), OtherDevice(LIMIT)]
    try:
        for device in devices if smaller_first else reversed(devices):
            driver.set_active(device)
            if device.limit < LIMIT:
                with pytest.raises(OutOfResources, match=f"Required: {LIMIT}, Hardware limit: {LIMIT - 1}"):
                    load()
            else:
                load()
    finally:
        driver.set_active(before)
