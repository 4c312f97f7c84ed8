"""Run a packed folder's example in an image: `python -m foundry_core.packed.replay PROGRAM WORDS...`.

The images have a part of PoCL's library only, so the environment must choose it.
"""

from __future__ import annotations

import os
import sys

from ..runtime import pocl

if __name__ == "__main__":
    pocl.choose_library()
    os.execv(sys.argv[1], sys.argv[1:])
