"""Triton kernels on UPMEM DPUs: compiler.py and driver.py are what Triton loads."""
