"""A device on the host, for tests: SPIR-V that the mapping writes is run in NumPy, for any description of a device.

spirv.py reads a module, memory.py is its memory, machine.py runs it. It is in no wheel.
"""
