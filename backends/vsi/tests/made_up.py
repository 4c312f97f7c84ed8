"""Made-up parts for tests: a zen-compiler that only records its calls, an SDK around it, C libraries."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

# Records its arguments and its input, then does what the file behaviour.py next to it says.
_RECORDING = """#!{python}
import json, os, sys
from pathlib import Path
here = Path(__file__).parent
arguments = sys.argv[1:]
source, spirv, library = (Path(arguments[arguments.index(flag) + step]) for flag, step in
    (("-o", -1), ("-o", 1), ("-out-lib", 1)))
(here / "call.json").write_text(json.dumps([arguments, source.read_text(), os.listdir(source.parent)]))
exec((here / "behaviour.py").read_text())
"""
_SUCCESS = "spirv.write_bytes(bytes.fromhex('03022307') + b'kernel'); library.write_bytes(b'library')"


@dataclass(frozen=True)
class FakeSdk:
    """A zen-compiler and a bridge, which the environment names."""

    compiler: Path
    bridge: Path

    @classmethod
    def make(cls, folder: Path) -> FakeSdk:
        """Write the two files. The compiler succeeds."""
        folder.mkdir()
        sdk = cls(folder / "zen-compiler", folder / "libZenTCBridge.so")
        sdk.compiler.write_text(_RECORDING.format(python=sys.executable))
        sdk.compiler.chmod(0o755)
        sdk.bridge.write_bytes(b"a bridge")
        sdk.behave(_SUCCESS)
        return sdk

    def behave(self, code: str) -> None:
        """Make the compiler run Python code, with the paths `source`, `spirv` and `library`."""
        self.compiler.with_name("behaviour.py").write_text(code)

    @property
    def call(self) -> tuple[list[str], str, list[str]]:
        """Return the arguments, the text of the input file, and the contents of its folder, of the last call."""
        arguments, source, listing = json.loads(self.compiler.with_name("call.json").read_text())
        return arguments, source, listing


def shared_library(library: Path, text: str) -> Path:
    """Compile C code into a shared library, by way of a file next to it."""
    compiler = next(filter(shutil.which, [os.environ.get("CC") or "clang", "clang-18", "gcc"]))
    source = library.with_suffix(".c")
    source.write_text(text)
    subprocess.run([compiler, "-shared", "-fPIC", "-Wall", "-Werror", "-o", library, source], check=True)
    return library
