"""Let others check what was built here: statements about artifacts, signatures, and the verb verify.

Input: an artifact, the lock, what the store recorded, keys. Output: signed statements; the first thing in an artifact
that is not accounted for.
"""
