"""Read the command line: what makes a function a verb, its options and its help.

Input: the words of a command line. Output: values for a verb, or help, or an error with an exit status.
"""
