"""Build the parts of an image other than packages: the patched Triton wheel, our plugins' wheels, native parts.

Input: locked files, patches, `backends/`, `sdks/`, `recipes/`. Output: the patched Triton wheel, the plugins' wheels,
native parts, linked programs.
"""
