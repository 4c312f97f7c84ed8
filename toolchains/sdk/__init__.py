"""Use a vendor SDK that the user supplies instead of one of our native parts.

Input: a path, or the variables that the vendor documents. Output: the SDK as a part of an image, after a check for
files that are missing or would not run in the image.
"""
