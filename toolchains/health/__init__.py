"""What is wrong on a machine: findings about the machine, the store, a Python with Triton, and an extension of Triton.

Input: a machine, its store, a Python with Triton, an extension of Triton. Output: findings: what will fail, why, and
the next command.

machine.py      disk, memory, clock, folders, the lock, the files of the store; and how a problem is described
environment.py  a Python that has Triton: who owns triton/, which drivers are active, its cache, its variables
probe.py        the program that asks that Python; it runs there
extension.py    a wheel or a shared library that Triton, or a Python with Triton, loads
"""
