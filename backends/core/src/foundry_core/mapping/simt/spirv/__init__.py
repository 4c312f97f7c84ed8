"""SPIR-V of one invocation: the module, its instructions, its workgroup's memory, for Vulkan and for OpenCL."""
