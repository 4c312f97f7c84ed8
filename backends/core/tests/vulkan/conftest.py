"""The tests of this folder are of the Vulkan road: they run in images that take it, and nowhere else."""

from __future__ import annotations

import os

collect_ignore_glob = [] if os.environ.get("FOUNDRY_SPIRV_API") == "vulkan" else ["*"]
