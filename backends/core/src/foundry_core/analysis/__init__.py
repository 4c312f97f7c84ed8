"""Walks over a kernel that say what its values are, whatever they are then used for.

Input: a kernel. Output: where values go, and what they are, by one interpreter for all domains.
"""
