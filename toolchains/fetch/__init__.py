"""Fetch files, and keep them in the store. Only Conan packages arrive in another way (fromsource/remote.py).

Input: artifacts by name, version and sha256. Output: verified files in the store. One module a kind of source.
"""
