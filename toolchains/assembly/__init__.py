"""Assemble a target's image from its layers and parts.

Input: a `Request`: what a user asks for. Output: a target's image in the engine, named by the digest of its inputs.
"""
