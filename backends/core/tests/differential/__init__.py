"""Kernels that hypothesis draws, on a target, in Triton's interpreter and in NumPy: see compare_kernels.py."""
