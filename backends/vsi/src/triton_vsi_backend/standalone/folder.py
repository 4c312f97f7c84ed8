"""Writes a compiled kernel into a folder: what it was compiled from, what it was compiled to, and its launcher."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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
    """Write a kernel and its launcher into a folder; files of an older dump are replaced, all others stay.

    A file is there whole or not at all. The launcher's source comes last and goes first, so that a folder with one has
    all files of one dump; dumps of two processes into one folder take turns.

    Args:
        folder: where to, made if needed: $VSI_DUMP_DIR/<kernel>.
        name: the kernel's name in the SPIR-V.
        parameters: Triton's types of what is passed to it, in order: "*fp32", "i32", ...
        irs: the kernel on its way, by file name suffix: {"ttir": "module { ... }"}; files <name>.<suffix>. Where the
            TTIR is among them, the launcher refuses scalars that this kernel was not compiled for (see source.py).
        spirv: the kernel, <name>.spv.
        cmd_gen: the shared library that makes its command buffers, <name>_cmd_gen.so.
        num_warps: as recorded by the compiler; 0 where a program is one work-item.
        threads: work-items a program: num_warps * 32, or 1.
        names: what the Python function calls the parameters; for messages of the launcher.

    Returns:
        The launcher's source, <name>_standalone.cpp.

    Raises:
        ValueError: `name` is not an identifier, no launcher could take a parameter of such a type from a file, or
            `threads` is neither 1 nor `num_warps` * 32.
        OSError: the folder cannot be written.
    """
    source = launcher(
        name=name, parameters=parameters, names=names, num_warps=num_warps, threads=threads, ttir=irs.get("ttir", "")
    )
    files = {f"{name}.{suffix}": text for suffix, text in irs.items()}
    files |= {f"{name}.spv": spirv, f"{name}_cmd_gen.so": cmd_gen}
    folder.mkdir(parents=True, exist_ok=True)
    written = folder / f"{name}_standalone.cpp"
    with _turn(folder):
        written.unlink(missing_ok=True)
        for file, content in files.items():
            _write(folder / file, content)
        _write(written, source)
    return written


@contextmanager
def _turn(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, which the system takes back from a process that dies."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _write(path: Path, content: str | bytes) -> None:
    data = content.encode() if isinstance(content, str) else content
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        try:
            file.write(data)
            file.close()
            # As any other new file would have it; what NamedTemporaryFile makes is the owner's alone.
            mask = os.umask(0)
            os.umask(mask)
            Path(file.name).chmod(0o666 & ~mask)
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
