"""How bytes arrive, and where they are kept. The only code of the project that uses the network.

Input: artifacts by name, version and sha256. Output: verified files in the store. One module a kind of source.
"""
