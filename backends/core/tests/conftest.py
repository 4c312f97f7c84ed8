"""Which of these tests are for which backend."""

from __future__ import annotations

import triton

# Kernels for vsi are lowered by zen-compiler, a process of its own, whose reference is core again: to launch all of
# these takes five times as long there as on spirv, and says the same. e2e and vsi's own tests go through it.
_BY_SPIRV = ["test_tiles.py", "test_operations.py", "test_libdevice.py"]
collect_ignore = _BY_SPIRV if triton.runtime.driver.active.get_current_target().backend == "vsi" else []
