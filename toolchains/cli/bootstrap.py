"""Create .venv from requirements.lock if it is missing or from another lock, then run invoke in it.

The script foundry runs this file with the machine's own Python, before any package is installed: standard library only.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = ROOT / "requirements.lock"
VENV = ROOT / ".venv"
# It is made here and then renamed, since verbs may be running in the one before.
NEW, OLD = ROOT / ".venv.new", ROOT / ".venv.old"
STAMP = "foundry.stamp"
# Processes of pip that install at the same time: one of them waits for the index most of the time.
PROCESSES = 3
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


def required() -> list[str]:
    """Return what .venv must be made for: these requirements, at this path.

    The programs in it start with its path, so an environment that was copied or moved is unusable. A link to the .venv
    of another checkout, as in a worktree, is valid.
    """
    return [hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest(), str(VENV.resolve())]


def read_stamp() -> list[str]:
    """Return what .venv was made for, and the path and the version of its Python; [] if it is incomplete."""
    stamp = VENV / STAMP
    lines = stamp.read_text().splitlines() if stamp.is_file() else []
    return lines if len(lines) == 4 and os.access(VENV / "bin" / "python", os.X_OK) else []


def is_current() -> bool:
    """Return whether .venv is complete, made for what is required, and has a Python that fits."""
    stamp = read_stamp()
    return stamp[:2] == required() and fits(*stamp[2:])


def fits(python: str, version: str) -> bool:
    """Return whether a Python is there, as it was when it made .venv.

    An upgrade may have replaced it. Another python3 that comes first in PATH, as under cron and sudo, is no reason.
    """
    return version_of(python) == version


def version_of(python: str) -> str:
    """Return the version of a Python that can make environments; "" if there is none."""
    if python == str(PYTHON):
        return sys.version.replace("\n", " ")
    say = "import ensurepip, sys, venv; print(sys.version.replace(chr(10), ' '))"
    try:
        return subprocess.run([python, "-I", "-c", say], capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""


def make() -> None:
    """Create .venv; every package must have a hash that the lock names, and no package is built from source.

    It gets the Python of the .venv before if that still fits: verbs that are running import modules for that version.
    """
    print("making .venv from requirements.lock", file=sys.stderr, flush=True)
    _, _, *before = read_stamp() or ["", "", "", ""]
    base = before[0] if before[0] and fits(*before) else str(PYTHON)
    LOG.parent.mkdir(parents=True, exist_ok=True)
    LOG.write_text("")
    run_all([[base, "-m", "venv", "--clear", NEW]])
    # The locked pip goes first: it installs the others in half of the time that Debian's takes.
    entries = [entry for entry in re.split(r"\n(?=\S)", REQUIREMENTS.read_text()) if not entry.startswith("#")]
    pip = [entry for entry in entries if entry.startswith("pip==")]
    others = [entry for entry in entries if entry not in pip]
    for shares in ([pip], [others[start::PROCESSES] for start in range(PROCESSES)]):
        run_all([install(share, NEW / f"requirements{number}.txt") for number, share in enumerate(shares) if share])
    for file in (NEW / "pyvenv.cfg", *(NEW / "bin").iterdir()):
        content = file.read_bytes()
        if not file.is_symlink() and not content.startswith(b"\x7fELF"):
            file.write_bytes(content.replace(NEW.name.encode(), VENV.name.encode()))
    if VENV.is_symlink():
        # The link's target belongs to another checkout, and must not be emptied.
        VENV.unlink()
    (NEW / STAMP).write_text("\n".join([*required(), base, version_of(base)]) + "\n")
    shutil.rmtree(OLD, ignore_errors=True)
    if VENV.exists():
        VENV.rename(OLD)
    NEW.rename(VENV)
    shutil.rmtree(OLD, ignore_errors=True)


def install(entries: list[str], listing: Path) -> list[str | Path]:
    """Write entries of requirements.lock to a file, and return the command that installs them into the new .venv."""
    listing.write_text("\n".join(entries) + "\n")
    return [
        *(NEW / "bin" / "python", "-m", "pip", "install", "--requirement", listing),
        # The lock is complete, and a process knows only its share of it.
        *("--no-deps", "--require-hashes", "--only-binary", ":all:"),
        *("--disable-pip-version-check", "--no-input", "--progress-bar", "off"),
        # Half of the time; Python compiles what it imports.
        "--no-compile",
    ]


def run_all(commands: list[list[str | Path]]) -> None:
    """Run commands at the same time; exit if one fails or Ctrl-C is pressed, after the others have ended."""
    running: list[subprocess.Popen[bytes]] = []
    with LOG.open("a") as log:
        try:
            for argv in commands:
                running.append(subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
            while any(child.poll() is None for child in running) and not any(child.poll() for child in running):
                time.sleep(0.02)
        finally:
            failed = any(child.poll() for child in running)
            for child in running:
                if child.poll() is None:
                    child.terminate()
                child.wait()
    if failed:
        tail = "\n".join(LOG.read_text().splitlines()[-20:])
        print(f"{tail}\nerror: .venv could not be made: {commands[0][2]} failed", file=sys.stderr)
        print(f"  why:  see above; whole output: {LOG}\n  next: the same command again", file=sys.stderr)
        sys.exit(3)


if __name__ == "__main__":
    main(sys.argv[1:])
