"""Let others check what was built here: statements about artifacts, signatures, and the verb verify.

Input: an artifact, the lock, what the store recorded, keys. Output: a signed statement, or the first thing that is not
accounted for.
"""
