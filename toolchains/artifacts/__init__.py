"""TODO artifacts."""
