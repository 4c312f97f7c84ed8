"""The SDK under test and its documented command line."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

SDK = Path(os.environ["VSI_SDK_DIR"])
COMPILER = SDK / "bin" / "zen-compiler"
BRIDGE = SDK / "lib" / "libZenTCBridge.so"
KERNELS = Path(__file__).resolve().parent

CAPS = "GenericPointer,Kernel,Addresses,Vector16,Vector32,Int8,Int16,Int64,Float16,TensorCoreVSI"
EXTS = "SPV_KHR_storage_buffer_storage_class,SPV_VSI_TC_inst"
NO_TC = "--disable-linalg-to-tc-pipeline"
ONE_ENGINE = "--disable-multi-engine-scheduling-pipeline"
ONE_THREAD = "--disable-threads-scheduling-pipeline"
NOTHING_ENABLED = (NO_TC, ONE_ENGINE, ONE_THREAD)


def target(caps: str = CAPS, exts: str = EXTS, module: str = ".*") -> str:
    """--spirv-target-options."""
    return f"--spirv-target-options=caps={caps} exts={exts} module={module}"


def command(kernel: Path, *more: str, threads: int = 1, options: str = "", bridge: Path = BRIDGE) -> list[str]:
    """The documented command line, without the program: outputs go beside the kernel."""
    return [
        "--triton-kernel-compile",
        "--enable-verify-after-passes",
        f"--workgroup-size-options={threads},1,1",
        f"--threads-per-workgroup={threads}",
        options or target(),
        str(kernel),
        "-o",
        str(kernel.with_suffix(".spv")),
        "-out-lib",
        str(commands(kernel)),
        "-tc-bridge",
        str(bridge),
        *more,
    ]


def commands(kernel: Path) -> Path:
    """Where `command` puts the command library."""
    return kernel.with_name(f"{kernel.stem}_cmd_gen.so")


def run(arguments: Sequence[str], program: Path = COMPILER, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run zen-compiler; returns its status, output and errors."""
    env = os.environ | environment
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False, env=env, timeout=300)


def compiled(kernel: Path, *more: str, threads: int = 1, program: Path = COMPILER) -> tuple[bytes, Path]:
    """Compile a kernel; returns its SPIR-V and the path of its command library. Fails if zen-compiler does."""
    done = run(command(kernel, *more, threads=threads), program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return kernel.with_suffix(".spv").read_bytes(), commands(kernel)


def kernel(name: str, folder: Path) -> Path:
    """A copy of one of the kernels beside this file."""
    return Path(shutil.copy(KERNELS / f"{name}.ttir", folder))


def left(folder: Path) -> list[str]:
    """The names of the files in a folder."""
    return sorted(path.name for path in folder.iterdir())
