"""Use a vendor SDK that the user supplies instead of one of our native parts.

Input: a path, or the vendor's variables. Output: the vendor's SDK as a part of an image, after a check.
"""
