"""Build the parts of an image other than packages: the patched Triton wheel, our plugins' wheels, native parts.

Input: locked files, patches and the sources in backends/ and toolchains/recipes. Output: parts in the store, each named
by the digest of all its inputs.
"""
