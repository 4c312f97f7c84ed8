"""Tests on the machine in NumPy, and on the processor of the host: values, claims, and planted faults."""
