"""What functions of numbers are, one row each: elementwise operations, and libdevice functions that are none."""
