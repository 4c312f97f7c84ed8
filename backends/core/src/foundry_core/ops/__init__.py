"""Tables of scalar functions, one row each: elementwise operations, and the other libdevice functions.

Output: rows: how each elementwise operation, conversion and function of libdevice is written.
"""
