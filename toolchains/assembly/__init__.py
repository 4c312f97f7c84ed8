"""Assemble a target's image from its layers and parts.

Input: what a user asks for. Output: an image in the engine, named by the digest of its inputs.
"""
