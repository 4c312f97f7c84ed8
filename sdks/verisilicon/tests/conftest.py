"""Make the modules beside this file importable, and zen_compiler, out of the zen-compiler that is tested."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from sdk import BRIDGE, COMPILER, kernel

sys.path.insert(1, str(COMPILER))

from zen_compiler.bridge import Bridge


@pytest.fixture(scope="session")
def bridge() -> Bridge:
    return Bridge(BRIDGE)


@pytest.fixture
def add(tmp_path: Path) -> Path:
    return kernel("add", tmp_path)


@pytest.fixture
def dot(tmp_path: Path) -> Path:
    return kernel("dot", tmp_path)
