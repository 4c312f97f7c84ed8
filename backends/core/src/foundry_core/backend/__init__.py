"""The part of a plugin that is the same in all: Triton's interfaces of a compiler and a driver.

Input: Triton's calls of a plugin. Output: what a plugin derives its compiler and its driver from.
"""
