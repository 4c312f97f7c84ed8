"""Code that all mappings share: MLIR text, index spaces, buffers, arithmetic, the plan, and operations."""
