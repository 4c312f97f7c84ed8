"""Draw kernels with hypothesis, and run them on a target, in Triton's interpreter and in NumPy (compare_kernels.py)."""
