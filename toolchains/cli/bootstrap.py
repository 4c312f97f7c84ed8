"""Create .venv from requirements.lock if it is missing or from another lock, then run invoke in it.

The script foundry runs this file with the machine's own Python, before any package is installed: standard library only.
The verb `docs` makes an environment of its own in the same way.
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
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
STAMP = "foundry.stamp"
# Processes of pip that install at the same time: one of them waits for the index most of the time.
PROCESSES = 3
# Not sys.executable: in an activated environment it is the environment's own Python, which may be replaced here.
PYTHON = Path(getattr(sys, "_base_executable", sys.executable)).resolve()


@dataclass(frozen=True)
class Environment:
    """A virtual environment and the lock that it is made from.

    Attributes:
        folder: the environment; it may be a link to that of another checkout, as in a worktree.
        requirements: the lock, with a hash for each package.
    """

    folder: Path
    requirements: Path

    @property
    def python(self) -> Path:
        """Its Python."""
        return self.folder / "bin" / "python"

    @property
    def log(self) -> Path:
        """Where the output of what makes it is."""
        return BUILD / "logs" / f"{self.folder.name.lstrip('.')}.log"

    def ensure(self) -> None:
        """Make it if it is missing, incomplete or from another lock; one process at a time."""
        if self.is_current():
            return
        BUILD.mkdir(exist_ok=True)
        with (BUILD / "venv.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # Another ./foundry may have created it while this one waited.
            if not self.is_current():
                self.make()

    def required(self) -> list[str]:
        """Return what it must be made for: these requirements, at this path.

        The programs in it start with its path, so an environment that was copied or moved is unusable.
        """
        return [hashlib.sha256(self.requirements.read_bytes()).hexdigest(), str(self.folder.resolve())]

    def read_stamp(self) -> list[str]:
        """Return what it was made for, and the path and the version of its Python; [] if it is incomplete."""
        stamp = self.folder / STAMP
        lines = stamp.read_text().splitlines() if stamp.is_file() else []
        return lines if len(lines) == 4 and os.access(self.python, os.X_OK) else []

    def is_current(self) -> bool:
        """Return whether it is complete, made for what is required, and has a Python that fits."""
        stamp = self.read_stamp()
        return stamp[:2] == self.required() and fits(*stamp[2:])

    def make(self) -> None:
        """Create it; every package must have a hash that the lock names, and no package is built from source.

        It is made in another folder and then renamed, since verbs may be running in the one before. It gets the Python
        of the one before if that still fits: verbs that are running import modules for that version.
        """
        name = self.folder.name
        new, old = self.folder.with_name(f"{name}.new"), self.folder.with_name(f"{name}.old")
        print(f"making {name} from {self.requirements.relative_to(ROOT)}", file=sys.stderr, flush=True)
        _, _, *before = self.read_stamp() or ["", "", "", ""]
        base = before[0] if before[0] and fits(*before) else str(PYTHON)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.log.write_text("")
        self.run_all([[base, "-m", "venv", "--clear", new]])
        # The locked pip goes first: it installs the others in half of the time that Debian's takes.
        entries = [entry for entry in re.split(r"\n(?=\S)", self.requirements.read_text()) if not entry.startswith("#")]
        pip = [entry for entry in entries if entry.startswith("pip==")]
        others = [entry for entry in entries if entry not in pip]
        for shares in ([pip], [others[start::PROCESSES] for start in range(PROCESSES)]):
            self.run_all([install(share, new, number) for number, share in enumerate(shares) if share])
        for file in (new / "pyvenv.cfg", *(new / "bin").iterdir()):
            content = file.read_bytes()
            if not file.is_symlink() and not content.startswith(b"\x7fELF"):
                file.write_bytes(content.replace(new.name.encode(), name.encode()))
        if self.folder.is_symlink():
            # The link's target belongs to another checkout, and must not be emptied.
            self.folder.unlink()
        (new / STAMP).write_text("\n".join([*self.required(), base, version_of(base)]) + "\n")
        shutil.rmtree(old, ignore_errors=True)
        if self.folder.exists():
            self.folder.rename(old)
        new.rename(self.folder)
        shutil.rmtree(old, ignore_errors=True)

    def run_all(self, commands: list[list[str | Path]]) -> None:
        """Run commands at the same time; exit if one fails or Ctrl-C is pressed, after the others have ended."""
        running: list[subprocess.Popen[bytes]] = []
        with self.log.open("a") as log:
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
            # pip warns of each attempt to reach an index.
            lines = [line for line in self.log.read_text().splitlines() if not line.startswith("WARNING: ")]
            print(*lines[-20:], sep="\n", file=sys.stderr)
            print(f"error: {self.folder.name} could not be made: {commands[0][2]} failed", file=sys.stderr)
            print(f"  why:  see above; whole output: {self.log}", file=sys.stderr)
            print(
                "  next: check network, proxy (https_proxy) and `pip config list`, then the same command",
                file=sys.stderr,
            )
            sys.exit(3)


def install(entries: list[str], folder: Path, number: int) -> list[str | Path]:
    """Write entries of a lock to a file, and return the command that installs them into an environment."""
    listing = folder / f"requirements{number}.txt"
    listing.write_text("\n".join(entries) + "\n")
    return [
        *(folder / "bin" / "python", "-m", "pip", "install", "--requirement", listing),
        # The lock is complete, and a process knows only its share of it.
        *("--no-deps", "--require-hashes", "--only-binary", ":all:"),
        *("--disable-pip-version-check", "--no-input", "--progress-bar", "off"),
        # Half of the time; Python compiles what it imports.
        "--no-compile",
    ]


def fits(python: str, version: str) -> bool:
    """Return whether a Python is there, as it was when it made an environment.

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


def main(arguments: list[str]) -> None:
    """Run a verb in .venv."""
    environment = Environment(ROOT / ".venv", ROOT / "requirements.lock")
    environment.ensure()
    # -P: a file in the current folder must not be taken for a module.
    invoke = [str(environment.python), "-P", "-m", "invoke", "--search-root", str(ROOT)]
    # At the word "foundry", invoke stops looking for its own options: see toolchains/cli/commandline.py.
    os.execv(environment.python, [*invoke, "foundry", *arguments])


if __name__ == "__main__":
    main(sys.argv[1:])
