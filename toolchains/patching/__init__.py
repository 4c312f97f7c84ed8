"""TODO patching."""
