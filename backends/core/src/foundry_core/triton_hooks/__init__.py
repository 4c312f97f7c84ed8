"""Where Triton is extended: each module replaces or wraps one part of it, and says why."""
