"""Shows what bounds each kernel of a script: `python -m foundry_core.profile script.py`.

Input: a script that launches kernels. Output: what bounds each kernel, against roofs that are measured.
"""
