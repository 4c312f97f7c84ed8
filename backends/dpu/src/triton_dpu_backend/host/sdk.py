"""Find the UPMEM SDK or its emulator; build the shim over its dpu.h once and keep it.

`dpu-pkg-config` in UPMEM_HOME/bin or on PATH finds the SDK. The shim (runtime.c) is compiled with `cc` and kept in
Triton's cache folder, by the digest of its source, the flags and the library, so that another SDK gets another shim.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from foundry_core.once import once
from foundry_core.prototypes import members, prototypes

from .errors import SdkError

PKG_CONFIG = "dpu-pkg-config"
_HOME = "UPMEM_HOME"
_PREFIX = "triton_dpu_"
_SOURCE = Path(str(files(__package__).joinpath("runtime.c")))
_FUNCTIONS = prototypes(_SOURCE.read_text(encoding="utf-8"), _PREFIX)
# What triton_dpu_lines calls for each line, with its place, its instructions and its DMA cycles.
TAKE_LINE = _FUNCTIONS["lines"].arguments[1]
# The numbers that triton_dpu_stats writes for each DPU.
STATS = [name for name, _ in members(_SOURCE.read_text(encoding="utf-8"), "stats")]


@dataclass(frozen=True)
class Sdk:
    """Where an SDK is, and its flags for the C compiler and linker."""

    pkg_config: Path
    version: str
    compile: tuple[str, ...]
    link: tuple[str, ...]

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders of its libraries."""
        return tuple(flag.removeprefix("-L") for flag in self.link if flag.startswith("-L"))


def locate() -> Path | None:
    """Return the path of dpu-pkg-config; None if no SDK is installed."""
    home = os.environ.get(_HOME)
    program = shutil.which(PKG_CONFIG, path=str(Path(home, "bin")) if home else None)
    return Path(program) if program else None


def missing_reason() -> str:
    """Return why `locate` finds nothing, and what to do."""
    home = os.environ.get(_HOME)
    where = f"not in {_HOME}={home}/bin" if home else f"not on PATH, and {_HOME} is not set"
    return f"{PKG_CONFIG} is {where}: install the UPMEM SDK or its emulator, or work in the dpu image"


@once
def find() -> Sdk:
    """Return the SDK of this process.

    Raises:
        SdkError: there is none, or its dpu-pkg-config fails.
    """
    path = locate()
    if path is None:
        raise SdkError("no DPU can be used", why=missing_reason())

    def ask(*arguments: str) -> str:
        done = subprocess.run([path, *arguments, "dpu"], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SdkError(f"{path} {' '.join(arguments)} dpu failed", why=(done.stderr or done.stdout).strip())
        return done.stdout.strip()

    try:
        version = ask("--modversion")
    except SdkError:
        version = "of unknown version"
    return Sdk(path, version, tuple(shlex.split(ask("--cflags"))), tuple(shlex.split(ask("--libs"))))


@once
def shim() -> ctypes.CDLL:
    """Return the compiled shim.

    Raises:
        SdkError: there is no SDK or no C compiler, or the shim does not compile against this SDK.
    """
    sdk = find()
    command = ["-O2", "-std=c11", "-Wall", "-Wextra", "-shared", "-fPIC", str(_SOURCE), *sdk.compile, *sdk.link]
    command += [f"-Wl,-rpath,{libraries}" for libraries in sdk.folders]
    # The same folder as Triton's. triton is not imported, so that the shim works without it.
    folder = Path(os.environ.get("TRITON_CACHE_DIR") or Path.home() / ".triton" / "cache")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"dpu-shim-{_digest(command, sdk)}.so"
    if not file.is_file():
        _compile(command, file)
    library = ctypes.CDLL(str(file))
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(library, f"{_PREFIX}{name}")
        function.restype, function.argtypes = result, arguments
    return library


def _digest(command: Sequence[str], sdk: Sdk) -> str:
    digest = hashlib.sha256(_SOURCE.read_bytes())
    digest.update(shlex.join(command).encode())
    for folder in sdk.folders:
        library = Path(folder, "libdpu.so")
        if library.is_file():
            status = library.resolve().stat()
            digest.update(f"{library.resolve()}\0{status.st_size}\0{status.st_mtime_ns}".encode())
    return digest.hexdigest()[:24]


def _compile(command: Sequence[str], target: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        raise SdkError("the shim over dpu.h cannot be built", why="there is no cc on PATH", next="install a C compiler")
    with TemporaryDirectory(dir=target.parent) as work:
        new = Path(work, target.name)
        done = subprocess.run([compiler, *command, "-o", str(new)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SdkError("the shim over dpu.h does not compile", why=done.stderr.strip()[-4000:])
        # Written completely or not at all: another process may build the same shim.
        new.replace(target)
