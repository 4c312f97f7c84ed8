"""Fetch files, and keep them in the store. No other package fetches files.

Input: artifacts by name, version and sha256. Output: verified files in the store. One module a kind of source.
"""
