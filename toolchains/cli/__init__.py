"""Read the command line: what makes a function a verb, and the larger verbs.

Input: words of a command line. Output: text for the user, and the exit status.
"""
