"""Archives that come out the same each time: tars, wheels, docker archives, installation prefixes.

Input: files and folders, or archives that somebody else wrote. Output: archives whose bytes depend on their content
only, and safe lists of what an archive holds.
"""
