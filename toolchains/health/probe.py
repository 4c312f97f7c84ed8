"""Print what Triton a Python has, as JSON. It runs in that Python, of any version, and imports no other file of ours.

With the argument "static", nothing of Triton is imported: which distributions have files in triton/, which are
backends. Without it, each backend is imported as Triton does it, and asked whether it is active.
"""

from __future__ import annotations

import json
import os
import sys
import sysconfig
from typing import Any


def static() -> dict[str, Any]:
    from importlib.metadata import distributions

    described: dict[str, Any] = {}
    for distribution in distributions():
        name = distribution.metadata["Name"] or "?"
        files = [str(file) for file in distribution.files or ()]
        points = [point for point in distribution.entry_points if point.group == "triton.backends"]
        # Python imports the first one of a name.
        described[name] = described.get(name) or {
            "version": distribution.version,
            "triton": "triton/__init__.py" in files,
            "backends": {point.name: point.value for point in points},
            "requires": distribution.requires or [],
        }
    extensions = [sysconfig.get_config_var("EXT_SUFFIX") or "", ".abi3.so"]
    try:
        libc = (os.confstr("CS_GNU_LIBC_VERSION") or "").rpartition(" ")[2]
    except (ValueError, AttributeError, OSError):
        libc = ""
    return {
        "python": ".".join(map(str, sys.version_info[:3])),
        "extensions": extensions,
        "libc": libc,
        "path": sys.path,
        "distributions": described,
    }


def active() -> dict[str, Any]:
    import triton
    from triton.backends import backends

    states: dict[str, Any] = {}
    for name, backend in backends.items():
        try:
            states[name] = bool(backend.driver.is_active()) if backend.driver else False
        except Exception as error:
            states[name] = f"{type(error).__name__}: {error}"
    return {"version": triton.__version__, "file": triton.__file__, "backends": states}


if __name__ == "__main__":
    sys.path.pop(0)
    said = static() if sys.argv[1:] == ["static"] else active()
    print(f"\n{json.dumps(said)}")
