"""Control DPUs from Python: a C shim over dpu.h, built once against the installed SDK and called with ctypes."""
