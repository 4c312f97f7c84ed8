"""A Triton backend for OpenCL devices that take SPIR-V; Triton finds it by its entry point, nothing needs importing."""
