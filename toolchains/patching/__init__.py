"""Read patch series, apply them strictly, compare them with a tree, and write them again.

Input: the folders in `patches/`, and a tree. Output: the changed files, or a typed error.
"""
