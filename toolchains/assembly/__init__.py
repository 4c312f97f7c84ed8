"""TODO assembly."""
