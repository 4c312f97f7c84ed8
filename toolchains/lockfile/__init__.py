"""Read and write the lock: the data in toolchains/lock.json.

Input: the file. Output: frozen objects, one per target, each with its digest. The package resolve/ creates them.
"""
