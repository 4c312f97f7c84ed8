"""Rebuild what an image consists of and compare it, byte for byte, with another build or with published digests.

Input: a request; or two files, folders or images. Output: their differences, each with its place and what differs.
"""
