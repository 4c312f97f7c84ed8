"""Reproducible archives: tars, wheels, docker archives, installation prefixes.

Input: files and folders, or foreign archives. Output: archives whose bytes depend on their content only.
"""
