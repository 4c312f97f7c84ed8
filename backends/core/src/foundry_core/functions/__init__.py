"""Functions of floats, each written once in basic arithmetic, for devices that have no library with them.

Output: exp, log, sin and the like, in operations that IEEE 754 rounds correctly.
"""
