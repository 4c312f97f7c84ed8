"""Provide what every other package uses: paths, child processes, the terminal, option values, errors.

Input: the environment and the machine. Output: paths, child processes, temporary folders, the terminal, values of
options, errors. Imports no other package.
"""
