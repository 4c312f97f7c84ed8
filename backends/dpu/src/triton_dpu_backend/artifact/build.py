"""Build a DPU program from a kernel's LLVM IR with the SDK's compiler. Entry point and arguments are added.

The steps are those of TritonPIM: each part is compiled separately, `.eh_frame` is removed (nothing on a DPU unwinds,
and the section would occupy MRAM), then all parts are linked. Entry point and arguments depend on a kernel's signature
only, so a process compiles them once for all kernels of a signature.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from foundry_core.errors import ToolError

from . import arguments
from .signature import parse, tasklets
from .wrapper import wrapper

_COMPILER = "dpu-upmem-dpurte-clang"
_OBJCOPY = "llvm-objcopy"
# Of a v1A DPU; v1B has 16.
MOST_TASKLETS = 24
# Of the emulator's compiler only: the kernel counts modelled cycles by source line.
COUNT_LINES = "-foundry-count-lines"


def build(
    kernel_ll: str, *, name: str, num_tasklets: int, stack_size: int, work: Path, options: Sequence[str] = ()
) -> Path:
    """Build a DPU program from a kernel.

    Args:
        kernel_ll: legalised, typed-pointer LLVM IR.
        name: the kernel in it.
        num_tasklets: number of tasklets that run it, 1 to 24; at most the number that it was legalised for.
        stack_size: of each tasklet, bytes.
        work: an existing folder. Sources, objects and the program stay there.
        options: of the compiler, for the kernel.

    Returns:
        The program, an ELF file for dpu_load.

    Raises:
        SignatureError: the IR is truncated, not of the dialect, or has no such kernel.
        ToolError: there is no SDK, or one of its tools failed; the message has the tool's output.
    """
    if not 1 <= num_tasklets <= MOST_TASKLETS:
        raise ToolError(f"a DPU cannot run {num_tasklets} tasklets: it has 1 to {MOST_TASKLETS}")
    kernel = parse(kernel_ll, name)
    (work / "kernel.ll").write_text(kernel_ll)
    (work / "wrapper.ll").write_text(wrapper(kernel))
    (work / "triton_args.h").write_text(arguments.dpu_header(kernel))
    (work / "triton_args.c").write_text(arguments.dpu_source(kernel, tasklets(kernel_ll)))
    return link(work, num_tasklets=num_tasklets, stack_size=stack_size, options=options)


def link(work: Path, *, num_tasklets: int, stack_size: int, options: Sequence[str] = ()) -> Path:
    """Build a DPU program from a folder with kernel.ll, wrapper.ll, triton_args.h and triton_args.c; see build()."""
    compiler = sdk_tool(_COMPILER)
    defines = (f"-DNR_TASKLETS={num_tasklets}", f"-DSTACK_SIZE_DEFAULT={stack_size}")
    objects = []
    for compiled, sources, language in (
        (_compiled, ("kernel.ll",), (*options, "-x", "ir")),
        (_compiled_once, ("wrapper.ll",), ("-x", "ir")),
        (_compiled_once, ("triton_args.c", "triton_args.h"), defines),
    ):
        target = Path(sources[0]).with_suffix(".o").name
        texts = tuple((source, (work / source).read_text()) for source in sources)
        (work / target).write_bytes(
            compiled((compiler, "-O2", "-g0", *language, "-c", sources[0], "-o", target), texts)
        )
        objects.append(target)
    _run([compiler, *defines, *objects, "-o", "kernel.dpu"], work)
    return work / "kernel.dpu"


def _compiled(command: tuple[str | Path, ...], texts: tuple[tuple[str, str], ...]) -> bytes:
    """Return the object that a command writes to the last of its words.

    Args:
        texts: names and texts of the files that the command reads.
    """
    with TemporaryDirectory() as folder:
        work, target = Path(folder), command[-1]
        for name, text in texts:
            (work / name).write_text(text)
        _run(command, work)
        # The emulator's compiler writes no such section, and to start objcopy takes as long as to compile a short file.
        if b".eh_frame" in (work / target).read_bytes():
            _run([sdk_tool(_OBJCOPY), "--remove-section=.eh_frame", target], work)
        return (work / target).read_bytes()


_compiled_once = functools.lru_cache(maxsize=256)(_compiled)


def sdk_tool(name: str) -> Path:
    """Return the path of a program of the SDK: in UPMEM_HOME/bin, else next to the dpu-upmem-dpurte-clang on PATH.

    The compiler's folder is used, because an image has more than one llvm-objcopy on PATH.

    Raises:
        ToolError: there is no SDK, or it lacks the program.
    """
    home = os.environ.get("UPMEM_HOME")
    compiler = shutil.which(_COMPILER, path=str(Path(home, "bin")) if home else None)
    if compiler is None:
        where = f"in UPMEM_HOME={home}" if home else "on PATH (and UPMEM_HOME is not set)"
        raise ToolError(f"{_COMPILER} is not {where}: DPU programs are built with the UPMEM SDK or its emulator")
    for folder in (Path(compiler).parent, Path(compiler).resolve().parent):
        if (folder / name).is_file():
            return folder / name
    raise ToolError(f"the SDK in {Path(compiler).parent} has no {name}")


def _run(command: Sequence[str | Path], work: Path) -> None:
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        shown = " ".join(str(word) for word in command)
        output = (done.stdout + done.stderr).strip()[-4000:]
        raise ToolError(f"{shown} failed with exit status {done.returncode}:\n{output}")
