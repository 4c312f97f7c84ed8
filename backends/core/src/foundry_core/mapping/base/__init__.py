"""What the mappings share: text, index spaces, buffers, arithmetic, the plan, and how each operation is written."""
