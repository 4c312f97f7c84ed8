"""Read patch series, apply them strictly, compare them with a tree, and write them again.

Input: the folders in patches/, and trees, wheels or packages. Output: the changed files.
"""
