"""Cooperative matrices: instructions, which values are kept in them, and how these exchange elements with others."""
