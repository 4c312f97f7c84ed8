"""The verb wheel: write wheels for machines without a container engine, and print how to install them."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from rich.text import Text

from toolchains.assembly import wheelhouse
from toolchains.assembly.request import Request
from toolchains.lockfile import lock
from toolchains.system import paths
from toolchains.system.console import Console
from toolchains.system.errors import UsageError
from toolchains.trust import keys, statement

_console = Console(highlight=False, soft_wrap=True)


def wheel(request: Request, *, library: str, sign: str) -> None:
    """Write the wheels of a target into build/wheels.

    Raises:
        UsageError: there is no such file, or the target has no wheels.
    """
    signer = keys.read_private(Path(sign)) if sign else None
    store, folder = request.store(), paths.BUILD / "wheels" / f"{request.target.backend}{request.target.suffix}"
    target = wheelhouse.source(lock.load(platform=request.target.platform), request.target)
    if library and not Path(library).is_file():
        raise UsageError(f"there is no file {library}")
    with TemporaryDirectory(dir=paths.scratch()) as work:
        chosen = wheelhouse.Library.given(Path(library)) if library else None
        written = wheelhouse.write(target, chosen or wheelhouse.library(target, store, Path(work)), folder, store)
    stated = statement.state_wheels(target, written.folder, signer)
    for path in written.wheels:
        _console.print(f"{path.stat().st_size / 1e6:6.1f} MB  {path.name}")
    place = folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder
    _console.print(
        Text(f"{place}", "bold"),
        f"goes to the machine with the GPU, which has Triton, {', '.join(written.own)}. There:",
    )
    _console.print(f"  pip install --no-index --find-links {place} --require-hashes -r {place}/requirements.txt")
    _console.print(f"{place / 'README.md'} says how to check it")
    _console.print(f"{'signed ' if sign else ''}statement: {stated}")
