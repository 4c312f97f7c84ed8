"""Run checks in a target's image and on this machine, and judge what they report.

Input: a target's image; a command that runs in it. Output: a verdict, and results in `build/results`.
"""
