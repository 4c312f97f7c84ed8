"""TODO lockfile."""
