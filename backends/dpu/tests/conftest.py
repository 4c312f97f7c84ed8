"""Let tests import their neighbours if pytest runs with --import-mode=importlib, as in the images."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
