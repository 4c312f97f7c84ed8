"""Devices on the host, for tests: what the lowering writes is run on this machine. It is in no wheel.

SPIR-V runs in NumPy, for any description of a device: spirv.py reads a module, memory.py is its memory, machine.py runs
it, devices.py describes devices. MLIR of work-items, work-groups and tasklets runs natively: llvm.py translates it,
native.py runs it. roads.py is the way from a kernel's text to a run, on each of these; kernels.py writes texts, and
cases.py has those of Triton's, with their results. rows.py says what each elementwise operation means.
tests/planted.toml has faults that the tests must see. triton_backend.py runs tests of an image on the machine.
"""
