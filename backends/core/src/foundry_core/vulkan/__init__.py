"""Vulkan as a target's runtime: finds a device, compiles a kernel's SPIR-V, and launches it."""
