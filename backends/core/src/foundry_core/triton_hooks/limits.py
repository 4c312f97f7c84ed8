"""The most memory that the work-items of a program can share: asked of the active driver for each kernel.

Triton 3.6 and 3.9 keep it by the number of the device, so the driver that is asked first answers for all: a kernel of
CUDA was held to 48 KiB after one of Vulkan, and refused with OutOfResources.
"""

from __future__ import annotations

import sys
from typing import Any

from . import deferred

_MODULE, _NAME = "triton.compiler.compiler", "max_shared_mem"


def install(_: type) -> None:
    """Replace what keeps it, as soon as Triton has defined that."""
    deferred.call(_replace, _MODULE, _NAME)


def _replace() -> None:
    module: Any = sys.modules[_MODULE]
    module.max_shared_mem = module.max_shared_mem.__wrapped__
