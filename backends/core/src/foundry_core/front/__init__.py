"""Rewrites TTIR to structured form, independently of the target.

Input: TTIR. Output: structured form: accesses as bases, strides, bounds and masks.
"""
