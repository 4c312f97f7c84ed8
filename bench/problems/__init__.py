"""The problems of each kernel. Each module has `problem`, and devices have rows for it, as in bench/opencl.py."""
