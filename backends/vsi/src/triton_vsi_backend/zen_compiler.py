"""Run zen-compiler as a function from TTIR to a kernel and the library that generates its command buffers."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from . import pieces
from .errors import ZenCompilerError

CAPABILITIES = (
    "GenericPointer",
    "Kernel",
    "Addresses",
    "Vector16",
    "Vector32",
    "Int8",
    "Int16",
    "Int64",
    "Float16",
    "TensorCoreVSI",
)
EXTENSIONS = ("SPV_KHR_storage_buffer_storage_class", "SPV_VSI_TC_inst")

_MAGIC = (b"\x03\x02\x23\x07", b"\x07\x23\x02\x03")
# How many characters of zen-compiler's output an error shows. The first messages name the cause.
_SHOWN = 6000


@dataclass(frozen=True)
class Switches:
    """Which of zen-compiler's pipelines run, and whether the kernel checks its accesses (an option of ours)."""

    tc: bool = False
    multi_engines: bool = False
    multi_threads: bool = False
    check: bool = False

    def flags(self) -> list[str]:
        """Return the options that the command line needs for the switches that are off."""
        return [
            *([] if self.tc else ["--disable-linalg-to-tc-pipeline"]),
            *([] if self.multi_engines else ["--disable-multi-engine-scheduling-pipeline"]),
            *([] if self.multi_threads else ["--disable-threads-scheduling-pipeline"]),
            *(["--foundry-check"] if self.check else []),
        ]


@dataclass(frozen=True)
class CompiledFiles:
    """The two files that zen-compiler writes.

    Attributes:
        spirv: the kernel.
        cmd_gen: a shared library; see commands.py.
    """

    spirv: bytes
    cmd_gen: bytes


def command(ttir: Path, spirv: Path, cmd_gen: Path, *, threads: int, switches: Switches) -> list[str]:
    """Return the command line that compiles a file; VeriSilicon's backend builds the same one.

    Raises:
        MissingError: zen-compiler or its bridge does not exist.
    """
    return [
        str(pieces.zen_compiler()),
        "--triton-kernel-compile",
        "--enable-verify-after-passes",
        f"--workgroup-size-options={threads},1,1",
        f"--threads-per-workgroup={threads}",
        f"--spirv-target-options=caps={','.join(CAPABILITIES)} exts={','.join(EXTENSIONS)} module=.*",
        str(ttir),
        "-o",
        str(spirv),
        "-out-lib",
        str(cmd_gen),
        "-tc-bridge",
        str(pieces.bridge()),
        *switches.flags(),
    ]


def compile_ttir(ttir: str, *, name: str, threads: int, switches: Switches) -> CompiledFiles:
    """Compile a kernel.

    Args:
        ttir: Triton's IR, with source lines.
        name: the kernel's name, for files and messages.
        threads: work-items of each program.
        switches: the pipelines to run.

    Raises:
        MissingError: zen-compiler or its bridge does not exist.
        ZenCompilerError: zen-compiler refused the kernel, died, could not be started, or left no output.
    """
    # A file name may have at most 255 bytes.
    stem = name[:150]
    with TemporaryDirectory(prefix="triton-vsi-") as folder:
        source, spirv, library = (Path(folder, f"{stem}{end}") for end in (".ttir", ".spv", "_cmd_gen.so"))
        source.write_text(ttir)
        line = command(source, spirv, library, threads=threads, switches=switches)
        try:
            done = subprocess.run(line, capture_output=True, stdin=subprocess.DEVNULL, check=False)
        except OSError as error:
            raise ZenCompilerError(
                f"zen-compiler cannot be started: {line[0]}",
                why=f"{error.strerror}; a damaged program, or without the interpreter that it names?",
                next=f"try {line[0]} --help",
            ) from error
        output = (done.stderr + done.stdout).decode(errors="replace").strip()[:_SHOWN]
        if done.returncode > 0:
            raise ZenCompilerError(f"zen-compiler refused the kernel {name}", why=output or "it did not say")
        if done.returncode < 0:
            what = f"zen-compiler died of signal {-done.returncode} on the kernel {name}"
            raise ZenCompilerError(what, why=output or "it did not say")
        for path in (spirv, library):
            if not path.is_file():
                raise ZenCompilerError(
                    f"zen-compiler wrote no {path.name} for the kernel {name}", why=output or "it reported success"
                )
        compiled = CompiledFiles(spirv.read_bytes(), library.read_bytes())
    if compiled.spirv[:4] not in _MAGIC:
        raise ZenCompilerError(
            f"zen-compiler wrote no SPIR-V for the kernel {name}", why=f"{stem}.spv begins with {compiled.spirv[:4]!r}"
        )
    return compiled
