"""Run several scripts in one container of a target's image. The verb `run` starts each in its own process."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from toolchains.system import paths

# Reads the command lines, and writes the status and both streams of each. What the scripts write comes back, too.
_ALL = """
import json, subprocess, sys
done = {}
for name, words in json.load(open("scripts.json")).items():
    child = subprocess.run([sys.executable, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    done[name] = child.returncode, child.stdout, child.stderr
json.dump(done, open("done.json", "w"))
"""


class Printed:
    """What scripts printed in the image of a target, and the folder with what they wrote."""

    def __init__(self, folder: Path, target: str, scripts: Sequence[Path], words: Mapping[str, Sequence[str]]) -> None:
        """Run the scripts; `words` are arguments, by the scripts' names without suffix."""
        self.folder = folder
        for script in scripts:
            shutil.copy(script, folder)
        lines = {script.stem: [script.name, *words.get(script.stem, ())] for script in scripts}
        (folder / "scripts.json").write_text(json.dumps(lines))
        (folder / "all.py").write_text(_ALL)
        invoke = [sys.executable, "-P", "-m", "invoke", "--search-root", str(paths.ROOT)]
        done = subprocess.run(
            [*invoke, "run", target, folder / "all.py"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=3000,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        self._done: Mapping[str, tuple[int, str, str]] = json.loads((folder / "done.json").read_text())

    def of(self, name: str) -> str:
        """Return what a script printed; it must have succeeded."""
        status, stdout, stderr = self._done[name]
        assert status == 0, stdout + stderr
        return stdout
