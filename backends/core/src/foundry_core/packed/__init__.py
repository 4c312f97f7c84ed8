"""Kernels that leave: a script's launches as a folder with compiled kernels, a C library and a Python loader.

`python -m foundry_core.packed SCRIPT:KERNEL DIR` runs a script, records its launches (recording.py), compiles each as
it was launched and in more general forms (forms.py), and writes the folder (folder.py) with its tables in C
(tables.py). What a kind of device adds is its road (roads.py, road.h). docs/packed.md is for users of the folder.
"""
