"""How code is written down: the protocol through which operations are written, and MLIR's text behind it.

Output: registers, the `Builder` protocol, and MLIR's text.
"""
