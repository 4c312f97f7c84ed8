"""Patch series: read, applied strictly, compared with a tree, and written again.

Input: the folders in patches/, and trees, wheels or packages. Output: the changed files.
"""
