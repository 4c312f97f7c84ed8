"""The verb report: one page about what the runs of this checkout found, from build/results."""
