"""A driver whose device exists only where the environment says so."""

import os

from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase


class ToyDriver(DriverBase):
    @classmethod
    def is_active(cls):
        return os.environ.get("TOY_IS_ACTIVE") == "1"

    @classmethod
    def inactive_reason(cls):
        return "the toy box is empty"

    def get_current_target(self):
        return GPUTarget("toy", "box", 0)

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 0

    def map_python_to_cpp_type(self, ty):
        raise NotImplementedError

    def get_active_torch_device(self):
        raise NotImplementedError

    def get_benchmarker(self):
        raise NotImplementedError
