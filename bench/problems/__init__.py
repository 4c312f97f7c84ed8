"""The problems of each kernel. To add one, write a module with `problem`, and rows for a device, as in bench/opencl.py."""
