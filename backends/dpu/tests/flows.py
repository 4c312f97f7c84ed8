"""The folder that a user of TritonPIM works in, as in a container, and Triton scripts to pack there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Dtype: TypeAlias = "npt.DTypeLike"

# The folder in the repository, and in an image.
_FOLDERS = (Path(__file__).parents[1] / "tritonpim", Path("/mnt/host_cwd"))
HOST_CWD, SDK = "/mnt/host_cwd", "/upmem-sdk-2023.1.0"


class Folder:
    """A copy of the folder, and a shell in which it is at /mnt/host_cwd, as in the documented commands."""

    def __init__(self, place: Path) -> None:
        source = next(folder for folder in _FOLDERS if (folder / "dpu_min_test.py").is_file())
        self.path = place / "cwd"
        generated = shutil.ignore_patterns("bin", "artifacts", "triton_*", "upmem_llvm")
        shutil.copytree(source, self.path, symlinks=True, ignore=generated)
        # Outside the image, the SDK has no link of the documented name. UPMEM_HOME says where it is.
        self._sdk = SDK if Path(SDK).exists() else os.environ["UPMEM_HOME"]

    def output(self, command: str, status: int = 0, env: Mapping[str, str] | None = None) -> str:
        """Return what a command line prints. It must end with this status."""
        line = command.replace(HOST_CWD, str(self.path)).replace(SDK, self._sdk)
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=self.path,
            env={**os.environ, "TRITON_PY": sys.executable, **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
        )
        assert done.returncode == status, f"{line}\n{done.stdout}"
        return done.stdout

    def script(self, kernel: Kernel) -> Path:
        """Write a script that accepts --out, as a user would write it."""
        types = "_".join(kernel.signature.values()).replace("*", "p")
        path = self.path / f"{kernel.name}_{types}.py"
        path.write_text(kernel.script())
        return path

    def packed(self, kernel: Kernel) -> Artifact:
        """Pack a kernel with the documented script, only once."""
        script = self.script(kernel)
        artifact = self.path / "artifacts" / script.stem
        if not artifact.is_dir():
            self.output(f"./scripts/host_triton_pack.py --artifact-dir {artifact} --triton-script {script}")
        return Artifact(self, artifact)


@dataclass(frozen=True)
class Artifact:
    """A packed kernel in the folder's artifacts/."""

    folder: Folder
    path: Path

    def output(self, options: str, status: int = 0) -> str:
        """Return what a run of it prints."""
        line = f"./scripts/container_artifact_run.sh {options}"
        return self.folder.output(line, status, env={"ARTIFACT_DIR": str(self.path)})

    def run(self, options: str, ins: Mapping[int, Array], outs: Mapping[int, Dtype]) -> dict[int, Array]:
        """Run it. Return its results by parameter index, as arrays of these types."""
        for index, array in ins.items():
            array.tofile(self.path / f"in{index}")
            options += f" --in {index}={self.path}/in{index}"
        for index in outs:
            options += f" --out {index}={self.path}/out{index}"
        self.output(options)
        return {index: np.fromfile(self.path / f"out{index}", dtype) for index, dtype in outs.items()}


@dataclass(frozen=True)
class Kernel:
    """A Triton kernel: its source, and the types and constants that it is compiled for."""

    source: str
    signature: Mapping[str, str]
    constants: Mapping[str, int]

    @property
    def name(self) -> str:
        return self.source.split("def ")[1].split("(")[0]

    def script(self) -> str:
        """Return the text of a script that writes the kernel's LLVM IR to --out."""
        signature = dict(self.signature) | dict.fromkeys(self.constants, "constexpr")
        return _SCRIPT.format(source=self.source.strip(), name=self.name, signature=signature, constants=self.constants)


_SCRIPT = """\
import argparse
from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
{source}


parser = argparse.ArgumentParser()
parser.add_argument("--out", type=Path, required=True)
triton.knobs.compilation.compile_only = "llir"
source = ASTSource(fn={name}, signature={signature}, constexprs={constants})
parser.parse_args().out.write_text(triton.compile(source, target=GPUTarget("dpu", "v1A", 1)).asm["llir"])
"""


ADD = Kernel(
    """
def add(a, b, c, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(c + i, tl.load(a + i, mask=i < n) + tl.load(b + i, mask=i < n), mask=i < n)
""",
    {"a": "*fp32", "b": "*fp32", "c": "*fp32", "n": "i32"},
    {"BLOCK": 64},
)


def of_type(kernel: Kernel, type: str) -> Kernel:
    """Return the kernel with all its arrays of one type, such as *i16."""
    changed = {name: type if old.startswith("*") else old for name, old in kernel.signature.items()}
    return Kernel(kernel.source, changed, kernel.constants)
