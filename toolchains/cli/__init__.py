"""The command line: what makes a function a verb, and the verbs that are more than a call.

Input: words of a command line. Output: what a user reads, and the exit status.
"""
