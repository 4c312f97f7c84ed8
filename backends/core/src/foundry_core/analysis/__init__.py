"""Walks over a kernel that say what its values are, whatever they are then used for.

Input: a kernel of ir. Output: facts about its values and blocks.
"""
