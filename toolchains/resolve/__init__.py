"""Resolve pins into the lock, compare them with the lock, and report what changed.

Input: the configuration and the archives. Output: `lock.json`, and what changed in it.
"""
