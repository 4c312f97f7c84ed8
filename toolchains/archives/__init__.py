"""Reproducible archives: tars, wheels, docker archives, installation prefixes.

Input: files and folders, or archives that somebody else wrote. Output: archives whose bytes depend only on their
content, and safe lists of an archive's entries.
"""
