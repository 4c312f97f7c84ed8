"""Adds triton-foundry-core to what a plugin requires.

It is in no index: an editable install takes it from this folder. A wheel must be the same on every machine, so it
requires it by name alone, and is installed together with core's wheel. In the images, whose wheels are built without
hooks, both are installed anyway.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CoreHook(BuildHookInterface[Any]):
    """Hatchling's hook: `initialize` is called before a wheel is built, an editable one too."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the requirement."""
        here = f" @ {Path(__file__).resolve().parent.as_uri()}" if version == "editable" else ""
        build_data["dependencies"].append(f"triton-foundry-core{here}")
