"""Launches: arguments, memory, the log of a launch, crashes, and OpenCL devices.

Input: a compiled kernel and a launch's arguments. Output: what the kernel wrote.
"""
