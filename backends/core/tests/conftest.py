"""Select the tests for each backend, and for the host."""

from __future__ import annotations

import importlib.util
from pathlib import Path

# Kernels for vsi are lowered by zen-compiler, a separate process, whose reference is core again. Launching all of these
# there takes five times as long as on spirv, and tests the same code. e2e and vsi's own tests go through it.
_BY_SPIRV = ("induction", "refusals", "forms", "register_values", "tuning", "profile")
# Of vsi's images, the one with the newest release of Triton leaves these to an older release: what they find depends on
# zen-compiler, or on the release, but not on both, and spirv runs them with the newest one. The last two use no
# backend at all; none of the others has a test that needs the newest release, or that runs with one release only.
_BY_AN_OLDER_RELEASE = ("scalars", "workgroup", "opencl")
_NEWEST = (3, 9)
# They need no Triton, and run on the host: every image would find the same.
_ON_HOST = ("functions", "tensor", "typed")
_FOLDER = Path(__file__).parent


def _left_to_others() -> list[str]:
    """Return the files that this image, or a machine without Triton, leaves to others."""
    on_host = [f"test_{what}.py" for what in _ON_HOST]
    if importlib.util.find_spec("triton") is None:
        return ["vulkan", *(file.name for file in _FOLDER.glob("test_*.py") if file.name not in on_host)]
    import triton

    left = on_host
    if triton.runtime.driver.active.get_current_target().backend == "vsi":
        is_newest = tuple(map(int, triton.__version__.split(".")[:2])) >= _NEWEST
        left += [f"test_{what}.py" for what in (*_BY_SPIRV, *(_BY_AN_OLDER_RELEASE if is_newest else ()))]
    assert all((_FOLDER / file).exists() for file in left), "a file of tests has another name now"
    return left


collect_ignore = _left_to_others()
