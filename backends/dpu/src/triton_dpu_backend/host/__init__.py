"""DPUs from Python: dpu.h behind a shim in C, built once against the SDK that is installed, called by ctypes."""
