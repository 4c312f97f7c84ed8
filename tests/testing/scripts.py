"""What the tests of scripts that run cases share: a Triton to import, the verdict of a process, and its files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from toolchains.testing.verdict import Verdict

RAN = {"kind": "CPU OpenCL device", "device": "a device", "driver": "a driver", "memory": "zero-copy"}
# The minimum of Triton that a worker needs.
TRITON = f"""
from types import SimpleNamespace as n
__version__ = "0.0"
class Ran:
    as_dict = lambda self: {RAN!r}
runtime = n(driver=n(active=n(device_report=Ran)))
"""


def judged(folder: Path, *words: str | Path, **variables: str) -> tuple[Verdict, subprocess.CompletedProcess[str]]:
    """Run Python in a folder that has a Triton. Return the verdict on its records, and the process."""
    env = {**os.environ, **variables}
    done = subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True, timeout=300, env=env)
    verdict = Verdict()
    for line in done.stdout.splitlines():
        verdict.take(line)
    verdict.conclude(f"status {done.returncode}")
    return verdict, done


def junit(folder: Path) -> Element:
    """Return the suite in the results of a run."""
    suite = ElementTree.parse(folder / "junit.xml").getroot().find("testsuite")
    assert suite is not None
    return suite
