"""Rewrites TTIR to structured form, independently of the target."""
