"""From what is wanted to the lock: resolve pins, compare them with the lock, say what changed.

Input: the configuration and the archives. Output: toolchains/lock.json.
"""
