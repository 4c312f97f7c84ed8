"""TODO sdk."""
