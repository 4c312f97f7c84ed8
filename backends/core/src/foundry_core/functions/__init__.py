"""Functions of floats, each written once in basic arithmetic, for devices that have no library with them."""
