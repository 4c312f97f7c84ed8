"""Lets tests import what lies beside them where pytest runs with --import-mode=importlib, as it does in the images."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
