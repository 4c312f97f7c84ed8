"""Prove and check: e2e, bench and the whole test run.

Input: a target's image. Output: results in build/results and an exit status.
"""
