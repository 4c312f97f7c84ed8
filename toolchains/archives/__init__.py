"""TODO archives."""
