"""Compare what was built, byte for byte, with another build or with published digests.

Input: two files, folders or images; or an image and the published IDs. Output: each difference; the published IDs.
"""
