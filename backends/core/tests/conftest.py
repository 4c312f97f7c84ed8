"""Select the tests for each backend."""

from __future__ import annotations

import importlib.util

# Kernels for vsi are lowered by zen-compiler, a separate process, whose reference is core again. Launching all of these
# there takes five times as long as on spirv, and tests the same code. e2e and vsi's own tests go through it.
_BY_SPIRV = [f"test_{what}.py" for what in ("tiles", "shapes", "operations", "libdevice", "casts", "tuning", "profile")]


def _backend() -> str:
    """Return the backend of the image that this runs in; "" on a developer's machine, which has no Triton."""
    if importlib.util.find_spec("triton") is None:
        return ""
    import triton

    return str(triton.runtime.driver.active.get_current_target().backend)


collect_ignore = _BY_SPIRV if _backend() == "vsi" else []
