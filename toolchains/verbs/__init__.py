"""Do what a verb promises: one module for each verb, which has its name; tasks.py has the verbs' options and manual.

A function that tasks.py calls takes the options that the manual describes.

Input: the values that tasks.py read from the words of a command line. Output: what a user reads, and the exit status.
"""
