"""Puts VeriSilicon's zen-compiler and its bridge into the wheel of triton-vsi-backend.

Environment, while a wheel is built:
    VSI_ZEN_COMPILER_PATH: the program zen-compiler; becomes triton_vsi_backend/bin/zen-compiler.
    VSI_ZEN_TC_BRIDGE_PATH: libZenTCBridge.so; becomes triton_vsi_backend/lib/libZenTCBridge.so.
    HATCH_BUILD_NO_HOOKS: 1, hatchling's own switch, makes a wheel with neither, which takes them from those two
        variables when it is used.

A wheel with them is of this machine's platform; without them, and where it is installed for development, it is of any.
"""

from __future__ import annotations

import os
import shutil
import sysconfig
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# The variable that names a file, where the file goes, and its mode there.
_PIECES = (
    ("VSI_ZEN_COMPILER_PATH", "triton_vsi_backend/bin/zen-compiler", 0o755),
    ("VSI_ZEN_TC_BRIDGE_PATH", "triton_vsi_backend/lib/libZenTCBridge.so", 0o644),
)


class SdkError(Exception):
    """A file that the wheel is to have is not there."""


class SdkHook(BuildHookInterface[Any]):
    """Hatchling's hook: `initialize` is called before a wheel is built."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the two files.

        Raises:
            SdkError: a variable is not set, or names no file.
        """
        if self.target_name != "wheel" or version == "editable":
            return
        # Copies, since a wheel keeps a file's mode, and a compiler must be executable in it.
        self._work = TemporaryDirectory(prefix="triton-vsi-wheel-")
        for variable, inside, mode in _PIECES:
            copy = Path(self._work.name, Path(inside).name)
            shutil.copyfile(_named(variable), copy)
            copy.chmod(mode)
            build_data["force_include"][str(copy)] = inside
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the copies."""
        if work := getattr(self, "_work", None):
            work.cleanup()


def _named(variable: str) -> Path:
    named = os.environ.get(variable, "")
    if named and Path(named).is_file():
        return Path(named)
    if named:
        why = f"{variable}={named} {'is not a file' if Path(named).exists() else 'does not exist'}"
    else:
        why = f"{variable} is not set"
    raise SdkError(
        f"the wheel of triton-vsi-backend is to have VeriSilicon's zen-compiler and libZenTCBridge.so in it\n"
        f"  why:  {why}\n"
        f"  next: export {variable}=/path/to/the/file; or HATCH_BUILD_NO_HOOKS=1 for a wheel that is told when used"
    )
