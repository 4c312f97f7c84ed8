"""Vulkan as a target's runtime: finds a device, compiles a kernel's SPIR-V, and launches it.

Input: a kernel in SPIR-V, arrays. Output: launches on a Vulkan device, through `vulkan.c`.
"""
