"""Provide what every other package uses: paths, child processes, the terminal, option values, errors.

Input: the environment and the machine. Output: plain functions and the classes of errors.py. Imports no other package.
"""
