"""Write a compiled kernel as a folder that runs without Triton and Python: `dump_standalone=True` with VSI_DUMP_DIR.

folder.py       writes the folder
source.py       generates the C++ launcher in it from launcher.cpp.in
parameters.py   describes a parameter of a Triton type in a .npy file and in C++
"""

from .folder import dump

__all__ = ["dump"]
