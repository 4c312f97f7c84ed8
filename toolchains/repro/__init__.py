"""Rebuild what an image consists of and compare it, byte for byte, with another build or with published digests.

Input: a request; or two files, folders or images. Output: whether two builds give the same bytes, and each difference;
the published IDs.
"""
