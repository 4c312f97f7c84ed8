"""Launches: arguments, memory, the log of a launch, crashes, and OpenCL devices.

Input: a compiled kernel, a launch's arguments. Output: checked arguments, the launch's log, crashes that name a
kernel, OpenCL devices.
"""
