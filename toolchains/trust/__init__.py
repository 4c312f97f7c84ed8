"""Let others check what was built here: statements about artifacts, signatures, and the files of an archived image.

Input: an artifact, the lock, what the store recorded, keys. Output: signed statements; what in an archived image is not
accounted for.
"""
