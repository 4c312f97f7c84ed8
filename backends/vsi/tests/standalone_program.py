"""A dumped kernel as its user has it: a program built by a documented line, arguments in files, and no Python."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

# As VeriSilicon's README and the generated source have them.
LINES = {
    "libstdc++": "clang++ -std=c++17 {kernel}_standalone.cpp -o {kernel}_standalone -I include -L lib -lOpenCL",
    "libc++": "clang++ -Og -glldb -std=c++17 -stdlib=libc++ -fuse-ld=lld {kernel}_standalone.cpp -o {kernel}_standalone"
    " -I ${{VSI_SDK_INCLUDE_DIR}} -L ${{VSI_SDK_LIB_DIR}} -lOpenCL",
}


def sdk() -> Path:
    return Path(os.environ["VSI_SDK_DIR"])


@dataclass(frozen=True)
class Program:
    """A kernel's folder, with the launcher built in it.

    Args:
        folder: what was dumped.
        work: where inputs/ and outputs/ are; the launcher's current folder.
    """

    folder: Path
    work: Path

    @property
    def kernel(self) -> str:
        return self.folder.name

    @property
    def path(self) -> Path:
        return self.folder / f"{self.kernel}_standalone"

    def build(self, line: str) -> str:
        """Run one of LINES in the folder; returns what the compiler said, which should be nothing."""
        for name in ("include", "lib"):
            (self.folder / name).unlink(missing_ok=True)
            (self.folder / name).symlink_to(sdk() / name)
        self.path.unlink(missing_ok=True)
        variables = {"VSI_SDK_INCLUDE_DIR": str(sdk() / "include"), "VSI_SDK_LIB_DIR": str(sdk() / "lib")}
        done = subprocess.run(
            LINES[line].format(kernel=self.kernel),
            shell=True,
            cwd=self.folder,
            env=os.environ | variables,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def take(self, arguments: Sequence[Any]) -> None:
        """Write inputs/, and outputs of an earlier run that are wrong in all respects."""
        for name in ("inputs", "outputs"):
            shutil.rmtree(self.work / name, ignore_errors=True)
            (self.work / name).mkdir(parents=True)
        for index, argument in enumerate(arguments):
            np.save(self.work / f"inputs/arg_{index}.npy", argument)
            (self.work / f"outputs/arg_{index}.npy").write_bytes(b"old")

    def run(self, *flags: str) -> subprocess.CompletedProcess[str]:
        """Run the launcher where no Python is: on PATH is the linker alone, which PoCL makes its kernels with."""
        programs = self.work / "bin"
        programs.mkdir(parents=True, exist_ok=True)
        linker = shutil.which("ld")
        assert linker is not None
        if not (programs / "ld").is_symlink():
            (programs / "ld").symlink_to(linker)
        environment = {"PATH": str(programs), "LD_LIBRARY_PATH": str(sdk() / "lib"), "HOME": str(self.work)}
        return subprocess.run(
            [self.path, *flags], cwd=self.work, env=environment, capture_output=True, text=True, check=False
        )

    def output(self, index: int) -> Any:
        return np.load(self.work / f"outputs/arg_{index}.npy")

    def launch(self, arguments: Sequence[Any], *flags: str) -> None:
        """Run the launcher on these arguments; it must succeed, and say nothing but what it did."""
        self.take(arguments)
        done = self.run(*flags)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        assert done.stdout.startswith(f"{self.kernel}: grid ")

    def refusal(self, *flags: str, status: int = 1) -> str:
        """Run the launcher on what inputs/ has; it must refuse, and leave outputs/ alone. Returns what it says."""
        before = {path.name: path.read_bytes() for path in (self.work / "outputs").iterdir()}
        done = self.run(*flags)
        assert (done.returncode, done.stdout) == (status, ""), done.stdout + done.stderr
        assert done.stderr.startswith(f"{self.kernel}_standalone: ")
        assert {path.name: path.read_bytes() for path in (self.work / "outputs").iterdir()} == before
        return done.stderr
