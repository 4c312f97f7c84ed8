"""Create .venv from requirements.lock if it is missing or from another lock, then run invoke in it.

The script foundry runs this file with the machine's own Python, before any package is installed: standard library only.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = ROOT / "requirements.lock"
VENV = ROOT / ".venv"
# The stamp is written last: an incomplete .venv has no stamp and is created again.
STAMP = VENV / "foundry.stamp"
LOG = ROOT / "build" / "logs" / "venv.log"
# Not sys.executable: in an activated environment it is the environment's own Python, which may be replaced here.
PYTHON = Path(getattr(sys, "_base_executable", sys.executable)).resolve()


def main(arguments: list[str]) -> None:
    if not is_current():
        build = ROOT / "build"
        build.mkdir(exist_ok=True)
        with (build / "venv.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # Another ./foundry may have created it while this one waited.
            if not is_current():
                make()
    python = VENV / "bin" / "python"
    # -P: a file in the current folder must not be taken for a module.
    invoke = [str(python), "-P", "-m", "invoke", "--search-root", str(ROOT)]
    # At the word "foundry", invoke stops looking for its own options: see toolchains/cli/commandline.py.
    os.execv(python, [*invoke, "foundry", *arguments])


def required_stamp() -> str:
    """Return what .venv must be made from: these requirements, for this Python, at this path.

    The programs in it start with its path, so an environment that was copied or moved is unusable. A link to the .venv
    of another checkout, as in a worktree, is valid.
    """
    return f"{hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()} {PYTHON} {sys.version} {VENV.resolve()}\n"


def is_current() -> bool:
    """Return whether .venv is complete and made from the required inputs.

    Its python is a link to the machine's Python, which an upgrade may have removed.
    """
    return os.access(VENV / "bin" / "python", os.X_OK) and STAMP.is_file() and STAMP.read_text() == required_stamp()


def make() -> None:
    """Create .venv; every package must have a hash that the lock names, and no package is built from source."""
    print("making .venv from requirements.lock", file=sys.stderr, flush=True)
    if VENV.is_symlink():
        # The link's target belongs to another checkout, and must not be emptied.
        VENV.unlink()
    python = VENV / "bin" / "python"
    steps: tuple[list[str | Path], ...] = (
        [PYTHON, "-m", "venv", "--clear", VENV],
        [
            python,
            "-m",
            "pip",
            "install",
            "--disable-pip-version-check",
            "--no-input",
            "--progress-bar",
            "off",
            # Half of the time; Python compiles what it imports.
            "--no-compile",
            "--require-hashes",
            "--only-binary",
            ":all:",
            "--requirement",
            REQUIREMENTS,
        ],
    )
    LOG.parent.mkdir(parents=True, exist_ok=True)
    with LOG.open("w") as log:
        for argv in steps:
            status = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log).returncode
            if status != 0:
                tail = "\n".join(LOG.read_text().splitlines()[-20:])
                print(f"{tail}\nerror: .venv could not be made: {argv[2]} failed", file=sys.stderr)
                print(f"  why:  see above; whole output: {LOG}\n  next: the same command again", file=sys.stderr)
                sys.exit(3)
    STAMP.write_text(required_stamp())


if __name__ == "__main__":
    main(sys.argv[1:])
