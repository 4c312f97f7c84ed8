"""A backend in the state in which every backend starts: it compiles to TTIR, has no binary and no device."""
