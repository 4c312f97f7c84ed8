"""Fetch files and keep them in the store. Only Conan packages arrive in another way (fromsource/remote.py).

Input: artifacts by name, version and sha256. Output: verified files in the store; only `fromsource/remote.py` also
fetches, by Conan. There is one module per client: apt, pip, git.
"""
