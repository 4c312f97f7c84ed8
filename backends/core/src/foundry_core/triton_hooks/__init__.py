"""Where Triton is extended: each module replaces or wraps one part of it, and says why.

Input: Triton. Output: Triton, with what we replace or wrap in it; `registration.py` lists each with releases and
reason.
"""
