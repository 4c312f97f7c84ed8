"""Read and write the lock: the data in toolchains/lock.json.

Input: `lock.json`. Output: frozen objects, one for each target, each with its digest. The package resolve/ creates
them.
"""
