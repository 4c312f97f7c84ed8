"""Read the command line: what makes a function a verb, and the larger verbs.

Input: the words of a command line. Output: what a user reads, and the exit status; one module for each larger verb.
"""
