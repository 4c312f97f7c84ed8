"""Check that the tests of values see faults: each of planted.toml is planted in a copy, and its tests must fail."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

_CORE = Path(__file__).parents[2]
# It has the table of functions.
_LANGUAGE = _CORE.parents[1] / "conformance" / "language"
FAULTS = {
    f"{area}-{name}": fault
    for area, faults in tomllib.loads(Path(__file__).with_name("planted.toml").read_text()).items()
    for name, fault in faults.items()
}


def run_with(source: Path, tests: list[str]) -> subprocess.CompletedProcess[str]:
    """Run tests of this folder, of those that are quick, with another copy of foundry_core."""
    file, *chosen = tests
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-n0",
        "-p",
        "no:cacheprovider",
        "-o",
        f"pythonpath={source} {_LANGUAGE}",
    ]
    marks = ["-m", "not slow", *chosen, f"--rootdir={_CORE.parents[1]}", str(_CORE / file)]
    return subprocess.run([*command, *marks], cwd=_CORE.parents[1], capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_found(name: str, tmp_path: Path) -> None:
    fault = FAULTS[name]
    shutil.copytree(_CORE / "src", tmp_path / "src")
    file = tmp_path / "src" / "foundry_core" / fault["file"]
    text = file.read_text()
    assert text.count(fault["before"]) == 1
    file.write_text(text.replace(fault["before"], fault["after"]))
    done = run_with(tmp_path / "src", fault["tests"])
    # 1: tests failed. Anything else, such as 2 for a module that cannot be imported, is no fault that a test saw.
    assert done.returncode == 1, done.stdout[-2000:]
