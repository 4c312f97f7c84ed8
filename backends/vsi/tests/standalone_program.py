"""Use a dumped kernel as its user does: build a program by a documented line, pass arguments in files, no Python."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from triton_vsi_backend.standalone import dump

# As in VeriSilicon's README and in the generated source.
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
        folder: the dumped folder.
        work: where inputs/ and outputs/ are; the launcher's current folder.
    """

    folder: Path
    work: Path

    @classmethod
    def dump(cls, folder: Path, work: Path, *, library: bytes, threads: int = 1, **more: Any) -> Program:
        """Dump a kernel of the folder's name, and build its launcher; more arguments are those of `dump`."""
        facts: dict[str, Any] = {"irs": {}, "cmd_gen": library, "num_warps": threads // 32, "threads": threads}
        dump(folder, name=folder.name, **facts | more)
        program = cls(folder, work)
        assert program.build("libstdc++") == ""
        return program

    @property
    def kernel(self) -> str:
        return self.folder.name

    @property
    def path(self) -> Path:
        return self.folder / f"{self.kernel}_standalone"

    def build(self, line: str) -> str:
        """Run one of LINES in the folder. Return the compiler's output, which should be empty."""
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
        """Write inputs/, and outputs/ with invalid files, as if from an earlier run."""
        for name in ("inputs", "outputs"):
            shutil.rmtree(self.work / name, ignore_errors=True)
            (self.work / name).mkdir(parents=True)
        for index, argument in enumerate(arguments):
            np.save(self.work / f"inputs/arg_{index}.npy", argument)
            (self.work / f"outputs/arg_{index}.npy").write_bytes(b"old")

    def run(self, *flags: str) -> subprocess.CompletedProcess[str]:
        """Run the launcher without Python: PATH has only the linker, which PoCL needs to build kernels."""
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
        """Run the launcher on these arguments. It must succeed, and print only what it did."""
        self.take(arguments)
        done = self.run(*flags)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        assert done.stdout.startswith(f"{self.kernel}: grid ")

    def refusal(self, *flags: str, status: int = 1) -> str:
        """Run the launcher on inputs/. It must refuse, and leave outputs/ unchanged. Return its error message."""
        before = {path.name: path.read_bytes() for path in (self.work / "outputs").iterdir()}
        done = self.run(*flags)
        assert (done.returncode, done.stdout) == (status, ""), done.stdout + done.stderr
        assert done.stderr.startswith(f"{self.kernel}_standalone: ")
        assert {path.name: path.read_bytes() for path in (self.work / "outputs").iterdir()} == before
        return done.stderr
