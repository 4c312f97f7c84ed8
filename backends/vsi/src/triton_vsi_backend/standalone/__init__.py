"""Write a compiled kernel as a folder that runs without Triton and Python: `dump_standalone=True` with VSI_DUMP_DIR.

The folder has the kernel's IR and binaries, and a launcher: source.py generates that from launcher.cpp.in, and
parameters.py describes a parameter of a Triton type in a .npy file and in C++.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile

from .source import launcher


def dump(
    folder: Path,
    *,
    name: str,
    parameters: Sequence[str],
    irs: Mapping[str, str | bytes],
    spirv: bytes,
    cmd_gen: bytes,
    num_warps: int,
    threads: int,
    names: Sequence[str] = (),
) -> Path:
    """Write a kernel and its launcher into a folder. Files of an older dump are replaced; all other files stay.

    A file is written completely or not at all. The launcher's source is removed first and written last, so that a
    folder that has one has all files of one dump. Two processes that dump into one folder wait for each other.

    Args:
        folder: the folder to write, created if needed: $VSI_DUMP_DIR/<kernel>.
        name: the kernel's name in the SPIR-V.
        parameters: Triton's types of what is passed to it, in order: "*fp32", "i32", ...
        irs: the kernel's intermediate forms by file suffix: {"ttir": "module { ... }"}; written as <name>.<suffix>.
            If the TTIR is among them, the launcher refuses scalars that it was not compiled for (see source.py).
        spirv: the kernel, <name>.spv.
        cmd_gen: the shared library that generates its command buffers, <name>_cmd_gen.so.
        num_warps: as recorded by the compiler; 0 if a program is one work-item.
        threads: work-items per program: num_warps * 32, or 1.
        names: the parameters' names in the Python function, for the launcher's messages.

    Returns:
        The launcher's source, <name>_standalone.cpp.

    Raises:
        ValueError: `name` is not an identifier, no launcher could read an argument of such a type from a file, or
            `threads` is neither 1 nor `num_warps` * 32.
        OSError: the folder cannot be written.
    """
    source = launcher(
        name=name, parameters=parameters, names=names, num_warps=num_warps, threads=threads, ttir=irs.get("ttir", "")
    )
    files = {f"{name}.{suffix}": text for suffix, text in irs.items()}
    files |= {f"{name}.spv": spirv, f"{name}_cmd_gen.so": cmd_gen}
    folder.mkdir(parents=True, exist_ok=True)
    launcher_source = folder / f"{name}_standalone.cpp"
    # The system releases the lock if the process dies.
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        launcher_source.unlink(missing_ok=True)
        for file, content in files.items():
            _write(folder / file, content)
        _write(launcher_source, source)
    finally:
        os.close(lock)
    return launcher_source


def _write(path: Path, content: str | bytes) -> None:
    data = content.encode() if isinstance(content, str) else content
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        try:
            file.write(data)
            file.close()
            # The permissions of any new file. NamedTemporaryFile makes files that only the owner may read.
            mask = os.umask(0)
            os.umask(mask)
            Path(file.name).chmod(0o666 & ~mask)
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
