"""Tables of scalar functions, one row each: elementwise operations, and the other libdevice functions."""
