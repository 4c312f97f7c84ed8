"""Vulkan as a target's runtime: finds a device, compiles a kernel's SPIR-V, and launches it.

Input: a kernel in SPIR-V, arrays. Output: launches on a Vulkan device, through `vulkan.c`.
"""

from __future__ import annotations

# It is here so that compilers can ask for it without what a device needs.
VALIDATION_VARIABLE = "FOUNDRY_VULKAN_VALIDATION"
