"""The lock: the data in toolchains/lock.json, read and written.

Input: the file. Output: frozen objects, one a target, each with its digest. How they come about is in resolve/.
"""
