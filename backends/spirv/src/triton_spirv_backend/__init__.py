"""A Triton backend for OpenCL devices that accept SPIR-V. Triton finds it by its entry point; no import is needed."""
