"""What wheels take to other machines runs on the oldest Python that they promise, as vermin reads the sources."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import vermin

BACKENDS = Path(__file__).resolve().parents[2] / "backends"


def needed(source: str) -> tuple[int, int]:
    """Return the oldest Python 3 that has the syntax and the modules of a source."""
    major, minor = vermin.visit(source, config=vermin.Config()).minimum_versions()[1]
    return major, minor


# What `./foundry wheel spirv` builds.
@pytest.mark.slow
@pytest.mark.parametrize("name", ["core", "spirv"])
def test_sources_need_no_newer_python_than_the_package_requires(name: str) -> None:
    project = tomllib.loads((BACKENDS / name / "pyproject.toml").read_text())["project"]
    found = re.fullmatch(r">=(\d+)\.(\d+)", project["requires-python"])
    assert found is not None
    oldest = int(found[1]), int(found[2])
    sources = {path: needed(path.read_text()) for path in (BACKENDS / name / "src").rglob("*.py")}
    assert sources and not {str(path): version for path, version in sources.items() if version > oldest}


@pytest.mark.parametrize("newer", ["from enum import StrEnum", "import tomllib", "from typing import Self"])
def test_module_of_python_3_11_is_seen(newer: str) -> None:
    assert needed(newer) == (3, 11)
