"""Makes the modules beside this file importable, and zen_compiler, out of the zen-compiler that is tested."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from sdk import COMPILER

sys.path.insert(1, str(COMPILER))
