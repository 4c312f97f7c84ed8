"""A compiled kernel as a folder that runs without Triton and Python: `dump_standalone=True` with VSI_DUMP_DIR.

folder.py       writes the folder
source.py       makes the C++ launcher in it, of launcher.cpp.in
parameters.py   what a parameter of a Triton type is in a .npy file and in C++
"""

from .folder import dump

__all__ = ["dump"]
