"""Make .venv from requirements.lock if it is missing or from another lock, then run invoke in it.

The script foundry runs this file with the machine's own Python, before there is anything else: standard library only.
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
# Written last, so a .venv that was interrupted half-way has none and is made again.
STAMP = VENV / "foundry.stamp"
LOG = ROOT / "build" / "logs" / "venv.log"
# Not sys.executable: in an activated environment that is the environment's own, maybe the one that is to be replaced.
PYTHON = Path(getattr(sys, "_base_executable", sys.executable)).resolve()


def main(arguments: list[str]) -> None:
    if not is_current():
        build = ROOT / "build"
        build.mkdir(exist_ok=True)
        with (build / "venv.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # Another ./foundry may have made it while this one waited.
            if not is_current():
                make()
    python = VENV / "bin" / "python"
    # -P: a file in the current folder must not be taken for a module.
    invoke = [str(python), "-P", "-m", "invoke", "--search-root", str(ROOT)]
    # "foundry" has invoke look for none of its own options in what follows: toolchains/cli/commandline.py.
    os.execv(python, [*invoke, "foundry", *arguments])


def required_stamp() -> str:
    """What .venv has to be made from: these requirements, for this Python, at this place.

    The programs in it begin with its path, so those of a checkout that was copied or moved are of no use. A link to the
    .venv of another checkout, such as a worktree has, is as good as that.
    """
    return f"{hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()} {PYTHON} {sys.version} {VENV.resolve()}\n"


def is_current() -> bool:
    """Whether .venv is whole and made from what it should be.

    Its python is a link to one of the machine's, which an upgrade may have removed.
    """
    return os.access(VENV / "bin" / "python", os.X_OK) and STAMP.is_file() and STAMP.read_text() == required_stamp()


def make() -> None:
    """Make .venv; every package must have a hash that the lock names, and none is built from source."""
    print("making .venv from requirements.lock", file=sys.stderr, flush=True)
    if VENV.is_symlink():
        # What it leads to belongs to somebody else, and would be emptied.
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
